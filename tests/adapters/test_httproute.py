"""What an HTTPRoute output writes, and when it says that a revision is in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kvpool.adapters.routers.base import Reading, Revision
from kvpool.adapters.routers.httproute import HTTPRouteOutput, probe_host
from kvpool.api.pdgroup import HTTPRouteOutput as HTTPRouteTarget
from kvpool.api.pdgroup import Output, OutputType, ParentRef
from kvpool.model.decisions import Reason, SlotWeight
from kvpool.model.ids import ObjectKey

GENERATION = 4
NUMBER = 7


class Cluster:
    """The route and the data plane's answer, as a test wants them."""

    def __init__(self, route: Mapping[str, Any] | None, host: str | None = "") -> None:
        self._route = route
        self._host = host

    async def route(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        assert (namespace, name) == ("inference", "chat-edge")
        return self._route

    async def redirect_host(self, gateway_namespace: str, gateway: str, host: str, path: str) -> str | None:
        assert (gateway_namespace, gateway, host) == ("gateways", "main", "chat.example")
        assert path == "/.well-known/kvpool/inference/chat/edge"
        return self._host


def revision(members: int = 2, *, frozen_on_delete: bool = False) -> Revision:
    parent = ParentRef(name="main", namespace="gateways", section_name="web")
    target = HTTPRouteTarget(parent_ref=parent, hostnames=("chat.example",), path_prefix="/v1")
    return Revision(
        group=ObjectKey("inference", "chat"),
        group_uid="uid-1",
        frozen_on_delete=frozen_on_delete,
        output=Output(name="edge", type=OutputType.HTTP_ROUTE, http_route=target),
        number=NUMBER,
        members=tuple(member(index) for index in range(members)),
        port=8000,
    )


def member(index: int) -> SlotWeight:
    slot = ObjectKey("inference", f"chat-d-{index}")
    return SlotWeight(slot, 100, f"10.0.0.{index + 1}:8000", f"pod-{index}", Reason("Serving", "it serves"))


def route(**odd: Mapping[str, object]) -> dict[str, Any]:
    """A route that its gateway took, but for the conditions given."""
    sound = {"status": "True", "reason": "Fine", "observedGeneration": GENERATION}
    conditions = [{"type": name, **sound, **odd.get(name, {})} for name in ("Accepted", "ResolvedRefs")]
    return {"metadata": {"generation": GENERATION}, "status": {"parents": [{"conditions": conditions}]}}


async def read(found: Mapping[str, Any] | None, host: str | None = probe_host(NUMBER)) -> Reading:
    reading = await HTTPRouteOutput(Cluster(found, host)).read_back(revision())
    assert reading is not None
    return reading


async def test_a_route_that_is_taken_and_answers_with_its_revision_is_in_force() -> None:
    assert (await read(route())).in_force


@pytest.mark.parametrize("condition", ["Accepted", "ResolvedRefs"])
async def test_a_route_that_its_gateway_refuses_is_not_in_force_and_says_why(condition: str) -> None:
    refused = {"status": "False", "reason": "NoSuchThing", "message": "look again"}
    reading = await read(route(**{condition: refused}))
    assert not reading.in_force
    assert reading.detail == f"{condition} is False: NoSuchThing: look again"


@pytest.mark.parametrize("condition", ["Accepted", "ResolvedRefs"])
async def test_a_word_on_an_older_generation_does_not_count(condition: str) -> None:
    reading = await read(route(**{condition: {"observedGeneration": GENERATION - 1}}))
    assert not reading.in_force
    assert reading.detail == f"{condition} is not yet said of generation {GENERATION}"


async def test_a_route_that_is_missing_or_unanswered_is_not_in_force() -> None:
    assert await read(None) == Reading(False, "the route does not exist")
    unanswered = {"metadata": {"generation": 1}}
    assert await read(unanswered) == Reading(False, "no gateway has answered for the route yet")


@pytest.mark.parametrize("answer", [probe_host(NUMBER - 1), ""])
async def test_a_data_plane_that_answers_anything_else_is_not_in_force(answer: str) -> None:
    reading = await read(route(), answer)
    assert not reading.in_force
    assert repr(answer) in reading.detail
    assert repr(probe_host(NUMBER)) in reading.detail


async def test_a_data_plane_that_cannot_be_asked_leaves_it_to_be_assumed() -> None:
    assert await HTTPRouteOutput(Cluster(route(), None)).read_back(revision()) is None


def rendered_route(wanted: Revision) -> Mapping[str, Any]:
    (found,) = [
        one for one in HTTPRouteOutput(Cluster(None)).render(wanted).objects if one.kind == "HTTPRoute"
    ]
    return found.manifest


def test_host_names_path_listener_and_weights_are_in_the_route() -> None:
    spec = rendered_route(revision())["spec"]
    assert spec["hostnames"] == ["chat.example"]
    (parent,) = spec["parentRefs"]
    assert (parent["namespace"], parent["name"], parent["sectionName"]) == ("gateways", "main", "web")
    rule = spec["rules"][0]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]
    assert {backend["name"]: backend["weight"] for backend in rule["backendRefs"]} == {
        "chat-d-0-edge": 100,
        "chat-d-1-edge": 100,
    }


def test_members_that_do_not_fit_in_one_rule_are_refused_with_both_numbers() -> None:
    assert len(rendered_route(revision(16))["spec"]["rules"][0]["backendRefs"]) == 16
    with pytest.raises(ValueError, match=r"has 17 members; a route's rule takes 16"):
        rendered_route(revision(17))


def test_the_objects_go_with_their_group_unless_it_says_that_they_stay() -> None:
    output = HTTPRouteOutput(Cluster(None))
    for one in output.render(revision()).objects:
        (owner,) = one.manifest["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("PDGroup", "chat", "uid-1")
    for one in output.render(revision(frozen_on_delete=True)).objects:
        assert "ownerReferences" not in one.manifest["metadata"]
