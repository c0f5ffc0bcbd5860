"""One unit's whole life inside this process, with the agent killed before or after any of its effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from pydantic import TypeAdapter

from kvpool_agent import actions
from kvpool_agent.adopt import adopt
from kvpool_agent.backends.base import Backend
from kvpool_agent.backends.file import FileBackend
from kvpool_agent.backends.tmpfs import Ability, TmpfsBackend
from kvpool_agent.binder import Binder
from kvpool_agent.journal import Journal
from kvpool_agent.places import Places
from kvpool_agent.plan_apply import plan_by_name
from kvpool_agent.units import UnitPlan, UnitView
from kvpool_keeper import contract
from kvpool_keeper.contract import KeeperPhase, KeeperSpec, KeeperStatus, Release
from kvpool_keeper.segment import Segment, allocate

MARK = b"kept over every death of the agent"
SIZE_BYTES = 1 << 20
EFFECTS = (
    "kvpool_agent.journal.replace_whole",
    "kvpool_agent.journal.sync_folder",
    "kvpool_agent.actions.do",
    "kvpool_agent.actions.undo",
    "kvpool_keeper.contract.write_file",
)
MOST_STEPS = 50


class Killed(BaseException):
    """The agent is gone: SIGKILL, which nothing catches."""


class Machine:
    """A state directory, an agent that can be killed and started, and a keeper that lives on."""

    def __init__(self, folder: Path, ability: Ability, backend: str) -> None:
        self.places = Places(folder / "state")
        self.places.make()
        self.memory = folder / "shm"
        self.ssd = folder / "ssd"
        for place in (self.memory, self.ssd):
            place.mkdir()
        self._ability = ability
        self._boot_id = contract.boot_id()
        self._segment: Segment | None = None
        self.unit = UnitPlan("inference.chat.x.n0", 1, SIZE_BYTES, backend, numa_node=-1, path=str(self.ssd))
        self.binder: Binder
        self.start()

    def start(self) -> tuple[UnitView, ...]:
        """Start the agent: what it finds is what its predecessor left."""
        journal = Journal(self.places.journal, self.places.quarantine)
        tmpfs = TmpfsBackend(
            self._ability,
            owner=(0, 0),
            sysroot=Path("/sys"),
            units=self.places.units,
            shared_memory=self.memory,
        )
        backends: dict[str, Backend] = {"tmpfs": tmpfs, "file": FileBackend([self.ssd], self.places.units)}
        self.binder = Binder(self.places, journal, backends, self._boot_id, (0, 0))
        return adopt(journal, self.binder)

    def live(self, release: Release) -> None:
        """Follow a plan until it is fulfilled; the keeper does its part in between."""
        for _ in range(MOST_STEPS):
            self.keep()
            views = self.binder.step_on(plan_by_name([self._planned(release)]), hold=False)
            if [view.phase for view in views] == ["Bound" if release is Release.NONE else "Released"]:
                return
        raise AssertionError(f"not there after {MOST_STEPS} steps: {views}")

    def drop(self) -> None:
        """Follow the plan that names nothing."""
        self.binder.step_on({}, hold=False)

    def keep(self) -> None:
        """Do what the keeper does, for real, on the same files."""
        directory = self.places.unit(self.unit.name, 1)
        spec = contract.read_file(directory / contract.SPEC_FILE, KeeperSpec)
        if spec is None:
            return
        if spec.release is not Release.NONE:
            self.end_keeper()
            self._say(directory, KeeperPhase.RELEASED, 0)
            return
        if self._segment is None:
            path = spec.file_path(directory)
            self._segment = allocate(path, SIZE_BYTES, adopt=True, prefault=False, progress=lambda _: None)
            with path.open("r+b") as stream:
                stream.write(MARK)
        self._say(directory, KeeperPhase.READY, SIZE_BYTES)

    def end_keeper(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None

    def data(self) -> bytes:
        """Read what the keeper holds, through its own descriptor."""
        assert self._segment is not None
        with Path(f"/proc/self/fd/{self._segment.descriptor}").open("rb") as stream:
            return stream.read(len(MARK))

    @property
    def keeper_holds(self) -> bool:
        return self._segment is not None

    def leftovers(self) -> list[str]:
        """Everything on the machine that carries the unit's name."""
        mounts = [m.path for m in actions.mounts() if Path(m.path).is_relative_to(self.places.units)]
        places = (self.places.units, self.places.journal, self.memory, self.ssd)
        return mounts + [str(path) for place in places for path in place.iterdir()]

    def _planned(self, release: Release) -> UnitPlan:
        return UnitPlan(
            self.unit.name,
            1,
            SIZE_BYTES,
            self.unit.backend,
            numa_node=-1,
            path=self.unit.path,
            release=release,
        )

    def _say(self, directory: Path, phase: KeeperPhase, resident_bytes: int) -> None:
        status = KeeperStatus(
            boot_id=self._boot_id,
            pid=0,
            phase=phase,
            heartbeat_boottime_ns=contract.boottime_ns(),
            generation=1,
            resident_bytes=resident_bytes,
        )
        # Not through `contract.write_file`: the keeper is another process, the kill is not its own.
        contract.replace_whole(
            directory / contract.STATUS_FILE,
            TypeAdapter(KeeperStatus).dump_json(status),
            durable=False,
        )


@contextmanager
def killed_at(count: int) -> Iterator[Callable[[], bool]]:
    """Kill the agent at its `count`-th chance: there is one before and one after every effect.

    Yields a function that says whether it was killed.
    """
    left = count
    killed = False

    def chance() -> None:
        nonlocal left, killed
        left -= 1
        if left < 0 and not killed:
            killed = True
            raise Killed

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def effect(*args: object, **options: object) -> object:
            chance()
            result = real(*args, **options)
            chance()
            return result

        return effect

    patches = []
    for name in EFFECTS:
        module, _, attribute = name.rpartition(".")
        real = getattr(__import__(module, fromlist=[attribute]), attribute)
        patches.append(mock.patch(name, deadly(real)))
    for patch in patches:
        patch.start()
    try:
        yield lambda: killed
    finally:
        for patch in reversed(patches):
            patch.stop()
