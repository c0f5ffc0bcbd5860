"""What kvpool's Pods may do on real nodes: what Pod Security says, and what the kernel says."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.rest import JsonObject
from tests.docs.pages import ROOT, Page
from tests.e2e.site import SYSTEM, RealSite
from tests.harness.planes import new_namespace

PODS_PAGE = ROOT / "docs" / "reference" / "pods.md"
ACCOUNTS = {"operator": "kvpool-operator", "agent": "kvpool-agent", "keeper": "kvpool-keeper"}
LEVEL = "pod-security.kubernetes.io/enforce"
KEEPERS_USER = "65532"


@pytest.fixture(scope="module")
def restricted(installed: RealSite) -> Iterator[str]:
    """A namespace that enforces level `restricted`, with the accounts of kvpool's Pods."""
    name = new_namespace(installed.cluster.plane, "restricted")
    admin = installed.admin
    admin.patch("v1", "Namespace", name, {"metadata": {"labels": {LEVEL: "restricted"}}})
    for account in ACCOUNTS.values():
        metadata = {"name": account, "namespace": name}
        admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    yield name
    admin.delete("v1", "Namespace", name)


def _admission(site: RealSite, namespace: str, pod: JsonObject, **changes: object) -> str:
    """What the API server says to a Pod like this one in another namespace; empty when it takes it."""
    spec = copy.deepcopy(pod["spec"])
    spec["containers"][0].update(changes)
    name = f"like-{pod['metadata']['name']}"[:63].rstrip("-")
    tried = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    answer = site.admin.request("POST", f"/api/v1/namespaces/{namespace}/pods", tried, {"dryRun": "All"})
    return "" if answer.ok else answer.message


def _broken_rules(message: str) -> set[str]:
    """The rules of level `restricted` that a refusal names."""
    _, _, reasons = message.partition('violates PodSecurity "restricted:latest": ')
    assert reasons, f"refused for another reason: {message}"
    return set(re.findall(r"(?:^|\), )([^()]+?) \(", reasons))


def _listed(component: str) -> set[str]:
    """The exceptions that the page about pods lists with a reason."""
    page = Page(PODS_PAGE, PODS_PAGE.read_text())
    return {rule for pod, rule, why in page.rows("Where Pod Security") if pod == component and why}


def test_the_operator_s_pod_is_taken_where_restricted_is_enforced(site: RealSite, restricted: str) -> None:
    for pod in site.wait_ready("operator", 2):
        assert _admission(site, restricted, pod) == ""


@pytest.mark.parametrize("component", ["agent", "keeper"])
def test_other_pods_are_refused_there_for_just_the_rules_that_are_listed_with_a_reason(
    site: RealSite, restricted: str, component: str
) -> None:
    pods = site.pods_of(component)
    assert pods
    for pod in pods:
        assert _broken_rules(_admission(site, restricted, pod)) == _listed(component)


def test_no_less_than_privileged_lets_mounts_of_the_agent_appear_on_the_host(site: RealSite) -> None:
    agent = site.pods_of("agent", "node1")[0]
    assert _admission(site, SYSTEM, agent) == ""
    able = {"capabilities": {"add": ["SYS_ADMIN"]}, "runAsUser": 0, "readOnlyRootFilesystem": True}
    said = _admission(site, SYSTEM, agent, securityContext=able)
    assert "Bidirectional mount propagation is available only to privileged containers" in said


def _facts(site: RealSite, pod: JsonObject, program: str) -> dict[str, str]:
    """What the kernel says of the Pod's process, by the names of /proc/PID/status."""
    node_proc = site.cluster.root(pod["spec"]["nodeName"]) / "proc"
    uid = pod["metadata"]["uid"]
    found = [folder for folder in node_proc.glob("[0-9]*") if _is_program(folder, program, uid)]
    assert len(found) == 1, f"processes of {program} in pod {pod['metadata']['name']}: {found}"
    lines = (found[0] / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _is_program(process: Path, program: str, pod_uid: str) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        return pod_uid in (process / "cgroup").read_text() and any(
            word.endswith(f"/{program}".encode()) for word in words[:2]
        )
    except OSError:
        return False


@pytest.mark.parametrize("component", ["operator", "keeper"])
def test_operator_and_keeper_have_no_root_no_capability_and_no_way_to_get_one(
    site: RealSite, component: str
) -> None:
    for pod in site.pods_of(component):
        facts = _facts(site, pod, f"kvpool-{component}")
        assert facts["Uid"].split() == [KEEPERS_USER] * 4
        assert {int(facts[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
        assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2"), (
            "no new privileges, filtered system calls"
        )


def test_an_agent_that_mounts_memory_is_root_and_has_every_capability(site: RealSite) -> None:
    for pod in site.pods_of("agent"):
        facts = _facts(site, pod, "kvpool-agent")
        assert facts["Uid"].split() == ["0"] * 4
        assert facts["CapEff"] == facts["CapBnd"]
        assert int(facts["CapEff"], 16) >> 21 & 1, "CAP_SYS_ADMIN, to mount"


def test_nobody_but_the_operator_has_a_token_that_the_api_server_takes(site: RealSite) -> None:
    tokens = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    for component, has in (("operator", True), ("agent", False), ("keeper", False)):
        for pod in site.pods_of(component):
            mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
            assert any(tokens.startswith(mount) for mount in mounts) is has, component
