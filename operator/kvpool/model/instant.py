"""Time as decisions see it: handed in, never read."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on two clocks.

    `monotonic_seconds` measures intervals within one process; `wall` is written into objects.
    """

    monotonic_seconds: float
    wall: datetime

    def text(self) -> str:
        """Wall time as Kubernetes writes it, to the millisecond: `2026-01-02T03:04:05.678Z`."""
        return moment_text(self.wall)

    def wall_at(self, monotonic_seconds: float) -> datetime:
        """Wall time of another moment of this process."""
        return self.wall + timedelta(seconds=monotonic_seconds - self.monotonic_seconds)

    def monotonic_of(self, text: str) -> float:
        """This process's monotonic time of a moment written by :meth:`text`, as well as wall clocks agree."""
        return self.monotonic_seconds + (parse_moment(text) - self.wall).total_seconds()


def moment_text(moment: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_moment(text: str) -> datetime:
    """Read RFC 3339.

    Raises:
        ValueError: when it is none.
    """
    return datetime.fromisoformat(text)
