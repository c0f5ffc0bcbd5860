"""Parameters that make no workload, or one without end, are refused by name before anything is made."""

import pytest

from kvpool.sim.generators import GENERATORS, generate
from kvpool.sim.workloads.generators import provenance

A_MINUTE = {"seconds": 60, "rate_per_second": 1}


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("chat", {"users": 0}, "users: Input should be greater than or equal to 1, not 0"),
        ("chat", {"users": 10**9}, "users: Input should be less than or equal to 1000000"),
        ("chat", {"hours": float("nan")}, "hours: Input should be"),
        ("chat", {"hours": float("inf")}, "hours: Input should be"),
        ("chat", {"turns": -3}, "turns: Input should be greater than or equal to 0, not -3"),
        ("chat", {"output_tokens": 0}, "output_tokens: Input should be greater than or equal to 1"),
        ("agents", {"groups": 0}, "groups: Input should be greater than or equal to 1"),
        ("agents", {"jitter": 1.5}, "jitter: Input should be less than 1"),
        ("agents", {"seconds": float("inf")}, "seconds: Input should be"),
        (
            "agents",
            {"fewest_private_chunks": 9},
            "parameters of agents: most_private_chunks is 8, below fewest_private_chunks 9",
        ),
        ("branching", {"turns": 0}, "turns: Input should be greater than or equal to 1"),
        ("branching", {"revisit": 1.1}, "revisit: Input should be less than or equal to 1"),
        ("branching", {"fewest_new_chunks": 9}, "most_new_chunks is 8, below fewest_new_chunks 9"),
        ("documents", {"documents": 0}, "documents: Input should be greater than or equal to 1"),
        ("documents", {"per_second": 0}, "per_second: Input should be greater than 0"),
        ("documents", {"fewest_chunks": 33}, "most_chunks is 32, below fewest_chunks 33"),
        (
            "documents",
            {"documents": 1_000_000},
            "1000000 documents of up to 32 chunks are more than the 16000000 that fit into memory",
        ),
        ("independent", {**A_MINUTE, "prompt_tokens": 0}, "prompt_tokens: Input should be greater"),
        ("independent", {**A_MINUTE, "prompt_sigma": 1e9}, "prompt_sigma: Input should be less"),
        ("independent", {**A_MINUTE, "burst_factor": -1}, "burst_factor: Input should be greater"),
        ("mix", {**A_MINUTE, "rate_per_second": 0}, "rate_per_second: Input should be greater than 0"),
        ("mix", {**A_MINUTE, "batch_share": 7}, "batch_share: Input should be less than or equal to 1"),
        ("mix", {"seconds": 60}, "rate_per_second: is missing"),
        ("mix", {**A_MINUTE, "rate_per_second": 1e5}, "100000.0 requests a second for 60.0 s are more than"),
        ("mix", {"seconds": 1e7, "rate_per_second": 0.1, "burst_seconds": 1e-6, "calm_seconds": 0}, "bursts"),
    ],
)
def test_what_makes_no_workload_is_refused_by_name(
    name: str, parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match="parameters of") as refused:
        generate(name, parameters, 1)
    assert message in str(refused.value)


FEW = {
    "agents": {"loops": 3, "seconds": 60},
    "branching": {"sessions": 2, "turns": 5},
    "chat": {"users": 5},
    "documents": {"documents": 20, "seconds": 5},
    "independent": {"rate_per_second": 1, "seconds": 20},
    "mix": {"rate_per_second": 1, "seconds": 60},
}


@pytest.mark.parametrize("name", GENERATORS)
def test_more_requests_than_fit_are_refused_while_they_are_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = len(generate(name, FEW[name], 1).requests)
    monkeypatch.setattr(provenance, "MOST_REQUESTS", fits)
    assert len(generate(name, FEW[name], 1).requests) == fits
    monkeypatch.setattr(provenance, "MOST_REQUESTS", fits - 1)
    with pytest.raises(
        ValueError, match=f"{name} makes {fits} requests with .* and more; at most {fits - 1}"
    ):
        generate(name, FEW[name], 1)


def test_more_prefix_blocks_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "MOST_BLOCKS", 50)
    with pytest.raises(ValueError, match=r"chat makes .* requests with 5[0-9] prefix blocks and more"):
        generate("chat", {"users": 100}, 1)


def test_a_time_in_which_nothing_comes_is_told() -> None:
    with pytest.raises(ValueError, match="mix makes no request with these parameters: give it more time"):
        generate("mix", {"seconds": 1, "rate_per_second": 1e-6}, 1)


@pytest.mark.parametrize("name", ["agents", "branching"])
def test_sessions_that_share_no_tools_share_nothing(name: str) -> None:
    """What people ask for who hold shared prefixes against none."""
    made = generate(name, {**FEW[name], "groups": 1, "tool_chunks": 0}, 1)
    by_session: dict[int, set[int]] = {}
    for request in made.requests:
        assert request.blocks
        by_session.setdefault(request.session, set()).update(request.blocks)
    assert len(by_session) > 1
    assert sum(map(len, by_session.values())) == len(set().union(*by_session.values()))
