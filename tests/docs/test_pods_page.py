"""The page about pods names every volume and flag that the chart and the operator give them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kvpool.api.tierbudget import Backend
from tests.chart.rendering import of_kind, render
from tests.chart.test_pod_security import EXCEPTIONS, keeper_pod
from tests.docs.pages import ROOT, Page
from tests.harness.rights import Right, granted

PATH = ROOT / "docs" / "reference" / "pods.md"
PAGE = Page(PATH, PATH.read_text())
EVERYTHING = (
    "agent.devices=simulated:/var/lib/kvpool/devices.json",
    "agent.deviceResources={kvpool.dev/sim-accelerator}",
    "agent.ssdFolders={/mnt/a,/mnt/b}",
    "keeper.priorityClassName=high",
)


def specs(component: str) -> list[dict[str, Any]]:
    """Specs of a component's pods that together have all that it may have."""
    if component == "keeper":
        return [keeper_pod(Backend.TMPFS), keeper_pod(Backend.FILE), keeper_pod(Backend.TMPFS, "/dev/shm")]
    kind = "Deployment" if component == "operator" else "DaemonSet"
    found = []
    for settings in (EVERYTHING, (*EVERYTHING, "agent.privileged=false")):
        (workload,) = of_kind(render(*settings), kind).values()
        found.append(workload["spec"]["template"]["spec"])
    return found


@pytest.mark.parametrize("component", ["operator", "agent", "keeper"])
def test_the_page_names_every_volume_of_each_pod_and_no_other(component: str) -> None:
    has = {volume["name"] for spec in specs(component) for volume in spec.get("volumes", [])}
    cells = [row[1] for row in PAGE.rows("Mounts") if row[0] == component]
    named = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert named == has


@pytest.mark.parametrize("component", ["operator", "agent", "keeper"])
def test_the_page_names_every_flag_that_each_pod_is_given(component: str) -> None:
    args = [word for spec in specs(component) for word in spec["containers"][0]["args"]]
    given = {word.partition("=")[0] for word in args}
    paragraphs = PAGE.section("Flags that the chart gives").strip().split("\n\n")
    (paragraph,) = [part for part in paragraphs if part.startswith(f"{component.title()}:")]
    assert set(re.findall(r"`(--[a-z-]+)`", paragraph)) == given


@pytest.mark.parametrize("component", ["agent", "keeper"])
def test_the_page_explains_every_exception_from_restricted(component: str) -> None:
    rules = " ".join(
        cell for row in PAGE.rows("Where Pod Security") if row[0] == component for cell in row[1:]
    )
    words = {"runAsNonRoot": "runAsNonRoot != true", "capabilities": "unrestricted capabilities"}
    assert [rule for rule in EXCEPTIONS[component] if words.get(rule, rule) not in rules] == []


def listed_rights(reason: str = "") -> set[Right]:
    """Rights that the page lists for a reason that begins so."""
    return {
        ("" if group == "core" else group.strip("`"), resource, verb)
        for group, resources, verbs, why in PAGE.rows("Rights to the API")
        if why.startswith(reason)
        for resource in re.findall(r"`([^`]+)`", resources)
        for verb in verbs.split(", ")
    }


def test_the_page_lists_every_right_of_the_operator_and_no_other() -> None:
    documents = render()
    given = granted(*(of_kind(documents, kind)["kvpool-operator"] for kind in ("ClusterRole", "Role")))
    assert listed_rights() == given


def test_the_page_says_which_rights_hold_in_the_operator_s_own_namespace_alone() -> None:
    documents = render()
    everywhere = granted(of_kind(documents, "ClusterRole")["kvpool-operator"])
    there = listed_rights("*there*")
    assert there == granted(of_kind(documents, "Role")["kvpool-operator"])
    assert not there & everywhere
