"""LongCat-2.5's claim: narrower weights and activations serve more, sooner and faster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from kvpool.plan.known_name import one_of
from kvpool.plan.timing.cards import CARDS
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.plan.timing.quantisation import QUANTISATIONS
from kvpool.plan.timing.shapes import SHAPES, Ranks
from kvpool.sim.claims.experiment import Experiment, Parameters
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
from kvpool.sim.workloads.request import Workload


class NarrowNumbers(Parameters):
    """One instance, busy with requests of one kind."""

    model: Annotated[str, one_of("model", SHAPES)]
    card: Annotated[str, one_of("accelerator", CARDS)]
    cards: int = Field(ge=1)
    kv_parallel: int = Field(ge=1)
    wide: Annotated[str, one_of("quantisation", QUANTISATIONS)]
    narrow: Annotated[str, one_of("quantisation", QUANTISATIONS)]
    prompt_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)
    running: int = Field(ge=1)
    """Sequences that are decoded at once."""


@dataclass(frozen=True, slots=True)
class Served:
    """What an instance gives with one number format."""

    requests_per_second: float
    ttft_ns: int
    """Of a request that finds the instance idle."""
    tpot_ns: int


def c19(parameters: NarrowNumbers, _: Mapping[str, Workload]) -> ClaimRow:
    """Hold the three directions."""
    wide, narrow = _served(parameters, parameters.wide), _served(parameters, parameters.narrow)
    throughput = 100 * (narrow.requests_per_second / wide.requests_per_second - 1)
    ttft = 100 * (narrow.ttft_ns / wide.ttft_ns - 1)
    tpot = 100 * (narrow.tpot_ns / wide.tpot_ns - 1)
    held = [throughput > 0, ttft < 0, tpot < 0]
    verdict = Verdict.REPRODUCED if all(held) else Verdict.PARTLY if any(held) else Verdict.NO
    return ClaimRow(
        CLAIM,
        ours=f"throughput {throughput:+.0f} %, TTFT {ttft:+.0f} %, TPOT {tpot:+.0f} %",
        band="directions only: throughput up, TTFT and TPOT down",
        verdict=verdict,
        knob=(
            "the card: without 4-bit products TTFT gains nothing; running: the more sequences, the less of a "
            "step is reading weights; attention and exchange between cards do not get faster"
        ),
        figures={"throughput percent": throughput, "TTFT percent": ttft, "TPOT percent": tpot},
        seed=parameters.seed,
    )


def _served(parameters: NarrowNumbers, number_format: str) -> Served:
    ranks = Ranks(parameters.cards // parameters.kv_parallel, parameters.kv_parallel)
    shape, card = SHAPES[parameters.model], CARDS[parameters.card]
    timing = constants_for(shape, card, ranks, QUANTISATIONS[number_format]).timing
    context = parameters.prompt_tokens + parameters.output_tokens // 2
    step = timing.step_ns(parameters.running, parameters.running * context)
    prefill = timing.prefill_ns(parameters.prompt_tokens)
    busy = prefill + parameters.output_tokens * step / parameters.running
    return Served(NS_PER_SECOND / busy, prefill, step)


CLAIM: Final = Claim(
    number="C19",
    text="W4A4 against W8A8: throughput about +40 %, TTFT -16 %, TPOT -20 %",
    source="LongCat-2.5 release notes, Meituan (2 Nov 2026)",
    reading=Reading.SECOND_HAND,
    kind=Kind.DIRECTION,
)

EXPERIMENTS: Final = (Experiment(CLAIM, NarrowNumbers, run=c19),)
