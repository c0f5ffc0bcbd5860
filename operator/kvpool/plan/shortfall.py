"""Sentences about nodes that take nothing, or not enough: equal reasons together."""

from collections.abc import Mapping

from kvpool.model.decisions import Reason
from kvpool.plan.demand import TierDemand
from kvpool.plan.offers import Offers
from kvpool.plan.sizes import listed, short_size

_REASONS_NAMED = 6


def refusals_text(refusals: Mapping[str, Reason]) -> str:
    """Say which nodes take nothing new, and why; empty when all do."""
    return _grouped({node: reason.message for node, reason in refusals.items()})


def shortfall_text(tier: TierDemand, offers: Offers) -> str:
    """Say what was asked, what there is room for, and what binds on each node."""
    limits = {offer.node: offer.limit for offer in offers.nodes}
    limits |= {node: reason.message for node, reason in offers.refusals.items()}
    asked = f"{short_size(tier.declared_bytes)} of {tier.tier} asked"
    if not limits:
        return f"{asked}, room for 0: no TierBudget rules {tier.tier} on any node that the pool selects"
    nodes = f"{len(offers.nodes)} of {len(limits)} nodes"
    return f"{asked}, room for {short_size(offers.most_bytes)} on {nodes}: {_grouped(limits)}"


def _grouped(sentences: Mapping[str, str]) -> str:
    by_sentence: dict[str, list[str]] = {}
    for node, sentence in sorted(sentences.items()):
        by_sentence.setdefault(sentence, []).append(node)
    parts = [f"{listed(nodes)}: {sentence}" for sentence, nodes in by_sentence.items()]
    more = len(parts) - _REASONS_NAMED
    return "; ".join(parts[:_REASONS_NAMED]) + (f"; and {more} other reasons" if more > 0 else "")
