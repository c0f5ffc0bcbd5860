"""How long the prefix of a program stays in memory while its tool runs.

    ttl = min(ttl_max, q90 of the tool's last times)
    pin iff P(back within ttl) * recompute time > pinned / free * delay of those that queue for memory

Source: time-to-live pins of "Continuum" (arXiv 2511.02230); most gaps of one agent are short (vLLM router,
issue 285: 86 % under 1 s, 95 % under 10 s). The comparison of costs is kvpool's own derivation.
"""

from dataclasses import dataclass

from kvpool.plan.sliding_window import SlidingWindow


@dataclass(frozen=True, slots=True)
class PinSettings:
    """Limits of a pin."""

    most_ns: int = 10_000_000_000
    """ttl_max."""
    quantile: float = 0.9
    calls: int = 200
    """How many of a tool's last times are kept."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Whether a prefix stays, how long, and the two costs that were compared."""

    ttl_ns: int
    """0: it does not."""
    saved_ns: float
    """Expected time that the pin saves its program."""
    delay_ns: float
    """Time that it costs those that queue."""


class ToolPins:
    """Learns how long each tool takes and decides pins."""

    def __init__(self, settings: PinSettings | None = None) -> None:
        self._settings = settings or PinSettings()
        self._times: dict[str, SlidingWindow] = {}

    def learn(self, tool: str, took_ns: int) -> None:
        """Take in how long one call took."""
        self._times.setdefault(tool, SlidingWindow(self._settings.calls)).add(took_ns)

    def decide(
        self, tool: str, recompute_ns: int, pinned_bytes: int, free_bytes: int, queue_delay_ns: int
    ) -> Pin:
        """Decide for one call. `free_bytes`: without the prefix; `queue_delay_ns`: of a request for memory.

        A tool that was not seen yet is pinned for: nothing says that it is slow, and the first calls tell.
        """
        window = self._times.get(tool)
        upper = window.upper(1 - self._settings.quantile) if window else None
        ttl_ns = self._settings.most_ns if upper is None else min(self._settings.most_ns, round(upper))
        back = window.share_up_to(ttl_ns) if window else None
        saved_ns = (1.0 if back is None else back) * recompute_ns
        delay_ns = pinned_bytes / max(1, free_bytes) * queue_delay_ns
        return Pin(ttl_ns if saved_ns > delay_ns else 0, saved_ns, delay_ns)
