"""Files that cannot be read as documents are told by name, with the line where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvpool.cli.document_files import read_documents
from kvpool.cli.faults import CliError

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{own}: &{own} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, own in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (LAUGHS, "what begins in line 7 has more than 16 MiB with its aliases written out: use fewer"),
        ("a: 1\nb: &b\n  c: *b\n", "what begins in line 2 holds an alias of itself: write it out"),
        ("a: &a\n  <<: *a\n", "what begins in line 1 holds an alias of itself: write it out"),
        ("[" * 100_000, "it is nested too deeply"),
        ("a: 1\nb:\n  a: 2\na: 3\n", "'a' is given twice, in line 1 and in line 4: keep one"),
        ("a: 1\nb: 2020-99-99\n", "line 2: a value is not what its form or tag says: month must be in 1..12"),
        ("a: 1\nb: !!int x\n", "line 2: a value is not what its form or tag says: invalid literal"),
        ('a: "\\UFFFFFFFF"\n', "a character or a version is none that there is: "),
        ("a: [\n", "in line 2, column 1"),
        (b"a: 1\nb: \xff\n", "line 2 is not UTF-8: save it as UTF-8"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path, content: str | bytes, told: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CliError) as raised:
        read_documents(str(path))
    assert str(raised.value).startswith(f"{path} cannot be read: ")
    assert told in str(raised.value)
    assert "unicode string" not in str(raised.value)


def test_aliases_that_stand_for_little_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("base: &base {mode: Observe}\nmany: [*base, *base]\n")
    assert read_documents(str(path)) == [{"base": {"mode": "Observe"}, "many": [{"mode": "Observe"}] * 2}]


def test_a_file_without_end_is_read_no_further_than_the_bound() -> None:
    with pytest.raises(CliError, match=r"^endless has more than 16 MiB: name another file, or split it$"):
        read_documents("/dev/zero", shown="endless")


def test_a_character_that_the_bound_cuts_through_is_not_what_is_told(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"# " + "\u20ac".encode() * (16 * 2**20 // 3 + 1))
    with pytest.raises(CliError, match="has more than 16 MiB"):
        read_documents(str(path))


@pytest.mark.parametrize(
    ("file", "told"),
    [("none.yaml", "No such file or directory"), (".", "Is a directory"), ("a\0b", "embedded null byte")],
)
def test_what_is_no_file_is_told(tmp_path: Path, file: str, told: str) -> None:
    with pytest.raises(CliError, match=f"cannot be read: {told}$"):
        read_documents(str(tmp_path / file))


def test_documents_of_nothing_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("---\n---\na: 1\n---\n# nothing\n")
    assert read_documents(str(path)) == [{"a": 1}]
