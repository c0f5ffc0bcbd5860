"""Independent requests: their rates, their lengths, their bursts."""

import pytest

from kvpool.sim.workloads.generators.poisson import (
    Bursts,
    Drawn,
    Even,
    Fixed,
    Lognormal,
    Poisson,
    independent,
)
from kvpool.sim.workloads.request import Workload

SHORT = Fixed(100, 10)


def dispersion(workload: Workload, seconds: int) -> float:
    """Variance over mean of the arrivals in each second: 1 for a Poisson process."""
    counts = [0] * seconds
    for request in workload.requests:
        counts[request.arrival_ns // 1_000_000_000] += 1
    mean = sum(counts) / seconds
    return sum((count - mean) ** 2 for count in counts) / seconds / mean


@pytest.mark.parametrize("arrivals", [Poisson(5.0), Even(5.0), Bursts(5.0)])
def test_the_rate_is_the_one_asked_for(arrivals: Poisson | Even | Bursts) -> None:
    workload = independent(arrivals, SHORT, 4000, seed=1)

    assert len(workload.requests) / 4000 == pytest.approx(5, rel=0.05)
    assert all(request.arrival_ns < 4000e9 for request in workload.requests)


def test_arrivals_bunch_as_their_process_says() -> None:
    assert dispersion(independent(Even(5.0), SHORT, 2000, seed=1), 2000) == pytest.approx(0, abs=0.01)
    assert dispersion(independent(Poisson(5.0), SHORT, 2000, seed=1), 2000) == pytest.approx(1, rel=0.1)
    assert dispersion(independent(Bursts(5.0), SHORT, 2000, seed=1), 2000) > 1.5


def test_lognormal_lengths_have_their_median_and_are_cut() -> None:
    workload = independent(Poisson(20.0), Lognormal(1000, 200, most_prompt_tokens=3000), 200, seed=2)

    prompts = sorted(request.prompt_tokens for request in workload.requests)
    outputs = sorted(request.output_tokens for request in workload.requests)
    assert prompts[len(prompts) // 2] == pytest.approx(1000, rel=0.1)
    assert outputs[len(outputs) // 2] == pytest.approx(200, rel=0.1)
    assert (prompts[-1], prompts[0] >= 1) == (3000, True)


def test_drawn_lengths_are_pairs_of_the_source() -> None:
    source = independent(Poisson(5.0), Lognormal(1000, 200), 100, seed=2)

    drawn = independent(Poisson(5.0), Drawn(source), 300, seed=3)

    pairs = {(request.prompt_tokens, request.output_tokens) for request in source.requests}
    assert {(request.prompt_tokens, request.output_tokens) for request in drawn.requests} <= pairs


def test_a_seed_makes_the_same_workload_again_and_another_another() -> None:
    one, again, other = (independent(Bursts(5.0), Lognormal(100, 10), 50, seed) for seed in (1, 1, 2))

    assert one == again
    assert one.requests != other.requests
    assert one.checksum != other.checksum


@pytest.mark.parametrize(
    ("rate", "seconds"), [(0.0, 10), (-1.0, 10), (5.0, 0), (1e9, 1e9), (float("nan"), 1)]
)
def test_what_makes_no_workload_is_refused(rate: float, seconds: float) -> None:
    with pytest.raises(ValueError, match="requests a second for"):
        independent(Poisson(rate), SHORT, seconds, seed=1)
