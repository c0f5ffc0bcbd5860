"""What can be had on each node, worked out once for a plan; what the plan promises comes on top."""

from kvpool.api.kvnode import DeviceVerdict
from kvpool.model.ids import DeviceRef
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import maintenance_of, supernode_of
from kvpool.plan.engines import Engine, PodBook
from kvpool.plan.judgement import Judgement


class Stock:
    """Devices and idle engines of the nodes of one snapshot."""

    def __init__(self, snapshot: Snapshot, judgement: Judgement, pods: PodBook) -> None:
        self._snapshot = snapshot
        self._judgement = judgement
        self._pods = pods
        self._claimed = frozenset(
            DeviceRef(node, claim.device)
            for node, kvnode in snapshot.kvnodes.items()
            for claim in kvnode.spec.claims
        )
        self._unfit: dict[DeviceRef, str | None] = {}
        self._engines: dict[str, tuple[Engine, ...]] = {}

    def is_claimed(self, device: DeviceRef) -> bool:
        """Whether some slot owns the device."""
        return device in self._claimed

    def why_unfit(self, device: DeviceRef) -> str | None:
        """Say why nobody may be seated on a device; None when it is known to be sound and wanted."""
        if device not in self._unfit:
            self._unfit[device] = self._judge(device)
        return self._unfit[device]

    def idle_engines(self, node: str) -> tuple[Engine, ...]:
        """Return the node's engines without a seat."""
        if node not in self._engines:
            agent = self._snapshot.agents.get(node)
            self._engines[node] = self._pods.idle_engines(agent) if agent is not None else ()
        return self._engines[node]

    def _judge(self, device: DeviceRef) -> str | None:
        kvnode = self._snapshot.kvnodes[device.node]
        if any(entry.device == device.device for entry in kvnode.spec.quarantine):
            return "in quarantine"
        supernode = supernode_of(self._snapshot, device.node)
        if maintenance_of(supernode, device.node, device.device) is not None:
            return "under maintenance"
        verdict = self._judgement.device(device.node, device.device).verdict
        return None if verdict is DeviceVerdict.HEALTHY else verdict.value.lower()
