"""What the agent channel counts; the metrics themselves are kept elsewhere."""

from typing import Protocol


class FleetMetrics(Protocol):
    """Counters by label. Implementations neither block nor raise; labels come from small fixed sets."""

    def enrolled(self, outcome: str) -> None:
        """Count an enrolment: `Issued`, or the reason of the refusal (a `Reason` of fleet.refusals)."""

    def received(self, message: str) -> None:
        """Count a well-formed message from an agent, by its field name in ConnectRequest."""

    def refused(self, reason: str) -> None:
        """Count a stream that was ended because of what the agent said or who it is."""

    def sent(self, message: str) -> None:
        """Count a message to an agent, by its field name in ConnectResponse."""

    def superseded(self, message: str) -> None:
        """Count a message that a newer one replaced before it was sent."""
