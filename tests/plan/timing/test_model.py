"""The three forms of time, in figures that can be worked out by hand."""

from __future__ import annotations

from kvpool.plan.timing.model import LinkModel, TimingModel

PRIMES = TimingModel(7, 5, 3, 11, 13, 17)
NOTHING = TimingModel(0, 0, 0, 0, 0, 0)


def test_a_prefill_takes_its_base_its_fresh_tokens_and_their_squares() -> None:
    assert PRIMES.prefill_ns(10) == 7 + 5 * 10 + 3 * 100
    assert PRIMES.prefill_ns(10, 4) == 7 + 5 * 6 + 3 * (100 - 16)


def test_a_step_takes_its_base_its_sequences_and_the_context_that_they_read() -> None:
    assert PRIMES.step_ns(2, 19) == 11 + 13 * 2 + 17 * 19


def test_nothing_takes_less_than_a_nanosecond() -> None:
    assert (NOTHING.prefill_ns(1_000), NOTHING.step_ns(8, 1_000)) == (1, 1)


def test_a_transfer_takes_its_set_up_and_its_bytes_rounded_up_and_nothing_takes_none() -> None:
    link = LinkModel(setup_ns=7, bytes_per_second=3)
    assert [link.transfer_ns(size) for size in (0, 1, 3)] == [0, 7 + 333_333_334, 7 + 1_000_000_000]
