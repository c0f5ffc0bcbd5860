"""TokenReviews, remembered for some seconds so that agents that try again cost the API server nothing."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from kvpool.fleet.access import ClusterAccess, TokenVerdict, UnavailableError
from kvpool.fleet.rate import RateLimit
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.fleet.settings import EnrolmentRules

_MOST_REMEMBERED: Final = 4096


class TokenReviews:
    """Verdicts of the API server, by the token's digest; tokens themselves are not kept."""

    def __init__(self, access: ClusterAccess, rules: EnrolmentRules) -> None:
        self._access = access
        self._rules = rules
        self._rate = RateLimit(rules.reviews_per_second, rules.reviews_burst)
        self._known: OrderedDict[bytes, tuple[float, TokenVerdict]] = OrderedDict()

    async def verdict(self, token: str, now: float) -> TokenVerdict:
        """What the API server says, at most `review_cache_seconds` ago; `now` is monotonic seconds.

        Raises RefusedError: TOO_MANY, API_UNAVAILABLE.
        """
        digest = hashlib.sha256(token.encode()).digest()
        remembered = self._known.get(digest)
        if remembered is not None and now - remembered[0] < self._rules.review_cache_seconds:
            return remembered[1]
        if not self._rate.take(now):
            text = f"more than {self._rules.reviews_per_second:g} enrolments a second; try again later"
            raise RefusedError(Reason.TOO_MANY, text)
        try:
            verdict = await self._access.review_token(token, self._rules.audience)
        except UnavailableError as error:
            text = f"the token could not be reviewed, try again later: {error}"
            raise RefusedError(Reason.API_UNAVAILABLE, text) from error
        self._known[digest] = (now, verdict)
        self._known.move_to_end(digest)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return verdict
