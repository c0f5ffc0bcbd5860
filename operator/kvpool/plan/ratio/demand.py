"""What is asked of a group: lengths of prompts, answers and cached prefixes, and what was promised.

Lengths and promises as DistServe (Zhong et al., OSDI '24) asks for them: TTFT for prefill, TPOT for decode;
the mix of weighted shapes with cached prefixes is kvpool's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of request."""

    prompt_tokens: int
    output_tokens: int
    """At least 1."""
    hit_tokens: int = 0
    """Of the prompt, already cached where it is prefilled."""
    weight: int = 1
    """How often, relative to the other kinds."""

    def __post_init__(self) -> None:
        """Refuse what is no request.

        Raises:
            ValueError: for lengths that cannot be.
        """
        if self.prompt_tokens < 1 or self.output_tokens < 1 or self.weight < 1:
            raise ValueError(
                f"prompt {self.prompt_tokens}, output {self.output_tokens}, weight {self.weight}: each must "
                f"be at least 1"
            )
        if not 0 <= self.hit_tokens <= self.prompt_tokens:
            raise ValueError(f"hit {self.hit_tokens} is not in 0 to the prompt's {self.prompt_tokens} tokens")


@dataclass(frozen=True, slots=True)
class Promise:
    """The latencies that requests were promised. Nanoseconds."""

    ttft_ns: int
    tpot_ns: int


def mean_output_tokens(shapes: Sequence[Shape]) -> float:
    """Output of the average request."""
    return sum(shape.weight * shape.output_tokens for shape in shapes) / _weights(shapes)


def mean_prompt_tokens(shapes: Sequence[Shape]) -> float:
    """Prompt of the average request."""
    return sum(shape.weight * shape.prompt_tokens for shape in shapes) / _weights(shapes)


def running_context_tokens(shapes: Sequence[Shape]) -> int:
    """Context of the average sequence in a decode batch: L + o / 2, and long answers are met more often.

    Rounded to the nearest token.
    """
    steps = sum(shape.weight * shape.output_tokens for shape in shapes)
    read = sum(
        shape.weight * shape.output_tokens * (2 * shape.prompt_tokens + shape.output_tokens)
        for shape in shapes
    )
    return (read + steps) // (2 * steps)


def held_tokens(shapes: Sequence[Shape]) -> int:
    """KV that the average sequence in a decode batch will hold at its end: L + o, rounded up."""
    steps = sum(shape.weight * shape.output_tokens for shape in shapes)
    held = sum(
        shape.weight * shape.output_tokens * (shape.prompt_tokens + shape.output_tokens) for shape in shapes
    )
    return -(-held // steps)


def _weights(shapes: Sequence[Shape]) -> int:
    return sum(shape.weight for shape in shapes)
