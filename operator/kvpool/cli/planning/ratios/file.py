"""The file of `kvpool ratio`: roles, promises and requests, or the times of a layer's parts."""

import re
from fractions import Fraction
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from kvpool.api.schema import Model
from kvpool.api.token_count import TokenCount
from kvpool.cli.planning.sizing.options import Count, PositiveBytes, Seconds, Serving
from kvpool.plan.known_name import one_of
from kvpool.plan.ratio.attention_ffn import MOST_RATIO
from kvpool.plan.ratio.recommendation import Objective
from kvpool.plan.timing.cards import LINKS
from kvpool.plan.timing.shapes import SHAPES

MOST_CELLS: Final = 1_000
MOST_SPLITS: Final = 1_000_000


def _fraction(text: object) -> object:
    """Read `3/2`, or a whole number."""
    found = re.fullmatch(r"(\d{1,6})(?:/([1-9]\d{0,5}))?", str(text))
    if not found:
        raise ValueError(f"{text!r} is no ratio: write 3/2")
    return Fraction(int(found[1]), int(found[2] or 1))


Ratio = Annotated[Fraction, BeforeValidator(_fraction)]
Tokens = Annotated[TokenCount, Field(ge=1, le=10_000_000)]
Microseconds = Annotated[float, Field(ge=0, le=1e12)]
Some = Field(min_length=1, max_length=100)


class RatioBounds(Model):
    """The least and the most prefill instances for each decode instance."""

    min: Ratio = Fraction(0)
    max: Ratio | None = None

    @model_validator(mode="after")
    def _leave_something(self) -> Self:
        if self.max is not None and (not self.max or self.max < self.min):
            raise ValueError(
                f"no ratio is from {self.min} to {self.max}: give a max above 0, and not below min"
            )
        return self


class PrefillDecode(Model):
    """Prefill and decode instances of a model, and the requests that they are to serve."""

    model: Annotated[str, one_of("model", SHAPES)]
    """Name of a well-known model."""
    prefill: Serving
    """One prefill instance."""
    decode: Serving
    """One decode instance."""
    link: Annotated[str, one_of("link", LINKS)]
    """Kind of link into a decode instance."""
    staged_sequences: Count = 1
    """Hand-offs that may be under way to one decode instance."""
    ttft: Seconds
    """Time to first token that is promised."""
    tpot: Seconds
    """Time for each further token that is promised."""
    cards: Count | None = None
    """To use at most; none: as many as give the best ratio."""
    objective: Objective = Objective.THROUGHPUT
    requests_per_second: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """The mean load, which objectives other than Throughput need."""
    bounds: RatioBounds = RatioBounds()
    prompts: Annotated[tuple[Tokens, ...], Some]
    """Prompt lengths of the table."""
    outputs: Annotated[tuple[Tokens, ...], Some]
    """Answer lengths of the table."""
    hit_percents: Annotated[tuple[Annotated[int, Field(ge=0, le=100)], ...], Some] = (0,)
    """Shares of a prompt that caches hold."""

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        cells = len(self.prompts) * len(self.outputs) * len(self.hit_percents)
        if cells > MOST_CELLS:
            raise ValueError(f"prompts, outputs and hitPercents make {cells} rows, more than {MOST_CELLS}")
        if self.objective is not Objective.THROUGHPUT and self.requests_per_second is None:
            raise ValueError(f"objective {self.objective} weighs waiting: give requestsPerSecond")
        self._tries_not_too_many_splits(cells)
        return self

    def _tries_not_too_many_splits(self, cells: int) -> None:
        """Refuse what would be tried for minutes: every split of the cards, or as many as one role's."""
        if self.cards is None:
            return
        of_prefill, of_decode = self.cards // self.prefill.cards, self.cards // self.decode.cards
        tried = of_prefill if self.objective is Objective.THROUGHPUT else of_prefill * of_decode // 2
        if cells * tried > MOST_SPLITS:
            raise ValueError(
                f"{self.cards} cards make about {tried:,} splits to try for each of {cells} rows, and"
                f" {MOST_SPLITS:,} altogether are the most: ask with fewer cards, or fewer rows"
            )


class AttentionPart(Model):
    """Attention of one layer on one instance."""

    base_microseconds: Microseconds
    sequence_microseconds: Microseconds
    """For each sequence of a micro-batch."""
    token_microseconds: Microseconds
    """For each token of context that is read."""


class ExpertPart(Model):
    """Experts of one layer."""

    base_microseconds: Annotated[float, Field(ge=1e-9, le=1e12)]
    token_microseconds: Annotated[float, Field(ge=1e-9, le=1e12)]
    """For each token."""
    experts: Count
    nodes: Count = 1
    """That the experts are spread over."""
    chosen: Count
    """Experts for each token."""


class ExchangePart(Model):
    """Transfers between the two, one way."""

    setup_microseconds: Annotated[int, Field(ge=0, le=10**12)]
    rate: PositiveBytes
    """Bytes a second out of one attention instance."""
    bytes_per_token: PositiveBytes
    """Hidden size times bytes of a value."""


class AttentionExperts(Model):
    """Attention and experts on instances of their own."""

    attention: AttentionPart
    experts: ExpertPart
    exchange: ExchangePart
    sequences: Count
    """Of one micro-batch, on one attention instance."""
    context: Tokens
    """Of each sequence."""
    micro_batches: Annotated[int, Field(ge=1, le=16)] = 3
    layers: Count
    most_ratio: Annotated[int, Field(ge=1, le=4_096)] = MOST_RATIO


class RatioFile(Model):
    """All that `kvpool ratio` is asked: either question, or both."""

    prefill_decode: PrefillDecode | None = None
    attention_experts: AttentionExperts | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if self.prefill_decode is None and self.attention_experts is None:
            raise ValueError("give prefillDecode, attentionExperts, or both")
        return self
