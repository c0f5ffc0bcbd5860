"""Traefik as a Pod of a real node, in place of the process: the same settings, the node's own address."""

from __future__ import annotations

from demo.neighbours.pods import IMAGE
from demo.neighbours.traefik import ACCOUNT, DIAL_SECONDS
from devcluster.rest import JsonObject

NAME = "traefik"


def traefik_deployment(namespace: str, node: str, port: int) -> JsonObject:
    """Traefik on one node, on the node's address and `port`; its account and rights must be there."""
    labels = {"app": NAME}
    arguments = [
        "--global.checkNewVersion=false",
        "--global.sendAnonymousUsage=false",
        "--log.level=INFO",
        f"--entryPoints.web.address=$(HOST):{port}",
        f"--serversTransport.forwardingTimeouts.dialTimeout={DIAL_SECONDS}s",
        "--providers.providersThrottleDuration=100ms",
        "--providers.kubernetesGateway=true",
        "--providers.kubernetesGateway.statusAddress.ip=$(HOST)",
    ]
    container = {
        "name": NAME,
        "image": IMAGE,
        "command": ["traefik"],
        "args": arguments,
        "env": [{"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
    }
    spec = {
        "serviceAccountName": ACCOUNT,
        "hostNetwork": True,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
