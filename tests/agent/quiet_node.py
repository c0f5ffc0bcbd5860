"""As much of an agent as a stream needs."""

from __future__ import annotations

from kvpool.wire.v1alpha1 import agent_pb2 as wire


class QuietNode:
    """Says what must be said, and takes everything."""

    renew_seconds = 0.1
    missed_grants = 0

    def hello(self) -> wire.Hello:
        return wire.Hello(node_name="node-1")

    def report(self) -> wire.Report:
        return wire.Report()

    def renew(self) -> wire.Renew:
        return wire.Renew(seq=1)

    def welcomed(self, welcome: wire.Welcome) -> bool:
        return welcome.operator_epoch > 0

    def granted(self, grant: wire.Grant) -> None:
        """Nothing to extend."""

    def planned(self, plan: wire.NodePlan) -> None:
        """Nothing to do."""

    def ended(self) -> None:
        """Nothing to note."""
