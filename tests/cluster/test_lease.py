"""Leading by a real Lease: one leader, a successor in time, and an end when in doubt."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.process import ManagedProcess
from kvpool.api import labels
from kvpool.cluster.election import LeaseTiming
from kvpool.cluster.errors import Retryable
from kvpool.cluster.hard_exit import EXIT_CODE
from kvpool.cluster.lease import Leadership, LeadershipLost
from kvpool.cluster.reads import get
from kvpool.cluster.resources import LEASES, Obj
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import delete, merge_guarded
from tests.harness.faultproxy import Answer, Break, FaultProxy
from tests.harness.waiting import wait_until_async

TIMING = LeaseTiming(duration_seconds=2.0, renew_seconds=1.2, retry_seconds=0.2)
SECONDS = 10.0


class Candidate:
    """A Leadership that records why it would have ended the process."""

    def __init__(self, rest: Rest, namespace: str, me: str) -> None:
        self.reasons: list[str] = []
        self.leadership = Leadership(
            rest, namespace=namespace, name="op", me=me, on_lost=self.reasons.append, timing=TIMING
        )


@asynccontextmanager
async def holding(candidate: Candidate) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(candidate.leadership.hold())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LeadershipLost):
            await task
        await candidate.leadership.release()


async def lease(rest: Rest, namespace: str) -> Obj:
    return await get(rest, LEASES.at(namespace, "op"))


async def comes(what: str, true: Callable[[], bool], seconds: float = SECONDS) -> None:
    async def come() -> bool:
        return true()

    await wait_until_async(come, seconds, what)


async def test_of_two_candidates_one_leads_and_the_other_waits(rest: Rest, namespace: str) -> None:
    one, two = Candidate(rest, namespace, "one"), Candidate(rest, namespace, "two")
    acquiring = [asyncio.create_task(c.leadership.acquire()) for c in (one, two)]
    done, waiting = await asyncio.wait(acquiring, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
    assert (len(done), len(waiting)) == (1, 1)
    leader, other = (one, two) if one.leadership.holds() else (two, one)

    async with holding(leader):
        await asyncio.wait(waiting, timeout=TIMING.duration_seconds * 1.5)
        assert not other.leadership.holds(), "a leader that renews is not replaced"
        assert other.leadership.holder == leader.leadership.holder
        assert leader.leadership.epoch == 1
    await asyncio.wait_for(asyncio.gather(*waiting), SECONDS)
    assert other.leadership.epoch == 2
    assert leader.reasons == []


async def test_a_released_lease_is_taken_before_it_would_have_run_out(rest: Rest, namespace: str) -> None:
    one, two = Candidate(rest, namespace, "one"), Candidate(rest, namespace, "two")
    await one.leadership.acquire()
    taking = asyncio.create_task(two.leadership.acquire())
    await asyncio.sleep(0)
    await one.leadership.release()
    assert not one.leadership.holds()
    await asyncio.wait_for(taking, TIMING.duration_seconds * 0.8)
    assert two.leadership.epoch == 2
    await two.leadership.release()


async def test_a_leader_that_cannot_renew_stops_before_another_may_start(
    through_proxy: Rest, rest: Rest, proxy: FaultProxy, namespace: str
) -> None:
    leader, other = Candidate(through_proxy, namespace, "leader"), Candidate(rest, namespace, "other")
    await leader.leadership.acquire()
    async with holding(leader) as task:
        proxy.inject(Break.STALL, times=1000)
        taking = asyncio.create_task(other.leadership.acquire())
        await comes("the leader to give up", lambda: bool(leader.reasons))
        assert not leader.leadership.holds()
        assert not other.leadership.holds()
        assert "is lost: not renewed for" in leader.reasons[0]
        with pytest.raises(LeadershipLost):
            await task
        await asyncio.wait_for(taking, SECONDS)
        assert other.leadership.epoch == 2
        assert len(leader.reasons) == 1
    await other.leadership.release()


FAULTS = (Answer(500), Answer(429), Break.CUT, Break.LOSE_ANSWER, Answer(409), Break.STALL)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_leader_outlives_a_single_failure(
    through_proxy: Rest, proxy: FaultProxy, namespace: str, fault: Answer | Break
) -> None:
    leader = Candidate(through_proxy, namespace, "leader")
    await leader.leadership.acquire()

    def renewed_after_the_fault() -> bool:
        faults = [one.fault for one in proxy.seen("PUT")]
        age = leader.leadership.renewed_seconds_ago()
        return fault in faults and faults[-1] is None and age is not None and age < TIMING.retry_seconds

    async with holding(leader) as task:
        proxy.inject(fault, method="PUT")
        await comes("a renewal after the fault", renewed_after_the_fault)
        assert not task.done()
        assert leader.reasons == []


async def test_a_leader_whose_lease_is_held_by_another_ends_at_once(rest: Rest, namespace: str) -> None:
    leader = Candidate(rest, namespace, "leader")
    await leader.leadership.acquire()
    current = await lease(rest, namespace)
    version = current["metadata"]["resourceVersion"]
    theft = {"spec": {"holderIdentity": "thief"}}
    await merge_guarded(rest, LEASES.of(current), theft, resource_version=version, manager="thief")
    async with holding(leader) as task:
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(task, TIMING.renew_seconds)
        assert leader.reasons == [f"Lease {namespace}/op is lost: it is held by thief"]


async def test_a_leader_whose_lease_was_deleted_ends(rest: Rest, namespace: str) -> None:
    leader = Candidate(rest, namespace, "leader")
    await leader.leadership.acquire()
    current = await lease(rest, namespace)
    await delete(rest, LEASES.of(current), uid=current["metadata"]["uid"])
    async with holding(leader) as task:
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(task, TIMING.renew_seconds)
        assert "deleted" in leader.reasons[0]


async def test_somebody_elses_label_on_the_lease_costs_nothing(rest: Rest, namespace: str) -> None:
    leader = Candidate(rest, namespace, "leader")
    await leader.leadership.acquire()
    async with holding(leader) as task:
        current = await lease(rest, namespace)
        version = current["metadata"]["resourceVersion"]
        labels = {"metadata": {"labels": {"a": "b"}}}
        await merge_guarded(rest, LEASES.of(current), labels, resource_version=version, manager="x")
        renewed = (await lease(rest, namespace))["spec"]["renewTime"]

        async def renewed_again() -> bool:
            return bool((await lease(rest, namespace))["spec"]["renewTime"] != renewed)

        await wait_until_async(renewed_again, SECONDS, "a renewal after the label")
        assert (await lease(rest, namespace))["metadata"]["labels"] == {"a": "b"}
        assert not task.done()


async def test_the_epoch_steps_over_a_higher_one_and_the_lease_says_so_first(
    rest: Rest, namespace: str
) -> None:
    leader = Candidate(rest, namespace, "leader")
    await leader.leadership.acquire()
    assert await leader.leadership.step_up(0) == 1, "already higher"
    assert await leader.leadership.step_up(41) == 42
    assert (await lease(rest, namespace))["metadata"]["annotations"][labels.OPERATOR_EPOCH] == "42"
    await leader.leadership.release()

    successor = Candidate(rest, namespace, "successor")
    await successor.leadership.acquire()
    assert successor.leadership.epoch == 43
    await successor.leadership.release()


async def test_an_epoch_raised_by_a_write_without_an_answer_never_falls(
    through_proxy: Rest, proxy: FaultProxy, namespace: str
) -> None:
    leader = Candidate(through_proxy, namespace, "leader")
    await leader.leadership.acquire()
    # Twice: the transport itself repeats a PUT when a connection it had kept open turns out closed.
    proxy.inject(Break.LOSE_ANSWER, times=2, method="PUT")
    with pytest.raises(Retryable):
        await leader.leadership.step_up(41)
    assert leader.leadership.epoch == 1
    async with holding(leader):
        await comes("the leader to learn its epoch", lambda: leader.leadership.epoch == 42)
    assert (await lease(through_proxy, namespace))["metadata"]["annotations"][labels.OPERATOR_EPOCH] == "42"


class Process:
    """`candidate.py` as a process of its own."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path, me: str) -> None:
        script = Path(__file__).with_name("candidate.py")
        seconds = map(str, (TIMING.duration_seconds, TIMING.renew_seconds, TIMING.retry_seconds))
        argv = [sys.executable, str(script), str(plane.kubeconfig), namespace, "op", me, *seconds]
        self.process = ManagedProcess(me, argv, folder / f"{me}.log")

    def leads(self) -> int:
        return int(self.process.wait_for_line(r"leads as epoch (\d+)", SECONDS)[1])


async def test_a_killed_leader_is_replaced_within_the_lease_and_one_second(
    control_plane: ControlPlane, rest: Rest, namespace: str, tmp_path: Path
) -> None:
    process = Process(control_plane, namespace, tmp_path, "victim")
    successor = Candidate(rest, namespace, "successor")
    with process.process:
        assert await asyncio.to_thread(process.leads) == 1
        taking = asyncio.create_task(successor.leadership.acquire())
        await comes("the successor to see the leader", lambda: successor.leadership.holder == "victim")
        process.process.kill()
        killed = time.monotonic()
        await asyncio.wait_for(taking, SECONDS)
        assert time.monotonic() - killed < TIMING.duration_seconds + 1
    assert successor.leadership.epoch == 2
    await successor.leadership.release()


async def test_a_stopped_leader_loses_and_exits_hard_when_it_goes_on(
    control_plane: ControlPlane, rest: Rest, namespace: str, tmp_path: Path
) -> None:
    process = Process(control_plane, namespace, tmp_path, "sleeper")
    successor = Candidate(rest, namespace, "successor")
    with process.process:
        await asyncio.to_thread(process.leads)
        process.process.signal(signal.SIGSTOP)
        await asyncio.wait_for(successor.leadership.acquire(), SECONDS)
        async with holding(successor):
            process.process.signal(signal.SIGCONT)
            code = await asyncio.to_thread(
                process.process.wait, TIMING.duration_seconds - TIMING.renew_seconds
            )
            assert code == EXIT_CODE
            assert "ending at once" in process.process.text()
            assert successor.leadership.holds()
            assert successor.leadership.epoch == 2


async def test_a_terminated_leader_releases_its_lease_and_exits_cleanly(
    control_plane: ControlPlane, rest: Rest, namespace: str, tmp_path: Path
) -> None:
    process = Process(control_plane, namespace, tmp_path, "leaver")
    with process.process:
        await asyncio.to_thread(process.leads)
        assert await asyncio.to_thread(process.process.terminate) == 0
    assert (await lease(rest, namespace))["spec"]["holderIdentity"] == ""
