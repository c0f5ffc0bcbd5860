"""How far kvpool may go for one object: its own mode, the cluster-wide cap, and pauses."""

from dataclasses import dataclass, replace

from kvpool.api import labels
from kvpool.api.common import Mode, ObjectMeta
from kvpool.model.decisions import Reason
from kvpool.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Standing:
    """What may be done for one object, and why not more."""

    asked: Mode
    mode: Mode
    """The lower of the object's mode and the cap."""
    paused: bool
    hold: Reason | None
    """Why nothing is done; None when kvpool may act."""

    @property
    def may_act(self) -> bool:
        """Whether decisions become actions."""
        return self.hold is None

    @property
    def advises(self) -> bool:
        """Whether what would be done is to be said."""
        return self.asked is not Mode.OBSERVE


_UNINSTALLING = Reason(
    "Uninstalling",
    f"kvpool is being uninstalled: delete the ConfigMap {labels.UNINSTALL_CONFIG_MAP} to keep it",
)
_CLUSTER_PAUSED = Reason("Paused", "the cluster is paused: run `kubectl kvpool resume --all` to go on")


def cluster_hold(snapshot: Snapshot) -> Reason | None:
    """Say why nothing at all is done in the cluster; None when objects may act."""
    if snapshot.paused:
        return _CLUSTER_PAUSED
    if snapshot.mode_cap is Mode.ENFORCE:
        return None
    text = f"the cluster-wide mode is {snapshot.mode_cap.value}: raise the chart's value `mode` to Enforce"
    return Reason("ModeCapped", text)


def is_retiring(snapshot: Snapshot) -> bool:
    """Whether everything is to be given back now, as kvpool is being uninstalled."""
    return snapshot.uninstall is not None and not snapshot.paused


def standing_of(what: str, metadata: ObjectMeta, mode: Mode, snapshot: Snapshot) -> Standing:
    """Return how far kvpool may go for the object called `what` in sentences, such as `pool a/b`."""
    effective = mode.capped(snapshot.mode_cap)
    annotated = metadata.annotations.get(labels.PAUSED, "false") != "false"
    return Standing(
        mode, effective, snapshot.paused or annotated, _hold(what, mode, effective, snapshot, annotated)
    )


def capacity_standing_of(what: str, metadata: ObjectMeta, mode: Mode, snapshot: Snapshot) -> Standing:
    """As `standing_of` for a pool or a budget: while kvpool is being uninstalled nothing is done for it."""
    standing = standing_of(what, metadata, mode, snapshot)
    if snapshot.uninstall is None or snapshot.paused:
        return standing
    return replace(standing, hold=_UNINSTALLING)


def _hold(what: str, mode: Mode, effective: Mode, snapshot: Snapshot, annotated: bool) -> Reason | None:
    if snapshot.paused:
        return _CLUSTER_PAUSED
    if annotated:
        return Reason("Paused", f"{what} is paused by its annotation {labels.PAUSED}: remove it to go on")
    if effective is not mode:
        return Reason(
            "ModeCapped",
            f"{what} asks for mode {mode.value}, the cluster-wide cap is {effective.value}: "
            f"raise the chart's value `mode` to {mode.value}",
        )
    if mode is not Mode.ENFORCE:
        return Reason(f"Mode{mode.value}", f"{what} is in mode {mode.value}: set it to Enforce to act")
    return None
