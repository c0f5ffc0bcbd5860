"""The operator's side of a node's lease: what was promised is believed to the last of its seconds."""

from __future__ import annotations

from kvpool.model.nodeplan import LeaseTerms
from kvpool.model.observations import LeaseView


def never_granted(terms: LeaseTerms) -> LeaseView:
    """The lease of a node that this leader has not granted anything yet."""
    return LeaseView(None, terms.duration_seconds, terms.max_skew_seconds)


def granted(before: LeaseView, terms: LeaseTerms, now: float) -> LeaseView:
    """The lease after sending a Grant at `now`.

    A Grant under shorter terms does not shorten an earlier promise: the node may never receive it.
    """
    fresh = LeaseView(now, terms.duration_seconds, terms.max_skew_seconds)
    earlier, later = before.expires_at, fresh.expires_at
    return before if earlier is not None and later is not None and earlier > later else fresh
