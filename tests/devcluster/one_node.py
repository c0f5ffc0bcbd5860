"""A cluster of one node for a while: `python -m tests.devcluster.one_node FOLDER`, inside a sandbox.

Writes a line of JSON when the node is Ready and, once its input ends, another one when all is stopped.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.requirements import NodesImpossibleError


def traces() -> dict[str, list[str]]:
    """What a cluster could leave behind in this sandbox."""
    processes = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    return {
        "links": sorted(name for _, name in socket.if_nameindex()),
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "processes": sorted(pid for pid in processes if int(pid) != os.getpid()),
    }


def refusal(folder: Path) -> str:
    """What a second cluster in the same sandbox is told."""
    try:
        RealCluster(folder, 1).start()
    except NodesImpossibleError as error:
        return str(error)
    return ""


def main() -> None:
    folder = Path(sys.argv[1])
    before = traces()
    cluster = RealCluster(folder / "first", 1).start()
    refused = refusal(folder / "second")
    print(json.dumps({"name": cluster.name, "during": traces(), "refused": refused}), flush=True)
    sys.stdin.read()
    cluster.stop()
    print(json.dumps({"before": before, "after": traces()}), flush=True)


if __name__ == "__main__":
    main()
