"""What files out of the real world do wrong: each is refused by file and line, or counted."""

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from kvpool.sim.workloads import load as loading
from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.reading import Reading, TraceError
from tests.sim.workloads.made_lines import mooncake

GOOD = mooncake()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"a": "b', "is not whole JSON: Unterminated string at character 7 of 8"),
        ('{"a": "\tb"}', "is not whole JSON: Invalid control character at character 8 of 11"),
        (GOOD[:30], "is not whole JSON: Unterminated string at character 18 of 30"),
        (b'{"timestamp": 1}', "`input_length` is missing, and must be a number"),
        (b"[1, 2]", "is a JSON list, and must be an object"),
        (b"null", "is a JSON null, and must be an object"),
        (GOOD + GOOD, "is not whole JSON: Extra data"),
        (mooncake(-5), "`timestamp` is -5, and must be a time from 0"),
        (
            mooncake(10**30),
            "`timestamp` is 1000000000000000000000000000000, and must be a time from 0 to 10000000000000",
        ),
        (mooncake(float("nan")), "holds NaN, which is no number"),
        (mooncake(float("inf")), "holds Infinity, which is no number"),
        (GOOD.replace(b"1024", b"1e999"), "`input_length` is inf, and must be a finite number"),
        (GOOD.replace(b"1024", b"9" * 5000), "cannot be read as JSON: Exceeds the limit"),
        (mooncake(0, -1), "`input_length` is -1, and must be from 0 to 100000000 tokens"),
        (mooncake(0, 10**12), "`input_length` is 1000000000000, and must be from 0"),
        (mooncake(0, 1024, "7b"), "`output_length` is '7b', and must be a number"),
        (mooncake(0, 1024, True), "`output_length` is True, and must be a number"),
        (mooncake(0, 1024, 1, [1, "b"]), "`hash_ids` holds 'b', and must hold whole numbers only"),
        (mooncake(0, 1024, 1, "12"), "`hash_ids` is '12', and must be a list of whole numbers"),
        (b'{"timestamp": "\xff"}', "is not UTF-8: byte 16 of 18 is 0xff"),
        (GOOD.replace(b"{", b"[" * 200_000), "cannot be read as JSON: maximum recursion"),
        (b"\x1f\x8b\x08\x00binary", "is not UTF-8"),
    ],
)
def test_a_bad_line_is_refused_by_name_number_and_field_or_counted(line: bytes, told: str) -> None:
    with pytest.raises(TraceError, match=rf"^log line 3: {told}.*\(--skip-bad "):
        load([GOOD, b"\r\n", line, GOOD], "log")

    workload = load([GOOD, line, GOOD, line], "log", reading=Reading(skip_bad=True))

    assert len(workload.requests) == 2
    assert workload.notes["bad_lines"] == 2


def test_texts_of_a_log_are_not_told_in_messages() -> None:
    private = "my password is hunter2, please remember it for me"

    with pytest.raises(TraceError) as caught:
        load([GOOD, mooncake(0, private)], "log")

    assert "hunter2" not in str(caught.value)
    assert "a text of 49 characters" in str(caught.value)


@pytest.mark.parametrize("lines", [[], [b""], [b"\n", b"  \r\n"], [b"\xef\xbb\xbf"]])
def test_an_empty_file_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(TraceError, match=r"^log is empty; a trace has at least one line"):
        load(lines, "log")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"prompt": "hi", "id": 5}', "is a JSON object with the fields prompt, id, which is no known form"),
        (b"when,what\n", "is a CSV header with the columns when, what, which is no known form"),
        (b"\xff\xfe{\x00", "is not UTF-8: byte 1 of 4 is 0xff"),
        (b'{"timestamp', "is not whole JSON"),
    ],
)
def test_an_unknown_schema_is_told_with_what_was_seen_and_what_is_known(line: bytes, told: str) -> None:
    with pytest.raises(TraceError, match=f"^log line 1: {told}"):
        load([line], "log")


def test_a_line_that_is_taken_for_a_header_is_not_told_whole() -> None:
    line = json.dumps({"timestamp": 0, "hash_ids": list(range(500))}).encode()
    with pytest.raises(TraceError) as refused:
        load([line, b"1,2"], "log", form="azure")
    assert "has 2 columns, and the header has 501" in str(refused.value)
    assert len(str(refused.value)) < 400


def test_an_unknown_form_is_told_with_those_that_are_known() -> None:
    with pytest.raises(TraceError, match=r"'moon' is not known; it is one of kvpool, weka, .*mooncake"):
        load([GOOD], "log", "moon")


def test_a_file_in_which_nothing_can_be_used_says_why() -> None:
    with pytest.raises(TraceError, match=r"^log holds no request that can be used \(zero_tokens 2\)"):
        load([mooncake(0, 512, 0, [1])] * 2, "log")
    with pytest.raises(TraceError, match=r"\(no line of data was read\)"):
        load(["TIMESTAMP,ContextTokens,GeneratedTokens\n"], "log")


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    plain = load([mooncake(0), mooncake(5)], "log")
    odd = load(
        [b"\xef\xbb\xbf" + mooncake(0).replace(b"\n", b"\r\n"), mooncake(5).replace(b"\n", b"\r\n")], "log"
    )

    assert odd.requests == plain.requests


def test_lines_may_be_texts() -> None:
    assert load([GOOD.decode()], "log") == load([GOOD], "log")
    with pytest.raises(TraceError, match="is not UTF-8"):
        load([GOOD.decode(), GOOD.decode().replace("512", "\udcff") + "\udcff"], "log")


def test_a_part_is_read_from_the_middle_and_no_line_more() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            yield mooncake(1000 * read)
            read += 1

    workload = load(endless(), "log", reading=Reading(skip_lines=10, limit_lines=5))

    assert [request.arrival_ns for request in workload.requests] == [1e9 * place for place in range(5)]
    assert read == 14


def test_lines_that_are_passed_over_take_no_memory() -> None:
    def long() -> Iterator[bytes]:
        line = mooncake(0, 512 * 1000, 1, [*range(1000)])
        for place in range(20_000):
            # A text of its own for each, 100 MB together.
            yield line.replace(b"0", b"%d" % place, 1)

    tracemalloc.start()
    workload = load(long(), "log", reading=Reading(skip_lines=19_900, limit_lines=50))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(workload.requests) == 50
    assert peak_bytes < 4_000_000


def test_a_file_that_fits_no_memory_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_BLOCKS", 7)

    with pytest.raises(TraceError, match=r"^log line 4: 4 requests with 8 block ids so far.*give --limit N"):
        load([GOOD] * 9, "log")
