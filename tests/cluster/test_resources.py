"""Addresses of API objects."""

from __future__ import annotations

import pytest

from kvpool.cluster.resources import DEPLOYMENTS, KV_NODES, KV_POOLS, NODES, PODS, TOKEN_REVIEWS, Resource


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "sub", "path"),
    [
        (PODS, None, None, None, "/api/v1/pods"),
        (PODS, "a", None, None, "/api/v1/namespaces/a/pods"),
        (PODS, "a", "p", "eviction", "/api/v1/namespaces/a/pods/p/eviction"),
        (NODES, None, "n", None, "/api/v1/nodes/n"),
        (DEPLOYMENTS, "a", "d", "scale", "/apis/apps/v1/namespaces/a/deployments/d/scale"),
        (KV_POOLS, "a", "k", "status", "/apis/kvpool.dev/v1alpha1/namespaces/a/kvpools/k/status"),
        (KV_NODES, None, "n", None, "/apis/kvpool.dev/v1alpha1/kvnodes/n"),
        (TOKEN_REVIEWS, None, None, None, "/apis/authentication.k8s.io/v1/tokenreviews"),
        (PODS, "a", "../../secrets", None, "/api/v1/namespaces/a/pods/..%2F..%2Fsecrets"),
    ],
)
def test_a_target_has_the_path_that_the_api_serves(
    resource: Resource, namespace: str | None, name: str | None, sub: str | None, path: str
) -> None:
    assert resource.at(namespace, name, sub).path == path


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "sub", "complaint"),
    [
        (NODES, "a", "n", None, "cluster-scoped"),
        (PODS, None, "p", None, "needs a namespace"),
        (PODS, "a", None, "status", "needs a name"),
        (PODS, "a", "", None, "empty"),
        (PODS, "", None, None, "empty"),
    ],
)
def test_an_address_that_would_mean_something_else_is_refused(
    resource: Resource, namespace: str | None, name: str | None, sub: str | None, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        resource.at(namespace, name, sub)
