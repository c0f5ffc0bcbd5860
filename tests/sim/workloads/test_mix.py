"""The mix that routing rules are compared on."""

from __future__ import annotations

from statistics import fmean, median

import pytest

from kvpool.sim.workloads.generators.mix import PARTS, Mix, mix
from kvpool.sim.workloads.request import BATCH

LONG = mix(Mix(20_000, 2.0), 3)


def test_arrivals_come_in_order_at_the_mean_rate_bursts_included() -> None:
    times = [one.arrival_ns for one in LONG.requests]
    assert times == sorted(times)
    assert len(times) / 20_000 == pytest.approx(2.0, rel=0.05)


def test_a_quarter_of_the_time_has_three_times_the_rate() -> None:
    seconds = [0] * 20_000
    for one in LONG.requests:
        seconds[one.arrival_ns // 10**9] += 1
    mean = fmean(seconds)
    variance = fmean((count - mean) ** 2 for count in seconds)
    # Poisson at rates of 4 and 4/3 a second, a quarter and three quarters of the time: 2 + 1.33.
    assert variance / mean == pytest.approx(1.67, abs=0.15)


def test_shares_and_medians_are_those_of_the_parts() -> None:
    for part in PARTS:
        mine = [one for one in LONG.requests if one.client == part.name]
        assert len(mine) / len(LONG.requests) == pytest.approx(part.share, abs=0.01)
        assert median(one.prompt_tokens for one in mine) == pytest.approx(part.prompt_tokens, rel=0.05)
        assert median(one.output_tokens for one in mine) == pytest.approx(part.output_tokens, rel=0.05)
        assert max(one.output_tokens for one in mine) <= part.most_output_tokens
    batch = sum(one.slo_class == BATCH for one in LONG.requests)
    assert batch / len(LONG.requests) == pytest.approx(0.3, abs=0.01)


def test_bursts_begin_and_end_at_the_same_times_at_every_rate() -> None:
    def busiest(rate: float) -> list[int]:
        counts = [0] * 60
        for one in mix(Mix(600, rate), 5).requests:
            counts[one.arrival_ns // 10**10] += 1
        return sorted(range(60), key=lambda place: -counts[place])[:10]

    assert len(set(busiest(20)) & set(busiest(40))) >= 7


def test_equal_requests_are_all_alike() -> None:
    requests = mix(Mix(60, 5.0, equal=True), 1).requests
    assert len({(one.prompt_tokens, one.output_tokens) for one in requests}) == 1


def test_the_checksum_is_that_of_the_parameters_and_the_seed() -> None:
    assert mix(Mix(10, 5.0), 1) == mix(Mix(10, 5.0), 1)
    assert (
        len({mix(Mix(10, 5.0), 1).checksum, mix(Mix(10, 5.0), 2).checksum, mix(Mix(10, 6.0), 1).checksum})
        == 3
    )
