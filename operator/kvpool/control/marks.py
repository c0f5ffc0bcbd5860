"""When each stage of each open Remap was first seen to be over: this leadership's memory, bounded."""

from collections.abc import Iterable, Mapping

from kvpool.api.remap import StageName
from kvpool.model.decisions import Mark
from kvpool.model.ids import ObjectKey


class Marks:
    """First sighting wins. A new leader starts empty: what objects do not say is unknown, not guessed."""

    def __init__(self) -> None:
        self._at: dict[ObjectKey, dict[StageName, float]] = {}

    def add(self, marks: Iterable[Mark]) -> None:
        """Remember marks that are new."""
        for mark in marks:
            self._at.setdefault(mark.remap, {}).setdefault(mark.stage, mark.at)

    def keep_only(self, open_remaps: Iterable[ObjectKey]) -> None:
        """Forget Remaps that are over or gone."""
        wanted = set(open_remaps)
        for key in [key for key in self._at if key not in wanted]:
            del self._at[key]

    def view(self) -> Mapping[ObjectKey, Mapping[StageName, float]]:
        """A copy for a Snapshot."""
        return {key: dict(stages) for key, stages in self._at.items()}
