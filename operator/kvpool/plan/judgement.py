"""What is held to be true of hosts and devices now: the part of a plan that all of its decisions share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvpool.api.kvnode import DeviceVerdict
from kvpool.model.decisions import Reason
from kvpool.model.ids import DeviceRef
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.evidence import DeviceFinding, device_findings
from kvpool.plan.liveness import HostFinding, HostState, host_findings

_UNHEARD_DEVICE = DeviceFinding(
    DeviceVerdict.UNKNOWN, Reason("NotReported", "no agent has reported the device to this leader")
)
_UNHEARD_HOST = HostFinding(HostState.UNKNOWN, Reason("NoKVNode", "kvpool knows no such node"))


@dataclass(frozen=True, slots=True)
class Judgement:
    """Findings about hosts and devices at one moment."""

    hosts: Mapping[str, HostFinding]
    devices: Mapping[DeviceRef, DeviceFinding]

    def host(self, node: str) -> HostFinding:
        """Return the finding about a host; Unknown for one nobody knows."""
        return self.hosts.get(node, _UNHEARD_HOST)

    def device(self, node: str, device: str) -> DeviceFinding:
        """Return the finding about a device; Unknown for one nobody reported."""
        return self.devices.get(DeviceRef(node, device), _UNHEARD_DEVICE)

    def is_dead(self, node: str) -> bool:
        """Whether the host is known to be dead."""
        return self.host(node).state is HostState.DEAD

    def moments(self) -> Iterator[float]:
        """When findings change by time alone (monotonic seconds)."""
        changes = [host.changes_at for host in self.hosts.values()]
        changes += [device.changes_at for device in self.devices.values()]
        yield from (moment for moment in changes if moment is not None)


def judge(snapshot: Snapshot, now: Instant) -> Judgement:
    """Judge every host and device."""
    return Judgement(host_findings(snapshot, now), device_findings(snapshot, now))
