"""DRAM and CXL memory as tmpfs: a mount of its own for each unit, or a file on the shared-memory mount."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kvpool_agent import actions
from kvpool_agent.backends.base import file_reality, taken_by
from kvpool_agent.places import LABEL_PREFIX, SEGMENT_FILE
from kvpool_agent.topology import numa_nodes
from kvpool_agent.units import (
    Action,
    ActionKind,
    Finding,
    KeeperView,
    Reality,
    Record,
    RecordPhase,
    Source,
    UnitPlan,
)
from kvpool_keeper.contract import MEMORY_FOLDER

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KIBI = 1024


@dataclass(frozen=True)
class Ability:
    """What this process may do with tmpfs here."""

    mount: bool
    mpol: bool = False
    noswap: bool = False


def find_ability(wish: Literal["auto", "privileged", "shm"], scratch: Path) -> Ability:
    """Find out by mounting a tmpfs of one page in `scratch`; see --tmpfs. Raises ActionError."""
    if wish == "shm":
        return Ability(mount=False)
    why = ""
    while (left := actions.find_mount(scratch)) is not None and left.label == f"{LABEL_PREFIX}trial":
        actions.unmount(scratch)  # by an agent that was killed as it tried
    for ability in (
        Ability(mount=True, mpol=True, noswap=True),
        Ability(mount=True, mpol=True),
        Ability(mount=True),
    ):
        try:
            actions.mount_tmpfs(scratch, f"{LABEL_PREFIX}trial", _options(PAGE_BYTES, 0, ability, (0, 0)))
        except OSError as error:
            why = str(error.strerror)
            continue
        actions.unmount(scratch)
        return ability
    if wish == "privileged":
        raise actions.ActionError(
            f"--tmpfs privileged: a tmpfs cannot be mounted in {scratch}: {why}; "
            "run with CAP_SYS_ADMIN, or say shm"
        )
    return Ability(mount=False)


class TmpfsBackend:
    """Binds memory. With the right to mount, every unit gets a tmpfs with a size and a NUMA node."""

    name = "tmpfs"

    def __init__(
        self,
        ability: Ability,
        *,
        owner: tuple[int, int],
        sysroot: Path,
        units: Path,
        shared_memory: Path,
        proc: Path = Path("/proc"),
    ) -> None:
        self._ability = ability
        self._owner = owner
        self._sysroot = sysroot
        self._units = units
        self._shared_memory = shared_memory
        self._proc = proc

    def discover(self) -> tuple[Source, ...]:
        """Return one source a NUMA node. CPU-less nodes are CXL memory."""
        limit = None
        if not self._ability.mount:
            shared = os.statvfs(self._shared_memory)
            limit = (shared.f_blocks * shared.f_frsize, shared.f_bavail * shared.f_frsize)
        return tuple(
            Source(
                key=f"{'dram' if node.has_cpus else 'cxl'}/n{node.number}",
                tier="DRAM" if node.has_cpus else "CXL",
                backend=self.name,
                numa_node=node.number,
                capacity_bytes=node.capacity_bytes if limit is None else min(node.capacity_bytes, limit[0]),
                free_bytes=node.free_bytes if limit is None else min(node.free_bytes, limit[1]),
            )
            for node in numa_nodes(self._sysroot)
        )

    def refuse(self, unit: UnitPlan, others: Iterable[Record]) -> str:
        """Refuse what the NUMA node has no free memory for: MPOL_BIND would end in the OOM killer."""
        sources = [s for s in self.discover() if unit.numa_node in (-1, s.numa_node)]
        if not sources:
            known = ", ".join(str(source.numa_node) for source in self.discover())
            return f"NUMA node {unit.numa_node} has no memory here; there are: {known or 'none'}"
        free = sum(source.free_bytes for source in sources)
        if unit.size_bytes + unit.reserve_bytes > free:
            return (
                f"{unit.size_bytes} bytes and {unit.reserve_bytes} in reserve do not fit: "
                f"{free} are free on NUMA node {unit.numa_node}"
            )
        return taken_by(self.draft(unit, self._units / unit.key, ""), others)

    def draft(self, unit: UnitPlan, directory: Path, boot_id: str) -> Record:
        """A mount at `<directory>/mem`, or a folder on the shared-memory mount."""
        label = f"{LABEL_PREFIX}{unit.key}"
        made = [Action(ActionKind.MAKE_FOLDER, str(directory))]
        if self._ability.mount:
            place = directory / MEMORY_FOLDER
            options = _options(unit.size_bytes, unit.numa_node, self._ability, self._owner)
            made += [
                Action(ActionKind.MAKE_FOLDER, str(place)),
                Action(ActionKind.MOUNT_TMPFS, str(place), label, options),
            ]
        else:
            place = self._shared_memory / label
            made.append(Action(ActionKind.MAKE_FOLDER, str(place)))
        return Record(
            unit=unit,
            phase=RecordPhase.PREPARING,
            boot_id=boot_id,
            actions=tuple(made),
            at=0,
            file=str(place / SEGMENT_FILE),
            volatile=True,
            placement_bound=self._ability.mount and self._ability.mpol and unit.numa_node >= 0,
        )

    def read_back(self, record: Record) -> Record:
        """Remember the mount's options as the kernel shows them."""
        mounted = actions.find_mount(Path(record.file).parent)
        return dataclasses.replace(record, mount_options=mounted.options if mounted else "")

    def look(self, record: Record, keeper: KeeperView) -> Reality:
        """Check mount, file, swap and placement."""
        findings: list[Finding] = []
        if not self._place_is_there(record, findings):
            return Reality(exists=False, findings=tuple(findings))
        reality = file_reality(record, findings)
        if _may_swap(record, self._proc):
            findings.append(
                Finding("MaySwap", "the machine swaps and the mount has no noswap", degrades=False)
            )
        placement = {}
        if keeper.alive and keeper.status is not None and reality.device_inode:
            placement = self._placement(keeper.status.pid, reality.device_inode)
        node = record.unit.numa_node
        elsewhere = sum(count for number, count in placement.items() if number != node)
        if node >= 0 and record.placement_bound and elsewhere:
            findings.append(
                Finding("PlacementDrift", f"{elsewhere} bytes are not on NUMA node {node}: {placement}")
            )
        verified = (
            record.placement_bound and not elsewhere and placement.get(node, 0) >= record.unit.size_bytes
        )
        if node >= 0 and not verified and not elsewhere and reality.file_bytes >= 0:
            why = (
                "the kernel was not told" if not record.placement_bound else "the keeper's maps tell nothing"
            )
            findings.append(
                Finding("PlacementUnverified", f"NUMA node {node} is unverified: {why}", degrades=False)
            )
        return dataclasses.replace(
            reality, placement=placement, placement_verified=verified, findings=tuple(findings)
        )

    def remains(self) -> tuple[str, ...]:
        """Keys of our mounts below the units' folder, and of our folders on the shared-memory mount."""
        mounted = [m.label for m in actions.mounts() if Path(m.path).is_relative_to(self._units)]
        folders = [path.name for path in self._shared_memory.glob(f"{LABEL_PREFIX}*") if path.is_dir()]
        labels = mounted + ([] if self._ability.mount else folders)
        return tuple(label.removeprefix(LABEL_PREFIX) for label in labels if label.startswith(LABEL_PREFIX))

    def _placement(self, keeper_pid: int, device_inode: str) -> dict[int, int]:
        """Read where the pages are, through the keeper's mapping.

        A keeper in a pod knows its pid in its own namespace only; then it is looked for among the processes
        of the keepers' user.
        """
        placement = mapped_placement(self._proc / str(keeper_pid), device_inode)
        if placement:
            return placement
        for process in self._proc.glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.stat().st_uid == self._owner[0]:
                    placement = mapped_placement(process, device_inode)
            if placement:
                return placement
        return {}

    def _place_is_there(self, record: Record, findings: list[Finding]) -> bool:
        place = Path(record.file).parent
        if not any(action.kind is ActionKind.MOUNT_TMPFS for action in record.actions):
            if not place.is_dir():
                findings.append(Finding("FolderGone", f"{place} is not there any more"))
                return False
            return True
        mounted = actions.find_mount(place)
        if mounted is None or mounted.label != f"{LABEL_PREFIX}{record.key}":
            there = "nothing" if mounted is None else mounted.label
            findings.append(
                Finding("MountGone", f"{place}: {there} is mounted, not {LABEL_PREFIX}{record.key}")
            )
            return False
        if record.mount_options and mounted.options != record.mount_options:
            findings.append(
                Finding(
                    "MountChanged",
                    f"{place}: options are {mounted.options}, bound was {record.mount_options}",
                )
            )
        return True


def mapped_placement(process: Path, device_inode: str) -> dict[int, int]:
    """Return bytes by NUMA node of the fullest mapping that a process has of a file; {} when unreadable.

    `process` is its folder in proc, `device_inode` as in Record.
    """
    try:
        maps = (process / "maps").read_text(errors="replace")
        numa_maps = (process / "numa_maps").read_text(errors="replace")
    except OSError:
        return {}
    starts = {line.split("-", 1)[0] for line in maps.split("\n") if _is_mapping_of(line, device_inode)}
    best: dict[int, int] = {}
    for line in numa_maps.split("\n"):
        if line.split(" ", 1)[0] not in starts:
            continue
        page = re.search(r"kernelpagesize_kB=(\d+)", line)
        page_bytes = int(page[1]) * KIBI if page else PAGE_BYTES
        found = {int(node): int(pages) * page_bytes for node, pages in re.findall(r" N(\d+)=(\d+)", line)}
        if sum(found.values()) > sum(best.values()):
            best = found
    return best


def _is_mapping_of(line: str, device_inode: str) -> bool:
    fields = line.split(maxsplit=5)
    if len(fields) < 5:
        return False
    major, _, minor = fields[3].partition(":")
    return f"{os.makedev(int(major, 16), int(minor, 16))}:{fields[4]}" == device_inode


def _options(size_bytes: int, numa_node: int, ability: Ability, owner: tuple[int, int]) -> str:
    whole_pages = -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
    parts = [f"size={whole_pages}", "mode=0700", f"uid={owner[0]}", f"gid={owner[1]}"]
    if ability.mpol and numa_node >= 0:
        parts.append(f"mpol=bind:{numa_node}")
    if ability.noswap:
        parts.append("noswap")
    return ",".join(parts)


def _may_swap(record: Record, proc: Path) -> bool:
    try:
        swaps = len((proc / "swaps").read_text(errors="replace").splitlines()) > 1
    except OSError:
        return False
    return swaps and "noswap" not in record.mount_options
