"""What the API server makes of the operator's rights to the pause switch, which are bound to its name."""

from __future__ import annotations

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.rest import Api, ApiError
from kvpool.api.labels import PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP
from tests.chart.rendering import of_kind, render

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "operator"


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str) -> Api:
    """A client with the rights that the chart gives the operator in its own namespace."""
    metadata = {"name": ACCOUNT, "namespace": namespace}
    rules = of_kind(render(), "Role")["kvpool-operator"]["rules"]
    admin = control_plane.admin
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    admin.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules})
    admin.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        }
    )
    return control_plane.with_token(control_plane.token(namespace, ACCOUNT))


@pytest.mark.parametrize("switch", [PAUSE_CONFIG_MAP, UNINSTALL_CONFIG_MAP])
def test_the_switches_are_listed_and_watched_and_no_other_config_map(
    operator: Api, control_plane: ControlPlane, namespace: str, switch: str
) -> None:
    metadata = {"name": switch, "namespace": namespace}
    control_plane.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    chosen = f"metadata.name={switch}"

    def listed() -> list[str]:
        found = operator.list("v1", "ConfigMap", namespace, field_selector=chosen)
        return [one["metadata"]["name"] for one in found]

    operator.wait_until(lambda: listed() == [switch], 10, "the role to be in force")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    watch = {"watch": "true", "timeoutSeconds": "1"}
    assert operator.request("GET", path, query={**watch, "fieldSelector": chosen}).code == 200
    assert operator.request("GET", path, query=watch).code == 403
    with pytest.raises(ApiError, match="cannot list resource"):
        operator.list("v1", "ConfigMap", namespace)
