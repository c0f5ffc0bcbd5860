"""The control plane the other tests stand on does what they take for granted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.rest import ApiError, JsonObject


def pod(name: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }


def config_map(name: str, namespace: str, **data: str) -> JsonObject:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def review(plane: ControlPlane, token: str, audience: str) -> JsonObject:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    }
    status: JsonObject = plane.admin.create({**request, "metadata": {}})["status"]
    return status


def test_the_api_server_says_which_version_it_is(control_plane: ControlPlane) -> None:
    assert control_plane.admin.call("GET", "/version")["gitVersion"] == "v1.37.2"


def test_a_bound_token_for_kvpool_names_its_pod(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.admin.create(pod("agent", namespace))
    token = control_plane.token(namespace, "default", "kvpool", made)
    status = review(control_plane, token, "kvpool")
    assert status["authenticated"]
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:default"
    uid = status["user"]["extra"]["authentication.kubernetes.io/pod-uid"]
    assert uid == [made["metadata"]["uid"]]


def test_a_bound_token_is_refused_for_another_audience(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.admin.create(pod("agent", namespace))
    token = control_plane.token(namespace, "default", "kvpool", made)
    status = review(control_plane, token, "somebody-else")
    assert not status.get("authenticated", False)
    assert "audience" in status["error"]
    assert control_plane.with_token(token).request("GET", "/api").code == 401


def test_a_token_for_a_pod_that_was_replaced_is_refused(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.admin.create(pod("agent", namespace))
    made["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(ApiError) as refusal:
        control_plane.token(namespace, "default", "kvpool", made)
    assert refusal.value.code == 409


def test_a_service_account_may_do_nothing_until_it_is_allowed_to(
    control_plane: ControlPlane, namespace: str
) -> None:
    api = control_plane.with_token(control_plane.token(namespace, "default"))
    assert api.request("GET", f"/api/v1/namespaces/{namespace}/pods").code == 403


def test_the_audit_log_tells_the_writes_of_one_user(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create(config_map("before", namespace))
    since = dt.datetime.now(dt.UTC)
    writer = control_plane.as_user("writer")
    control_plane.admin.create(config_map("by-the-administrator", namespace))
    writer.create(config_map("one", namespace))
    writer.apply(config_map("two", namespace, key="value"))
    writer.list("v1", "ConfigMap", namespace)
    writes = control_plane.audit.writes(user="writer", since=since)
    assert [(one.verb, one.resource, one.namespace, one.name, one.code) for one in writes] == [
        ("create", "configmaps", namespace, "one", 201),
        ("patch", "configmaps", namespace, "two", 201),
    ]
    assert all(since <= one.received_at <= one.completed_at for one in writes)
    names = {one.name for one in control_plane.audit.writes(since=since) if one.namespace == namespace}
    assert names == {"by-the-administrator", "one", "two"}


def test_a_refused_write_is_told_apart_from_one_that_counted(
    control_plane: ControlPlane, namespace: str
) -> None:
    writer = control_plane.as_user("clumsy-writer")
    with pytest.raises(ApiError) as refusal:
        writer.create(config_map("Not_A_Name", namespace))
    assert refusal.value.code == 422
    assert control_plane.audit.writes(user="clumsy-writer") == []
    assert [one.code for one in control_plane.audit.writes("clumsy-writer", succeeded_only=False)] == [422]


def test_the_audit_log_tells_what_a_service_account_reads_and_is_refused(
    control_plane: ControlPlane, namespace: str
) -> None:
    pod = control_plane.with_token(control_plane.token(namespace, "default"))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for query in ({}, {"watch": "true"}):
        assert pod.request("GET", path, query=query).code == 403
    user = f"system:serviceaccount:{namespace}:default"
    asked = control_plane.audit.requests(user=user, succeeded_only=False)
    assert {(one.verb, one.resource, one.code) for one in asked} == {
        ("list", "configmaps", 403),
        ("watch", "configmaps", 403),
    }
    assert control_plane.audit.writes(user=user, succeeded_only=False) == []


def test_data_outlives_an_api_server_outage(fresh_control_plane: Callable[..., ControlPlane]) -> None:
    plane = fresh_control_plane(crds=False)
    plane.create_namespace("kept")
    uid = plane.admin.create(config_map("kept", "kept"))["metadata"]["uid"]
    plane.stop_apiserver()
    assert not plane.healthy()
    with pytest.raises(OSError, match="refused"):
        plane.admin.get("v1", "ConfigMap", "kept", "kept")
    plane.start_apiserver()
    assert plane.admin.get("v1", "ConfigMap", "kept", "kept")["metadata"]["uid"] == uid


def test_the_audit_log_tells_what_an_event_is_about(control_plane: ControlPlane, namespace: str) -> None:
    for api_version in ("v1", "kvpool.dev/v1alpha1"):
        about = {"apiVersion": api_version, "kind": "Anything", "name": "one", "namespace": namespace}
        control_plane.admin.create(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"about-{api_version[:2]}", "namespace": namespace},
                "eventTime": "2026-01-31T12:00:00.000000Z",
                "regarding": about,
                "reason": "Seen",
                "action": "Look",
                "type": "Normal",
                "reportingController": "kvpool.dev/test",
                "reportingInstance": "test",
            }
        )
    found = [one for one in control_plane.audit.writes() if one.namespace == namespace]
    told = [one.regarding for one in found if one.resource == "events"]
    assert told == ["v1", "kvpool.dev/v1alpha1"]
    assert {one.regarding for one in found if one.resource != "events"} <= {""}
