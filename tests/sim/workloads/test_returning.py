"""Made workloads of people, agents and documents: what they promise, and that they can be made again."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from kvpool.sim.workloads.generators.agents import Agents, agents
from kvpool.sim.workloads.generators.chat import Chat, chat
from kvpool.sim.workloads.generators.documents import Documents, documents
from kvpool.sim.workloads.request import Request, Workload

SECOND = 10**9


def by_session(workload: Workload) -> dict[int, list[Request]]:
    sessions: dict[int, list[Request]] = {}
    for request in workload.requests:
        sessions.setdefault(request.session, []).append(request)
    return sessions


MAKERS: list[Callable[[int], Workload]] = [
    partial(chat, Chat(users=50)),
    partial(agents, Agents(loops=20, seconds=60)),
    partial(documents, Documents(documents=50, seconds=60)),
]


@pytest.mark.parametrize("make", MAKERS)
def test_the_same_seed_makes_the_same_workload_and_another_seed_another(
    make: Callable[[int], Workload],
) -> None:
    assert make(1) == make(1)
    assert make(1).requests != make(2).requests
    assert make(1).checksum != make(2).checksum


def test_a_conversation_grows_by_one_or_two_chunks_a_turn() -> None:
    for turns in by_session(chat(Chat(users=200), 3)).values():
        for one, other in pairwise(turns):
            assert other.blocks[: len(one.blocks)] == one.blocks
            assert len(other.blocks) - len(one.blocks) in (1, 2)
            assert other.arrival_ns >= one.arrival_ns
            assert other.prompt_tokens == 512 * len(other.blocks)


def test_people_share_nothing_and_come_back_after_half_an_hour() -> None:
    workload = chat(Chat(users=3000, hours=200.0, bursts=1.5), 5)
    sessions = by_session(workload)
    owners = {block: session for session, turns in sessions.items() for block in turns[-1].blocks}
    assert len(owners) == sum(len(turns[-1].blocks) for turns in sessions.values())
    gaps = [
        (other.arrival_ns - one.arrival_ns) / SECOND
        for turns in sessions.values()
        for one, other in pairwise(turns)
    ]
    # Turns of a burst are 40 s apart on average, bursts 1,800 s; four minutes tells nearly all apart.
    away = [gap for gap in gaps if gap > 240]
    assert sum(away) / len(away) == pytest.approx(240 + 1800, rel=0.1)
    assert len(workload.requests) / len(sessions) == pytest.approx(2.5 * 6, rel=0.05)


def test_loops_share_the_tools_of_their_group_and_keep_their_beat() -> None:
    parameters = Agents(loops=16, seconds=600)
    sessions = by_session(agents(parameters, 2))
    assert len(sessions) == 16
    for loop, turns in sessions.items():
        assert turns[0].blocks[:16] == sessions[loop % 8][0].blocks[:16]
        assert not {*turns[-1].blocks[16:]} & {*sessions[(loop + 8) % 16][-1].blocks[16:]}
        assert 4 <= len(turns[0].blocks) - 16 <= 8
        gaps = [(other.arrival_ns - one.arrival_ns) / SECOND for one, other in pairwise(turns)]
        assert 0.89 * 8 < min(gaps) <= max(gaps) < 1.11 * 12
        assert max(gaps) / min(gaps) < 1.1 / 0.9 + 0.01


def test_a_few_documents_get_most_questions() -> None:
    workload = documents(Documents(documents=500, zipf=1.0, seconds=2000), 4)
    asked = Counter(request.blocks[0] for request in workload.requests)
    top = asked.most_common(1)[0][1]
    harmonic = sum(1 / rank for rank in range(1, 501))
    assert top / len(workload.requests) == pytest.approx(1 / harmonic, rel=0.1)
    assert len(workload.requests) == pytest.approx(12_000, rel=0.05)
    assert {len(request.blocks) for request in workload.requests} <= set(range(8, 33))
