"""What kvpool's Pods ask of the API on real nodes, as the audit log has it, and what they are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.audit import AuditRecord
from devcluster.cache import CHECKOUT
from devcluster.rest import ApiError, JsonObject
from tests.e2e.conftest import POOL
from tests.e2e.operators import kill_operators
from tests.e2e.routed import GATEWAY_API, accept_route, delete_group, engine_behind_gateway, group
from tests.e2e.site import SYSTEM, RealSite
from tests.e2e.workloads import create_workloads, delete_workloads
from tests.harness.objects import KVPOOL, NAMESPACE, SETTLE_SECONDS
from tests.harness.rights import Right, granted, refused, used
from tests.harness.waiting import wait_until

RBAC = "rbac.authorization.k8s.io/v1"
ROLE = "kvpool-operator"
NAME = "rights"
ELSEWHERE: dict[Right, str] = {
    ("", "configmaps", "patch"): "tests/e2e/test_uninstall.py::"
    "test_uninstall_with_drain_leaves_nothing_and_definitions_go_when_asked",
    ("", "pods", "get"): "tests/fleet/test_kube.py::test_a_pod_that_the_operator_has_not_seen_yet_is_found",
    ("kvpool.dev", "kvnodes", "delete"): "tests/system/capacity/test_rights_used.py::"
    "test_the_operator_uses_the_rights_it_has_and_is_refused_none",
    ("kvpool.dev", "remaps", "delete"): "tests/plan/failover/test_history.py::"
    "test_a_slot_keeps_its_newest_moves_and_the_one_that_gave_its_epoch",
    ("kvpool.dev", "remaps/status", "patch"): "tests/e2e/test_engines.py::"
    "test_operators_deleted_in_the_middle_of_a_move_make_it_once",
}
"""Rights that this file does not use, and the test that shows what each is for."""
BY_CHANCE: set[Right] = {("", "pods", "get")}
"""Used when an agent enrols before its Pod was seen."""


def _requests(site: RealSite, component: str) -> list[AuditRecord]:
    user = f"system:serviceaccount:{SYSTEM}:kvpool-{component}"
    return site.cluster.plane.audit.requests(user=user, succeeded_only=False)


@pytest.fixture
def busy(site: RealSite) -> Iterator[RealSite]:
    """A site where everything happened that the operator has a right for."""
    with ExitStack() as stack:
        stack.callback(delete_workloads, site, NAME)
        create_workloads(site, NAME)
        for number, (prefill, decode) in enumerate(
            (("Deployment", "StatefulSet"), ("ReplicaSet", "LeaderWorkerSet"))
        ):
            named = f"{NAME}-{number}"
            stack.callback(site.admin.delete, KVPOOL, "PDGroup", named, NAMESPACE)
            site.apply("PDGroup", named, _of_workloads(prefill, decode), NAMESPACE)
        _bring_a_pool_and_take_it(site)
        stack.enter_context(engine_behind_gateway(site, NAME, "node1"))
        stack.callback(delete_group, site, NAME)
        spec = group(POOL, role=NAME, label="kv-rights", gateway_name=NAME, onDelete="Remove")
        site.apply("PDGroup", NAME, spec, NAMESPACE)
        route = f"{NAME}-edge"
        wait_until(lambda: _finds(site, route), SETTLE_SECONDS, "the route to be written")
        wait_until(
            lambda: _is_asked_for_its_gateway(site, route),
            SETTLE_SECONDS,
            "the Gateway to be asked for",
            (ApiError,),
            poll_seconds=0.5,
        )
        spec["decode"]["instances"] = 0
        site.apply("PDGroup", NAME, spec, NAMESPACE)
        delete_slot = ("kvpool.dev", "engineslots", "delete")
        wait_until(
            lambda: delete_slot in used(_requests(site, "operator")),
            SETTLE_SECONDS,
            "the slot to be given up",
        )
        delete_group(site, NAME)
        wait_until(lambda: not _finds(site, route), SETTLE_SECONDS, "the route to go with its group")
        _have_the_authority_published_anew(site)
        yield site


def _of_workloads(prefill: str, decode: str) -> JsonObject:
    def role(kind: str) -> JsonObject:
        return {"workloadRef": {"kind": kind, "name": NAME}, "port": 8000, "instances": 0}

    return {"mode": "Observe", "poolRef": {"name": POOL}, "prefill": role(prefill), "decode": role(decode)}


def _bring_a_pool_and_take_it(site: RealSite) -> None:
    try:
        site.pool("brief", DRAM="48Mi")
        site.wait_bound("brief")
    finally:
        site.delete_pool("brief")


def _have_the_authority_published_anew(site: RealSite) -> None:
    """Somebody touched the bundle: the next operator that starts writes it again."""
    bundle = site.admin.get("v1", "ConfigMap", "kvpool-ca", SYSTEM)["data"]["ca.crt"]
    site.admin.patch("v1", "ConfigMap", "kvpool-ca", {"data": {"ca.crt": f"{bundle}\n"}}, SYSTEM)
    old = kill_operators(site)
    site.wait_ready("operator", 2, but=old)
    assert site.admin.get("v1", "ConfigMap", "kvpool-ca", SYSTEM)["data"]["ca.crt"] == bundle


def _finds(site: RealSite, route: str) -> bool:
    return site.admin.find(GATEWAY_API, "HTTPRoute", route, NAMESPACE) is not None


def _is_asked_for_its_gateway(site: RealSite, route: str) -> bool:
    """Whether the operator looked where the route leads, as it does for each version that is accepted."""
    accept_route(site, route, NAME)
    return ("gateway.networking.k8s.io", "gateways", "get") in used(_requests(site, "operator"))


def test_agents_and_keepers_ask_the_api_for_nothing(site: RealSite) -> None:
    assert _requests(site, "agent") == []
    assert _requests(site, "keeper") == []


def _granted(site: RealSite) -> set[Right]:
    return granted(site.admin.get(RBAC, "ClusterRole", ROLE), site.admin.get(RBAC, "Role", ROLE, SYSTEM))


def test_the_operator_uses_the_rights_it_has_and_is_refused_none(busy: RealSite) -> None:
    has = _granted(busy)

    def unused() -> set[Right]:
        return has - set(ELSEWHERE) - used(_requests(busy, "operator"))

    try:
        wait_until(lambda: not unused(), SETTLE_SECONDS, "every right to be used")
    except AssertionError as error:
        raise AssertionError(f"{error}; not used: {sorted(unused())}") from error
    asked = _requests(busy, "operator")
    assert used(asked) <= has
    assert refused(asked) == []
    assert set(ELSEWHERE) <= has
    elsewhere = {right for right, test in ELSEWHERE.items() if not test.startswith("tests/e2e/")}
    assert not (elsewhere - BY_CHANCE) & used(asked), "no longer an exception: it is used here"


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_each_right_that_is_not_used_here_names_a_test_that_there_is(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^(async )?def {name}\(", (CHECKOUT / file).read_text(), re.MULTILINE)
