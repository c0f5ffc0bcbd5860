"""What the chart's roles allow: nothing beyond need, no wildcards, and nothing for agents and keepers."""

from __future__ import annotations

from typing import Any

from kvpool.api.labels import PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP
from tests.chart.rendering import of_kind, render


def rules(kind: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = of_kind(render(), kind)[name]["rules"]
    return found


def test_only_the_viewers_role_has_a_wildcard() -> None:
    roles = of_kind(render(), "ClusterRole") | of_kind(render(), "Role")
    wild = {
        name
        for name, role in roles.items()
        for rule in role["rules"]
        if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
    }
    assert wild == {"kvpool-viewer"}


def test_the_viewer_only_reads_and_only_our_kinds() -> None:
    (rule,) = rules("ClusterRole", "kvpool-viewer")
    assert rule["apiGroups"] == ["kvpool.dev"]
    assert set(rule["verbs"]) == {"get", "list", "watch"}


def test_the_editor_writes_what_people_write_and_of_moves_cancels_and_deletes_them() -> None:
    own, moves = rules("ClusterRole", "kvpool-editor")
    assert set(own["resources"]) == {"tierbudgets", "kvpools", "pdgroups", "supernodes"}
    assert (moves["resources"], set(moves["verbs"])) == (["remaps"], {"patch", "delete"})


def test_secrets_and_config_maps_are_within_reach_by_name_alone() -> None:
    named = {
        (resource, verb): rule.get("resourceNames")
        for rule in rules("Role", "kvpool-operator")
        for resource in {"secrets", "configmaps"} & set(rule["resources"])
        for verb in rule["verbs"]
    }
    # A create has no name yet that the API server could compare.
    assert named == {
        ("secrets", "create"): None,
        ("secrets", "get"): ["kvpool-ca"],
        ("configmaps", "create"): None,
        ("configmaps", "get"): ["kvpool-ca"],
        ("configmaps", "update"): ["kvpool-ca"],
        ("configmaps", "list"): [PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP],
        ("configmaps", "watch"): [PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP],
        ("configmaps", "patch"): [UNINSTALL_CONFIG_MAP],
    }
    cluster = [resource for rule in rules("ClusterRole", "kvpool-operator") for resource in rule["resources"]]
    assert not {"secrets", "configmaps", "leases"} & set(cluster)


def test_agents_and_keepers_have_no_rights_at_all() -> None:
    documents = render()
    bindings = [
        *of_kind(documents, "ClusterRoleBinding").values(),
        *of_kind(documents, "RoleBinding").values(),
    ]
    subjects = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    assert subjects == {"kvpool-operator"}


def test_pods_are_created_and_deleted_in_the_operators_namespace_alone() -> None:
    for rule in rules("ClusterRole", "kvpool-operator"):
        if "pods" in rule["resources"]:
            assert not {"create", "delete"} & set(rule["verbs"])
