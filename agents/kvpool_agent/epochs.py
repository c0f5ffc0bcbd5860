"""The operator epochs this node accepts: never a lower one again, over restarts too."""

from __future__ import annotations

import json
from pathlib import Path

import structlog
from pydantic import TypeAdapter, ValidationError

from kvpool_keeper.contract import Count, read_small, replace_whole

log = structlog.get_logger()

_EPOCH: TypeAdapter[int] = TypeAdapter(Count)


class EpochGate:
    """Remembers the highest operator epoch ever accepted, on the disk before it is acted on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._keeps = True
        self.highest = 0
        self.refused = 0
        """Messages refused because of a lower epoch, since the start of the agent."""

    def load(self) -> None:
        """Read what was accepted before; an unreadable file counts as nothing and is overwritten later."""
        try:
            self.highest = _EPOCH.validate_json(read_small(self._file, follow=False))
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            log.warning("highest operator epoch is unreadable", file=str(self._file), error=str(error))

    def admits(self, epoch: int, what: str) -> bool:
        """Accept or refuse a message of `epoch`; a higher one that cannot be kept on disk is refused."""
        if epoch < self.highest:
            self.refused += 1
            log.warning("refused a lower operator epoch", what=what, epoch=epoch, highest=self.highest)
            return False
        if epoch > self.highest:
            try:
                if self._keeps:
                    replace_whole(self._file, json.dumps(epoch).encode(), durable=True)
            except OSError as error:
                log.warning("refused an epoch that cannot be kept", file=str(self._file), error=str(error))
                return False
            self.highest = epoch
        return True

    def forget(self) -> None:
        """Remove the file; from now on only this process knows. Raises OSError."""
        self._keeps = False
        self._file.unlink(missing_ok=True)
