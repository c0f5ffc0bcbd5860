"""What kvpool's Pods may do on real nodes: what Pod Security says, and what the kernel says."""

from __future__ import annotations

import pytest

from tests.e2e.admission import broken_rules, listed_mounts, listed_rules, mounted, refusal
from tests.e2e.keepers import disk_keeper, memory_keeper
from tests.e2e.kernel import facts
from tests.e2e.site import SYSTEM, RealSite

KEEPERS_USER = "65532"


def test_the_operator_s_pod_is_taken_where_restricted_is_enforced(site: RealSite, restricted: str) -> None:
    for pod in site.wait_ready("operator", 2):
        assert refusal(site, restricted, pod) == ""


@pytest.mark.parametrize("component", ["agent", "keeper"])
def test_other_pods_are_refused_there_for_just_the_rules_that_are_listed_with_a_reason(
    site: RealSite, restricted: str, component: str
) -> None:
    pods = site.pods_of(component)
    assert pods
    for pod in pods:
        assert broken_rules(refusal(site, restricted, pod)) == listed_rules(component)


def test_no_less_than_privileged_lets_mounts_of_the_agent_appear_on_the_host(site: RealSite) -> None:
    agent = site.pods_of("agent", "node1")[0]
    assert refusal(site, SYSTEM, agent) == ""
    able = {"capabilities": {"add": ["SYS_ADMIN"]}, "runAsUser": 0, "readOnlyRootFilesystem": True}
    said = refusal(site, SYSTEM, agent, securityContext=able)
    assert "Bidirectional mount propagation is available only to privileged containers" in said


@pytest.mark.parametrize("component", ["operator", "keeper"])
def test_operator_and_keeper_have_no_root_no_capability_and_no_way_to_get_one(
    site: RealSite, component: str
) -> None:
    for pod in site.pods_of(component):
        said = facts(site, pod, f"kvpool-{component}")
        assert said["Uid"].split() == [KEEPERS_USER] * 4
        assert {int(said[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
        assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "2"), "no new privileges, filtered system calls"


def test_an_agent_that_mounts_memory_is_root_and_has_every_capability(site: RealSite) -> None:
    for pod in site.pods_of("agent"):
        said = facts(site, pod, "kvpool-agent")
        assert said["Uid"].split() == ["0"] * 4
        assert said["CapEff"] == said["CapBnd"]
        assert int(said["CapEff"], 16) >> 21 & 1, "CAP_SYS_ADMIN, to mount"


def test_nobody_but_the_operator_has_a_token_that_the_api_server_takes(site: RealSite) -> None:
    tokens = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    for component, has in (("operator", True), ("agent", False), ("keeper", False)):
        for pod in site.pods_of(component):
            mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
            assert any(tokens.startswith(mount) for mount in mounts) is has, component


def test_pods_mount_what_the_page_about_them_says_and_nothing_else(site: RealSite) -> None:
    for pod in site.pods_of("agent"):
        assert mounted(pod) == listed_mounts("agent")
    for pod in site.pods_of("operator"):
        assert mounted(pod) == listed_mounts("operator") == set()
    for node in site.nodes:
        assert mounted(memory_keeper(site, node)) == {"units"}
        assert mounted(disk_keeper(site, node)) == listed_mounts("keeper") == {"units", "medium"}
