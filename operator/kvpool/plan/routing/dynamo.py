"""The cost function of NVIDIA Dynamo's KV router, in its published forms.

Source: ai-dynamo/dynamo, docs/components/router (cost of prefill and decode blocks, credits for what lower
tiers hold, `lmetric`, softmax temperature), and the older form of its release 0.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kvpool.plan.routing.views import Ask, Draws, Instance, Overlap


class DynamoForm(StrEnum):
    """Which of the published costs."""

    SUM = "Sum"
    """scale x prefill blocks + decode blocks."""
    PRODUCT = "Product"
    """`lmetric`: prefill blocks x (decode blocks + 1)."""
    OVERLAP = "Overlap"
    """The older one: 2 x overlap - cache usage - normalised waiting, the largest wins."""


@dataclass(frozen=True, slots=True)
class DynamoSettings:
    """Its options, with their published defaults."""

    form: DynamoForm = DynamoForm.SUM
    block_tokens: int = 16
    prefill_load_scale: float = 1.0
    device_credit: float = 1.0
    host_credit: float = 0.75
    disk_credit: float = 0.25
    temperature: float = 0.0
    """0: the lowest cost; above: drawn with the softmax of the costs, normalised to [0, 1]."""


class Dynamo:
    """Routes by blocks to prefill and blocks that decode, less credits for what is held of the prefix."""

    def __init__(self, draws: Draws, settings: DynamoSettings | None = None) -> None:
        self._draws = draws
        self._settings = settings or DynamoSettings()

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The lowest cost, or one drawn; of equals the one with fewest outstanding, then the first."""
        costs = self._costs(ask, instances)
        if self._settings.temperature > 0:
            return draw_softly(costs, self._settings.temperature, self._draws)
        return min(range(len(costs)), key=lambda place: (costs[place], instances[place].outstanding, place))

    def _costs(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        if self._settings.form is DynamoForm.OVERLAP:
            return self._overlap_costs(ask, instances)
        return [
            self._block_cost(ask, ask.overlap(place), instance) for place, instance in enumerate(instances)
        ]

    def _block_cost(self, ask: Ask, overlap: Overlap, instance: Instance) -> float:
        settings = self._settings
        credit = (
            settings.device_credit * overlap.device_tokens
            + settings.host_credit * overlap.host_tokens
            + settings.disk_credit * overlap.disk_tokens
        )
        prefill = max(instance.prefill_tokens + ask.prompt_tokens - credit, 0.0) / settings.block_tokens
        decode = (instance.kv_tokens + ask.prompt_tokens) / settings.block_tokens
        if settings.form is DynamoForm.PRODUCT:
            return prefill * (decode + 1)
        return settings.prefill_load_scale * prefill + decode

    def _overlap_costs(self, ask: Ask, instances: Sequence[Instance]) -> list[float]:
        waiting = [max(0, one.outstanding - one.running) for one in instances]
        most = max(1, *waiting)
        return [
            one.kv_tokens / max(1, one.capacity_tokens)
            + waiting[place] / most
            - 2 * ask.overlap(place).tokens / max(1, ask.prompt_tokens)
            for place, one in enumerate(instances)
        ]


def draw_softly(costs: Sequence[float], temperature: float, draws: Draws) -> int:
    """Draw a place with probability exp(-cost / temperature), costs normalised to [0, 1] first."""
    low, high = min(costs), max(costs)
    spread = (high - low) or 1.0
    odds = [math.exp(-(cost - low) / spread / temperature) for cost in costs]
    left = draws.uniform() * sum(odds)
    for place, share in enumerate(odds):
        left -= share
        if left < 0:
            return place
    return len(costs) - 1
