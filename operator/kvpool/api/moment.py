"""Moments as kvpool writes them into its objects: RFC 3339 in UTC, `2026-01-02T03:04:05.678Z`.

Decisions are made on some of them. The pattern lets through real dates and nothing else, so that whatever the
API server stores can be read again.
"""

from typing import Annotated, Final

from pydantic import Field

_LONG_MONTH: Final = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_SHORT_MONTH: Final = r"(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_FEBRUARY: Final = r"02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP_DAY: Final = r"([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29"
_DATE: Final = rf"([12][0-9]{{3}}-({_LONG_MONTH}|{_SHORT_MONTH}|{_FEBRUARY})|{_LEAP_DAY})"
_TIME: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"

MOMENT_PATTERN: Final = rf"^{_DATE}T{_TIME}Z$"

Moment = Annotated[str, Field(max_length=40, pattern=MOMENT_PATTERN)]
