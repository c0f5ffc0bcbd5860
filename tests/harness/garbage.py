"""When the garbage collector of a control plane knows a kind."""

from __future__ import annotations

import uuid

from devcluster.rest import Api
from tests.harness.waiting import wait_until

COLLECTOR_SECONDS = 45.0
"""It looks for new kinds every 30 s."""
NEXT_PROBE_SECONDS = 1.0


def wait_for_collector(api: Api, api_version: str, kind: str, namespace: str) -> None:
    """Wait until what belongs to an owner of that kind goes with it.

    Before it knows the kind, the collector tries in vain, and again after ever longer waits: an object that
    lost its owner then stays for up to twice as long. So nothing that matters is to be owned before this.
    """

    def collected() -> bool:
        name = f"orphan-{uuid.uuid4()}"
        owner = {"apiVersion": api_version, "kind": kind, "name": "nobody", "uid": str(uuid.uuid4())}
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        try:
            wait_until(
                lambda: api.find("v1", "ConfigMap", name, namespace) is None, NEXT_PROBE_SECONDS, "an orphan"
            )
        except AssertionError:
            return False
        return True

    wait_until(collected, COLLECTOR_SECONDS, f"the garbage collector to know {kind}")
