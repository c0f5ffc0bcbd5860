"""Logs a trouble that lasts once: when it begins and when it becomes another one."""

import structlog

from kvpool.cluster.errors import ApiError

_log = structlog.get_logger()


class Complaints:
    """The newest trouble of each subject."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[type[ApiError], int, str]] = {}

    def note(self, subject: str, error: ApiError | None) -> None:
        """Log `error` unless it is the one that `subject` had already; None: it works again."""
        if error is None:
            if self._said.pop(subject, None) is not None:
                _log.info("works again", what=subject)
            return
        kind = (type(error), error.status, error.reason)
        if self._said.get(subject) != kind:
            self._said[subject] = kind
            _log.warning("does not work, trying on", what=subject, error=str(error))
