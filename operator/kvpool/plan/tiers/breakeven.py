"""From how many cached tokens on it is faster to load KV than to compute it again.

    load wins iff   hit * kappa / BW + lam < b * hit + c * hit^2

The forms on both sides are those of `plan.timing`; the comparison is kvpool's own. "Critical
cached-to-prefill token ratio" in arXiv 2601.19910 is the same question.
"""

import math

from kvpool.plan.timing.model import NS_PER_SECOND, LinkModel, TimingModel


def load_wins_from_tokens(timing: TimingModel, kv_bytes_per_token: int, link: LinkModel) -> int | None:
    """Return the fewest cached tokens for which loading is faster; None when it never is.

    Larger counts win as well: computing grows with the square, loading does not.
    """
    per_token = kv_bytes_per_token * NS_PER_SECOND / link.bytes_per_second - timing.prefill_token_ns
    square, setup = timing.prefill_square_ns, float(link.setup_ns)
    if square == 0:
        if per_token >= 0:
            return None
        return math.floor(setup / -per_token) + 1
    # square * n^2 - per_token * n - setup > 0
    root = (per_token + math.sqrt(per_token * per_token + 4 * square * setup)) / (2 * square)
    return max(1, math.floor(root) + 1)
