"""What Pod Security says to kvpool's Pods, and what the page about pods says of them."""

from __future__ import annotations

import copy
import re

from devcluster.rest import JsonObject
from tests.docs.pages import ROOT, Page
from tests.e2e.site import RealSite

PODS_PAGE = ROOT / "docs" / "reference" / "pods.md"
ONLY_PRIVILEGED = ("only with `agent.privileged`", "comes with privileged")
ONLY_UNPRIVILEGED = "only without `agent.privileged`"
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3}
"""Numbers of those that an agent without `agent.privileged` has, by capability(7)."""


def refusal(site: RealSite, namespace: str, pod: JsonObject, **changes: object) -> str:
    """What the API server says to a Pod like this one in another namespace; empty when it takes it."""
    spec = copy.deepcopy(pod["spec"])
    spec["containers"][0].update(changes)
    name = f"like-{pod['metadata']['name']}"[:63].rstrip("-")
    tried = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    answer = site.admin.request("POST", f"/api/v1/namespaces/{namespace}/pods", tried, {"dryRun": "All"})
    return "" if answer.ok else answer.message


def broken_rules(message: str) -> set[str]:
    """The rules of level `restricted` that a refusal names."""
    _, _, reasons = message.partition('violates PodSecurity "restricted:latest": ')
    assert reasons, f"refused for another reason: {message}"
    return set(re.findall(r"(?:^|\), )([^()]+?) \(", reasons))


def listed_rules(component: str, *, privileged: bool = True) -> set[str]:
    """The exceptions that the page about pods lists with a reason."""
    return {
        rule
        for pod, rule, why in _rows("Where Pod Security")
        if pod == component and why and (privileged or not why.startswith(ONLY_PRIVILEGED))
    }


def listed_mounts(component: str, *, privileged: bool = True) -> set[str]:
    """The volumes that the page says a Pod has with this many SSD folders (one) and device resources."""
    return {
        name
        for pod, names, _, why in _rows("Mounts")
        if pod == component and not (privileged and why.startswith(ONLY_UNPRIVILEGED))
        for name in re.findall(r"`([^`]+)`", names)
        if name != "ssd-1"
    }


def listed_capabilities() -> set[str]:
    """Those that the page says an agent has without `agent.privileged`."""
    (row,) = [row for row in _rows("Pods: what each may do") if row[0] == "Linux capabilities"]
    _, _, rest = row[2].partition("else ")
    return set(re.findall(r"`([A-Z_]+)`", rest))


def mounted(pod: JsonObject) -> set[str]:
    """Names of the volumes that a Pod's container mounts, but for the token that Kubernetes adds."""
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    return {one["name"] for one in mounts if not one["name"].startswith("kube-api-access-")}


def _rows(title: str) -> list[list[str]]:
    return Page(PODS_PAGE, PODS_PAGE.read_text()).rows(title)
