"""The ratio as a function of lengths and hit rate: it is never a constant of a model or a card.

Each cell is `recommendation.recommend` for one shape; the table is kvpool's own form.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kvpool.plan.ratio.demand import Shape
from kvpool.plan.ratio.rates import Impossible, Roles
from kvpool.plan.ratio.recommendation import Asked, Recommended, recommend


@dataclass(frozen=True, slots=True)
class Cell:
    """The ratio for one kind of request."""

    shape: Shape
    answer: Recommended | Impossible


def ratio_table(
    roles: Roles,
    asked: Asked,
    prompts: Sequence[int],
    outputs: Sequence[int],
    hit_percents: Sequence[int],
) -> Iterator[Cell]:
    """The best split for each prompt length, output length and share of the prompt that is cached.

    The shapes of `asked` are replaced by each of those in turn.
    """
    for prompt in prompts:
        for output in outputs:
            for percent in hit_percents:
                shape = Shape(prompt, output, prompt * percent // 100)
                yield Cell(shape, recommend(roles, replace(asked, shapes=(shape,))))
