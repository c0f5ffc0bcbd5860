"""A process that leads when it can: `candidate.py KUBECONFIG NAMESPACE LEASE ME DURATION RENEW RETRY`.

Writes `leads as epoch N` to standard output and holds the Lease until it is killed or loses it; SIGTERM
releases it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from kvpool.cluster.election import LeaseTiming
from kvpool.cluster.lease import Leadership
from kvpool.cluster.rest import Access, Rest


async def main() -> None:
    kubeconfig, namespace, name, me, *seconds = sys.argv[1:]
    timing = LeaseTiming(*map(float, seconds))
    rest = await Rest.connect(Access(kubeconfig=Path(kubeconfig)))
    leadership = Leadership(rest, namespace=namespace, name=name, me=me, timing=timing)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await leadership.acquire()
    sys.stdout.write(f"leads as epoch {leadership.epoch}\n")
    sys.stdout.flush()
    holding = asyncio.create_task(leadership.hold())
    await stop.wait()
    await leadership.release()
    holding.cancel()
    await rest.close()


if __name__ == "__main__":
    asyncio.run(main())
