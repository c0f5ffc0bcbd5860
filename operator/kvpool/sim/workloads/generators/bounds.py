"""What the parameters of generators may be: none makes a workload without end, or one that fits no memory."""

from typing import Annotated

from pydantic import Field

from kvpool.api.token_count import TokenCount

Count = Annotated[int, Field(ge=1, le=1_000_000)]
"""Of people, loops, sessions, documents and what they do."""
Chunks = Annotated[int, Field(ge=1, le=100_000)]
"""Of one prompt."""
SharedChunks = Annotated[int, Field(ge=0, le=100_000)]
"""Of one prompt, before its own: none, where nothing is shared."""
Tokens = Annotated[TokenCount, Field(ge=1, le=10_000_000)]
"""Of one request."""
Mean = Annotated[float, Field(ge=0, le=1e6)]
"""Of a number of things that is drawn."""
Seconds = Annotated[float, Field(ge=0, le=1e7)]
"""Between two things; at most 116 days."""
Span = Annotated[float, Field(gt=0, le=1e7)]
"""Seconds from the start of the workload to its end, or of a part of it."""
Rate = Annotated[float, Field(gt=0, le=1e6)]
"""Of arrivals a second."""
Share = Annotated[float, Field(ge=0, le=1)]
Sigma = Annotated[float, Field(ge=0, le=10)]
"""Spread of the logarithm of a length."""
Factor = Annotated[float, Field(ge=1, le=1000)]
"""Rate in bursts over the rate between them; 1: there are none."""


def in_order(fewest_name: str, fewest: int, most_name: str, most: int) -> None:
    """Refuse a range that ends before it starts. Raises ValueError with both ends."""
    if most < fewest:
        raise ValueError(f"{most_name} is {most}, below {fewest_name} {fewest}")
