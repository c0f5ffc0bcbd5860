"""Readiness probes of Pods: `httpGet` of the first container, as a kubelet asks it."""

from __future__ import annotations

import http.client

from devcluster.rest import JsonObject

PROBE_SECONDS = 1.0


def passes(pod: JsonObject, address: str) -> bool:
    """Ask the Pod at `address` whether it is ready; a Pod without such a probe is."""
    container = pod["spec"]["containers"][0]
    probe = container.get("readinessProbe", {}).get("httpGet")
    if probe is None:
        return True
    connection = http.client.HTTPConnection(
        address, _port(container, probe["port"]), timeout=float(PROBE_SECONDS)
    )
    try:
        connection.request("GET", probe.get("path", "/"))
        return 200 <= connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _port(container: JsonObject, port: int | str) -> int:
    """Return a port given by number or by the name it has in the container. Raises KeyError."""
    if isinstance(port, int):
        return port
    named = {one.get("name"): int(one["containerPort"]) for one in container.get("ports", [])}
    return named[port]
