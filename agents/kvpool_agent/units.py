"""What a unit is on the node: as planned, as journalled, and as found in the kernel. Plain data, no I/O."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from pydantic.dataclasses import dataclass

from kvpool.rules.unit_folder import unit_directory_name
from kvpool_keeper.contract import Count, KeeperStatus, MooncakeMount, Release


@dataclass(frozen=True)
class UnitPlan:
    """One unit of the operator's plan; see NodePlan.units."""

    name: str
    generation: Count
    size_bytes: Count
    backend: str
    """tmpfs or file."""
    pool: str = ""
    tier: str = ""
    numa_node: int = -1
    path: str = ""
    """Folder of backend file."""
    reserve_bytes: Count = 0
    mooncake: MooncakeMount | None = None
    adopt: bool = True
    release: Release = Release.NONE
    unmount_at_deadline: bool = False

    @property
    def key(self) -> str:
        """Name of its directory, record and label: unique for name and generation."""
        return unit_directory_name(self.name, self.generation)


class ActionKind(StrEnum):
    """One thing done to the machine, with its undo."""

    MAKE_FOLDER = "MakeFolder"
    """Undo: remove it when it is empty."""
    MOUNT_TMPFS = "MountTmpfs"
    """Undo: unmount it when the label is ours; the kernel refuses while anything uses it."""


@dataclass(frozen=True)
class Action:
    """One step of preparing a unit. Doing it twice is the same as once."""

    kind: ActionKind
    path: str
    label: str = ""
    options: str = ""


class RecordPhase(StrEnum):
    """How far the agent is with a unit, as its journal says."""

    PREPARING = "Preparing"
    """Actions are being done, up to and including number `at`; after a crash they are undone."""
    PREPARED = "Prepared"
    """The place is there; the keeper allocates."""
    BOUND = "Bound"
    """The keeper held all of it, and the kernel agreed."""
    RELEASING = "Releasing"
    """No keeper holds it any more; files, mount and folders are being removed."""
    RELEASED = "Released"
    """Nothing is left of it."""
    LOST = "Lost"
    """The memory is gone: another boot, or somebody removed it."""


@dataclass(frozen=True)
class Record:
    """One unit in the journal."""

    unit: UnitPlan
    phase: RecordPhase
    boot_id: str
    actions: tuple[Action, ...]
    at: Count
    """Index of the action being done, while Preparing."""
    file: str
    """Absolute path of the segment's file."""
    volatile: bool
    """Whether the unit ends with the boot."""
    placement_bound: bool
    """Whether the kernel was told to place the pages on the unit's NUMA node."""
    mount_options: str = ""
    """As the kernel shows them, read back after mounting."""
    device_inode: str = ""
    """`<st_dev>:<st_ino>` of the file when it was bound."""
    medium: str = ""
    """The filesystem that the unit's folder was on, for backend file; empty when that was not noted."""
    message: str = ""
    version: int = 1

    @property
    def key(self) -> str:
        """As UnitPlan.key."""
        return self.unit.key


@dataclass(frozen=True)
class Finding:
    """Something verify found."""

    reason: str
    message: str
    degrades: bool = True
    """False for what people should know although the unit is as good as it can be."""


@dataclass(frozen=True)
class Reality:
    """What the kernel and the keeper say of one unit."""

    exists: bool
    """Whether the place (mount, folder) is there."""
    unseen: bool = False
    """Whether the medium could not be looked at: then nothing here says that the unit is lost."""
    resident_bytes: int = 0
    file_bytes: int = -1
    """st_size of the segment's file; -1 when there is none."""
    device_inode: str = ""
    placement: dict[int, int] = field(default_factory=dict)
    placement_verified: bool = False
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class KeeperView:
    """What is known of a unit's keeper."""

    status: KeeperStatus | None = None
    alive: bool = False
    """Whether its heartbeat is fresh."""
    age_seconds: float = 0.0
    trouble: str = ""
    """Why its status file cannot be read."""


@dataclass(frozen=True)
class Source:
    """A medium that units can be bound from."""

    key: str
    tier: str
    backend: str
    numa_node: int
    capacity_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class UnitView:
    """One unit as it is reported; see UnitReport."""

    name: str
    generation: int
    phase: str
    size_bytes: int
    resident_bytes: int = 0
    used_bytes: int | None = None
    placement: dict[int, int] = field(default_factory=dict)
    placement_verified: bool = False
    segment: str = ""
    findings: tuple[Finding, ...] = ()
    message: str = ""
