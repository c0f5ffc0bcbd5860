"""How much spares help the domain that the accelerators are in."""

from dataclasses import dataclass
from typing import Final

from kvpool.cli.planning.sizing.amounts import time_text
from kvpool.cli.planning.sizing.options import SpareDomain
from kvpool.cli.screen import Column, Table
from kvpool.plan.availability import Swap, availability, spares_for
from kvpool.plan.timing.cards import LINKS
from kvpool.plan.timing.model import NS_PER_SECOND

NS_PER_YEAR: Final = 365 * 86_400 * NS_PER_SECOND


@dataclass(frozen=True, slots=True)
class SpareAnswer:
    """What is said of spares."""

    whole_shares: tuple[float, ...]
    """Share of the time that the domain is whole with no spare, with 1, 2, ..."""
    wanted: float
    spares_for_wanted: int | None
    """None: not even 64 spares are enough."""
    swap_outage_ns: int | None
    """None: what a swap does is not known."""


def ask_spares(domain: SpareDomain, weight_bytes: int, cards: int) -> SpareAnswer:
    """Answer for a domain; the weights of an instance are spread over its cards."""
    swap = domain.swap
    outage = None
    if swap is not None:
        outage = Swap(
            round(swap.detect * NS_PER_SECOND),
            round(swap.reconfigure * NS_PER_SECOND),
            -(-weight_bytes // cards),
            swap.unique_kv,
            LINKS[swap.weights_over],
            LINKS[swap.kv_over],
        ).outage_ns()
    return SpareAnswer(
        tuple(
            availability(domain.cards, spares, domain.down_share) for spares in range(domain.most_spares + 1)
        ),
        domain.wanted,
        spares_for(domain.cards, domain.down_share, domain.wanted),
        outage,
    )


def spares_table(domain: SpareDomain, answer: SpareAnswer) -> Table:
    """The table of spares."""
    rows = [
        (str(spares), f"{share:.4%}", time_text((1 - share) * NS_PER_YEAR))
        for spares, share in enumerate(answer.whole_shares)
    ]
    enough = "more than 64" if answer.spares_for_wanted is None else str(answer.spares_for_wanted)
    note = f"Whole {answer.wanted:.4%} of the time needs {enough} spares."
    if answer.swap_outage_ns is not None:
        note += f" Until a spare serves in a card's place: {time_text(answer.swap_outage_ns)}."
    title = f"Domain of {domain.cards} cards, each down {domain.down_share:.4%} of the time"
    columns = (Column("SPARES", right=True), Column("WHOLE", right=True), Column("DOWN A YEAR", right=True))
    return Table(title, columns, rows, note)
