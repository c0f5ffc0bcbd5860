"""Carries out the steps of `plan_apply` on this machine, write-ahead, and looks at what came of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path

import structlog

from kvpool_agent import actions
from kvpool_agent.actions import ActionError
from kvpool_agent.backends.base import Backend
from kvpool_agent.journal import Journal
from kvpool_agent.places import Places
from kvpool_agent.plan_apply import Look, Situation, Step, StepKind, keeper_spec, next_steps
from kvpool_agent.timing import PREPARE_RETRY_SECONDS, STEP_RETRY_SECONDS, VERIFY_SECONDS
from kvpool_agent.unit_view import unit_views
from kvpool_agent.units import Finding, KeeperView, Reality, Record, RecordPhase, Source, UnitPlan, UnitView
from kvpool_keeper import contract
from kvpool_keeper.contract import KEEPER_SILENT_SECONDS, ContractError, KeeperSpec, KeeperStatus, boottime_ns

log = structlog.get_logger()

NANOSECONDS = 1_000_000_000
MOST_ROUNDS = 4
STEADY = frozenset({RecordPhase.BOUND, RecordPhase.LOST, RecordPhase.RELEASED})

REMOVE_TRIES = 3
"""Of a unit's folder, into which the lease is written about once a second meanwhile."""


class Binder:
    """All units of the node. Its methods block (fsync, mount) and are called from one thread at a time."""

    def __init__(
        self,
        places: Places,
        journal: Journal,
        backends: Mapping[str, Backend],
        boot_id: str,
        owner: tuple[int, int],
    ) -> None:
        self._places = places
        self._journal = journal
        self._backends = backends
        self._boot_id = boot_id
        self._owner = owner
        self._failures: dict[str, tuple[str, float]] = {}
        self._realities: dict[str, tuple[Reality, float]] = {}

    @property
    def backends(self) -> frozenset[str]:
        """Names of the backends there are."""
        return frozenset(self._backends)

    @property
    def held_directories(self) -> tuple[Path, ...]:
        """Directories of the units that may have a keeper."""
        return tuple(
            self._directory(record)
            for record in list(self._journal.records.values())
            if record.phase not in (RecordPhase.RELEASING, RecordPhase.RELEASED)
        )

    def sources(self) -> tuple[Source, ...]:
        """What units can be bound from. Raises OSError."""
        return tuple(source for backend in self._backends.values() for source in backend.discover())

    def step_on(self, planned: Mapping[str, UnitPlan] | None, *, hold: bool) -> tuple[UnitView, ...]:
        """Do what can be done now towards the plan; return how every unit stands. Raises OSError."""
        situation = self._look_around(planned, hold=hold)
        for _ in range(MOST_ROUNDS):
            steps = next_steps(situation)
            if not steps:
                break
            for step in steps:
                self._do(step)
            situation = self._look_around(planned, hold=hold)
        troubles = {key: message for key, (message, _) in self._failures.items()}
        return unit_views(situation, troubles, boottime_ns())

    def _look_around(self, planned: Mapping[str, UnitPlan] | None, *, hold: bool) -> Situation:
        records = dict(self._journal.records)
        now = time.monotonic()
        wanted = {unit.key for unit in (planned or {}).values()} | records.keys()
        self._failures = {key: failed for key, failed in self._failures.items() if key in wanted}
        return Situation(
            planned=planned,
            records=records,
            looks={key: self._look(record) for key, record in records.items()},
            orphans=self._found_keys() - records.keys(),
            failing=frozenset(key for key, (_, until) in self._failures.items() if now < until),
            hold=hold,
            boot_id=self._boot_id,
        )

    def _look(self, record: Record) -> Look:
        directory = self._directory(record)
        keeper = self._keeper(directory)
        try:
            spec = contract.read_file(directory / contract.SPEC_FILE, KeeperSpec)
        except ContractError as error:
            log.warning("spec is unreadable and will be written anew", error=str(error))
            spec = None
        known, seen_at = self._realities.get(record.key, (None, 0.0))
        if known is None or record.phase not in STEADY or time.monotonic() - seen_at > VERIFY_SECONDS:
            known = self._reality(record, keeper)
            self._realities[record.key] = known, time.monotonic()
        return Look(known, keeper, spec)

    def _reality(self, record: Record, keeper: KeeperView) -> Reality:
        """Ask the backend; a unit that cannot be looked at is not lost, and harms no other unit."""
        try:
            return self._backends[record.unit.backend].look(record, keeper)
        except OSError as error:
            log.warning("unit cannot be looked at", unit=record.key, error=str(error))
            return Reality(exists=True, unseen=True, findings=(Finding("CannotLook", str(error)),))

    def _keeper(self, directory: Path) -> KeeperView:
        try:
            status = contract.read_file(directory / contract.STATUS_FILE, KeeperStatus)
        except ContractError as error:
            return KeeperView(trouble=str(error))
        if status is None or status.boot_id != self._boot_id:
            return KeeperView()
        age_seconds = (boottime_ns() - status.heartbeat_boottime_ns) / NANOSECONDS
        # A heartbeat from the future is none: such a keeper would seem alive for ever.
        return KeeperView(status, abs(age_seconds) < KEEPER_SILENT_SECONDS, age_seconds)

    def _found_keys(self) -> frozenset[str]:
        """Keys of all objects that carry our name."""
        told = {path.parent.name for path in self._places.units.glob(f"*/{contract.SPEC_FILE}")}
        return frozenset(told.union(*(self._remains(backend) for backend in self._backends.values())))

    def _remains(self, backend: Backend) -> tuple[str, ...]:
        """Ask one backend; one whose medium fails hides its own remains alone."""
        try:
            return backend.remains()
        except OSError as error:
            log.warning("medium cannot be searched for remains", backend=backend.name, error=str(error))
            return ()

    def _do(self, step: Step) -> None:
        key = step.unit.key
        try:
            self._carry_out(step)
        except (ActionError, OSError) as error:
            message = f"{step.kind}: {error}"
            wait = PREPARE_RETRY_SECONDS if step.record is None else STEP_RETRY_SECONDS
            self._failures[key] = message, time.monotonic() + wait
            log.warning("step failed", step=step.kind, unit=key, error=str(error))
        else:
            self._failures.pop(key, None)
        self._realities.pop(key, None)

    def _carry_out(self, step: Step) -> None:
        record = step.record
        if record is None:
            self._prepare(step.unit) if step.kind is StepKind.PREPARE else self._readopt(step.unit)
            return
        match step.kind:
            case StepKind.TELL:
                assert step.spec is not None
                self._journal.write(record)
                contract.write_file(self._directory(record) / contract.SPEC_FILE, step.spec, durable=True)
            case StepKind.BIND:
                reality = self._realities[record.key][0]
                bound = dataclasses.replace(
                    record, phase=RecordPhase.BOUND, device_inode=reality.device_inode, message=""
                )
                self._journal.write(bound)
            case StepKind.LOSE:
                self._journal.write(dataclasses.replace(record, phase=RecordPhase.LOST, message=step.message))
            case StepKind.REMOVE:
                self.remove(record)
            case _:
                self._journal.forget(record.key)
        log.info("step", step=step.kind, unit=record.key, message=step.message)

    def _prepare(self, unit: UnitPlan) -> None:
        """Make the unit's place, each action journalled before it is done; a failure undoes what was done."""
        backend = self._backends.get(unit.backend)
        if backend is None:
            raise ActionError(
                f"backend {unit.backend!r} is not supported; there are: {', '.join(self._backends)}"
            )
        refusal = backend.refuse(unit, self._journal.records.values())
        if refusal:
            raise ActionError(refusal)
        record = backend.draft(unit, self._places.unit(unit.name, unit.generation), self._boot_id)
        try:
            for number, action in enumerate(record.actions):
                record = dataclasses.replace(record, at=number)
                self._journal.write(record)
                actions.do(action, self._owner)
        except (ActionError, OSError):
            self.roll_back(record)
            raise
        self._journal.write(dataclasses.replace(backend.read_back(record), phase=RecordPhase.PREPARED))
        log.info("step", step=StepKind.PREPARE, unit=record.key)

    def roll_back(self, record: Record) -> None:
        """Undo a preparation, whatever part of it was done. Raises ActionError."""
        for action in reversed(record.actions[: record.at + 1]):
            actions.undo(action)
        self._journal.forget(record.key)
        log.info("rolled back", unit=record.key, at=record.at)

    def _readopt(self, unit: UnitPlan) -> None:
        """Make a lost record anew, when keeper's spec and place agree with the plan. Raises ActionError."""
        directory = self._places.unit(unit.name, unit.generation)
        backend = self._backends.get(unit.backend)
        try:
            spec = contract.read_file(directory / contract.SPEC_FILE, KeeperSpec)
        except ContractError:
            spec = None
        if backend is None or spec is None:
            raise ActionError(
                f"{unit.key} exists, but neither a record nor a readable spec says what it is; "
                "it is kept: raise the generation, or remove it by hand"
            )
        draft = backend.draft(unit, directory, self._boot_id)
        record = dataclasses.replace(
            backend.read_back(draft), phase=RecordPhase.PREPARED, at=len(draft.actions) - 1
        )
        want = dataclasses.replace(
            keeper_spec(record), release=spec.release, unmount_at_deadline=spec.unmount_at_deadline
        )
        if want != spec or not backend.look(record, KeeperView()).exists:
            raise ActionError(
                f"{unit.key} exists, but is not what the plan names; it is kept: raise the generation"
            )
        self._journal.write(record)
        log.warning("adopted a unit whose record was lost", unit=record.key)

    def remove(self, record: Record) -> None:
        """Remove what is left of a unit that no keeper holds. Raises ActionError while anything uses it."""
        file = Path(record.file)
        if file.exists():
            found = file.stat()
            users = actions.mappers(frozenset({(found.st_dev, found.st_ino)}))
            if users or actions.is_locked(file):
                by = (
                    f"pid {', '.join(map(str, users))}" if users else "a keeper that cannot be seen from here"
                )
                raise ActionError(f"{file} is in use by {by}; it is kept until that ends")
        self._journal.write(dataclasses.replace(record, phase=RecordPhase.RELEASING))
        file.unlink(missing_ok=True)
        directory = self._directory(record)
        for _ in range(REMOVE_TRIES):
            for name in (contract.SPEC_FILE, contract.LEASE_FILE, contract.STATUS_FILE):
                (directory / name).unlink(missing_ok=True)
                for unfinished in directory.glob(f".{name}.*"):
                    unfinished.unlink(missing_ok=True)  # of a keeper or an agent that was killed as it wrote
            for action in reversed(record.actions):
                actions.undo(action)
            if not directory.exists():
                break  # else the lease was told to the keeper just then
        else:
            log.warning("the folder of a removed unit stays: something writes to it", folder=str(directory))
        self._journal.write(dataclasses.replace(record, phase=RecordPhase.RELEASED, message=""))

    def _directory(self, record: Record) -> Path:
        return self._places.unit(record.unit.name, record.unit.generation)
