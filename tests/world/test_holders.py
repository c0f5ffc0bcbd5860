"""kubelet names the pods that hold devices; which pod is meant is told from the pods there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant, moment_text
from kvpool.model.observations import HOLDER_UNKNOWN, AgentView, DeviceView, LeaseView, PodFact
from kvpool.world.holders import with_holders

NOW = Instant(1000.0, datetime(2027, 1, 15, 8, 0, 0, tzinfo=UTC))
ENGINE = ObjectKey("inference", "engine-0")
OTHER = ObjectKey("inference", "engine-1")
SAID_AT = 998.0


def created(seconds_ago: float) -> str:
    return moment_text(NOW.wall - timedelta(seconds=seconds_ago))


def a_pod(key: ObjectKey = ENGINE, **changes: object) -> PodFact:
    pod = PodFact(
        key=key,
        uid=f"uid-{key.name}",
        labels={},
        node="node-1",
        address="10.0.0.1",
        phase="Running",
        ready=True,
        deleting=False,
        memory_request_bytes=0,
        created_at=created(3600),
    )
    return replace(pod, **changes)  # type: ignore[arg-type] # the changes are the fact's own fields


def an_agent(*devices: DeviceView, holders_at: float | None = SAID_AT) -> AgentView:
    return AgentView(
        node="node-1",
        boot_id="boot-1",
        incarnation=1,
        agent_version="test",
        pod_uid="uid-agent",
        connected=True,
        hello_at=0.0,
        reported_at=NOW.monotonic_seconds,
        leaving_until=None,
        lease=LeaseView(NOW.monotonic_seconds, 10.0, 1.0),
        applied_revision=0,
        highest_operator_epoch=0,
        roster_revision=0,
        devices=devices,
        holders_at=holders_at,
    )


def a_device(*pods: ObjectKey, holder: str = "") -> DeviceView:
    return DeviceView("0000:01:00.0", "GPU-1", holder or str(pods[0]), (), observed=True, holder_pods=pods)


def holder(device: DeviceView, *pods: PodFact, holders_at: float | None = SAID_AT) -> str:
    agents = {"node-1": an_agent(device, holders_at=holders_at)}
    return with_holders(agents, {pod.key: pod for pod in pods}, NOW)["node-1"].devices[0].holder


@dataclass(frozen=True)
class Case:
    name: str
    pods: tuple[PodFact, ...]
    holder: str
    named: tuple[ObjectKey, ...] = (ENGINE,)
    holders_at: float | None = SAID_AT


CASES = (
    Case("the pod runs here", (a_pod(),), "uid-engine-0"),
    Case("the pod is not known", (), "inference/engine-0"),
    Case("the pod of that name is on another node", (a_pod(node="node-2"),), "inference/engine-0"),
    Case("the pod of that name is on no node yet", (a_pod(node=""),), "inference/engine-0"),
    Case(
        "a pod of the same name was created after kubelet spoke",
        (a_pod(uid="uid-second", created_at=created(1)),),
        "inference/engine-0",
    ),
    Case(
        "it was created in the second in which kubelet spoke, maybe after it",
        (a_pod(created_at=created(2.5)),),
        "inference/engine-0",
    ),
    Case("it was created just before kubelet spoke", (a_pod(created_at=created(3)),), "uid-engine-0"),
    Case(
        "kubelet fell silent, and the pod is an old one",
        (a_pod(),),
        "uid-engine-0",
        holders_at=NOW.monotonic_seconds - 600,
    ),
    Case(
        "kubelet fell silent, and the pod was made anew since",
        (a_pod(uid="uid-second", created_at=created(60)),),
        "inference/engine-0",
        holders_at=NOW.monotonic_seconds - 600,
    ),
    Case("nobody knows when kubelet spoke", (a_pod(),), "inference/engine-0", holders_at=None),
    Case("nobody knows when the pod was created", (a_pod(created_at=""),), "inference/engine-0"),
    Case("the pod is being deleted and holds its devices still", (a_pod(deleting=True),), "uid-engine-0"),
    Case("the only pod named has ended", (a_pod(phase="Failed"),), "uid-engine-0"),
    Case(
        "an ended pod is still listed beside the one that got its devices",
        (a_pod(phase="Failed"), a_pod(OTHER)),
        "uid-engine-1",
        named=(ENGINE, OTHER),
    ),
    Case(
        "an ended pod is listed beside one that is not known",
        (a_pod(phase="Succeeded"),),
        "inference/engine-1",
        named=(ENGINE, OTHER),
    ),
    Case("two pods are named, and both run", (a_pod(), a_pod(OTHER)), HOLDER_UNKNOWN, named=(ENGINE, OTHER)),
    Case(
        "two pods are named, and both have ended",
        (a_pod(phase="Failed"), a_pod(OTHER, phase="Failed")),
        HOLDER_UNKNOWN,
        named=(ENGINE, OTHER),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_that_kubelet_names_is_told_by_its_uid_where_it_must_be_that_one(case: Case) -> None:
    found = holder(a_device(*case.named), *case.pods, holders_at=case.holders_at)
    assert found == case.holder
    assert found, "a device of which kubelet names a holder is never free"


def test_a_holder_of_which_the_agent_knows_the_uid_or_nothing_stays_as_it_is() -> None:
    said = [
        DeviceView(f"acc-{number}", "", holder, (), observed=True)
        for number, holder in enumerate(("", "uid-other", HOLDER_UNKNOWN))
    ]
    agents = {"node-1": an_agent(*said)}
    assert with_holders(agents, {ENGINE: a_pod()}, NOW) == agents
