"""Brings weights into the router outputs and notes what is acknowledged.

One task for each output. A new revision replaces one that is still under way: only the newest weights matter.
Nothing here decides a weight.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from kvpool.adapters.routers.base import ASSUMED_AFTER_SECONDS, Desired, Rendered, Revision, RouterOutput
from kvpool.api import labels
from kvpool.api.pdgroup import Output, PDGroup
from kvpool.cluster.apply import Applier
from kvpool.cluster.errors import ApiError
from kvpool.cluster.reads import find
from kvpool.cluster.resources import ENDPOINT_SLICES, HTTP_ROUTES, PD_GROUPS, SERVICES, Obj, Resource
from kvpool.cluster.rest import Rest
from kvpool.control import managers
from kvpool.control.pod_labels import PodLabels
from kvpool.model.decisions import SlotWeight, Weights
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import OutputAck, PodFact

_RESOURCES: Final[Mapping[str, Resource]] = {
    "Service": SERVICES,
    "EndpointSlice": ENDPOINT_SLICES,
    "HTTPRoute": HTTP_ROUTES,
}
_READ_BACK_SECONDS: Final = 0.03
_READ_BACK_WIDENS: Final = 1.25
_READ_BACK_SLOW_SECONDS: Final = 1.0
"""Pace of reading back: close at first, then by a quarter of the time gone; a gateway that is late or missing
must not cost a storm of requests."""
_RETRY_SECONDS: Final = (0.1, 0.5, 2.0, 5.0)
_LEARN_SECONDS: Final = 1.0
"""How long a data plane is given to learn of new Services and slices before a route sends to them.

A fixed time, because nothing shows that it has: no status tells which EndpointSlices it knows, and a route's
revision may be in force before the endpoints behind it are known.
"""
_REAPPLY_SECONDS: Final = 60.0
"""How often all objects are applied again, so that what others changed or deleted comes back."""

_log = structlog.get_logger()
OutputKey = tuple[ObjectKey, str]


@dataclass
class _Channel:
    """One output: what it shall carry, what it carries, and the task that brings it there."""

    wanted: Revision | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ack: OutputAck | None = None
    error: str = ""
    applied: dict[tuple[str, str], Obj] = field(default_factory=dict)
    pods: Mapping[str, PodFact] = field(default_factory=dict)
    pod_labels: PodLabels | None = None
    known: set[str] | None = None
    """Services that the data plane knows as backends, others' and former ones too; None until looked up."""
    task: asyncio.Task[None] | None = None


class RouteWriter:
    """All outputs of all groups."""

    def __init__(
        self,
        rest: Rest,
        outputs: Mapping[str, RouterOutput],
        *,
        first_revision: int,
        on_ack: Callable[[], None],
    ) -> None:
        self._rest = rest
        self._outputs = outputs
        self._applier = Applier(rest, managers.ROUTING)
        self._next = first_revision
        self._on_ack = on_ack
        self._channels: dict[OutputKey, _Channel] = {}
        self._partings: set[asyncio.Task[None]] = set()
        """What is taken off pods for groups that were deleted."""

    def publish(
        self, groups: Mapping[ObjectKey, PDGroup], weights: Sequence[Weights], pods: Mapping[str, PodFact]
    ) -> None:
        """Make `weights` the wanted ones of every output of `groups`; outputs not named are left as they are.

        `pods` maps UIDs to pods, for outputs that write on pods.
        """
        for entry in weights:
            group = groups[entry.group]
            for output in group.spec.routing.outputs:
                if output.role.value == entry.role:
                    self._want(group, output, entry.members, pods)

    def _want(
        self, group: PDGroup, output: Output, members: tuple[SlotWeight, ...], pods: Mapping[str, PodFact]
    ) -> None:
        key = (ObjectKey(group.metadata.namespace, group.metadata.name), output.name)
        channel = self._channels.setdefault(key, _Channel())
        channel.pods = pods
        before, frozen = channel.wanted, group.spec.routing.on_delete == "FreezeLast"
        if (
            before is not None
            and before.output == output
            and before.frozen_on_delete == frozen
            and carried(before.members) == carried(members)
        ):
            return
        role = group.spec.decode if output.role.value == "Decode" else group.spec.prefill
        channel.wanted = Revision(
            group=key[0],
            group_uid=group.metadata.uid,
            frozen_on_delete=frozen,
            output=output,
            number=self._number(),
            members=members,
            port=role.port if role is not None else 8000,
        )
        channel.changed.set()
        if channel.task is None or channel.task.done():
            channel.task = asyncio.create_task(self._serve(key, channel), name=f"route {key[0]} {key[1]}")

    def keep_only(self, groups: Mapping[ObjectKey, PDGroup], weights: Sequence[Weights]) -> None:
        """Write to no output that `weights` has nothing for; what such outputs carry stays as it is.

        A group that is paused, or whose mode only looks, is in no weights: its outputs are left alone, and
        its acknowledgements are kept. When it acts again it starts from what its outputs carry then.
        """
        roles = {(entry.group, entry.role) for entry in weights}
        there = {
            (key, output.name): (key, output.role.value) in roles
            for key, group in groups.items()
            for output in group.spec.routing.outputs
        }
        for key in [key for key in self._channels if not there.get(key)]:
            channel = self._channels.pop(key)
            if channel.task is not None:
                channel.task.cancel()
            if key in there:
                self._channels[key] = _Channel(ack=channel.ack)
            elif key[0] not in groups and channel.pod_labels is not None:
                self._take_labels_off(key, channel)

    def _take_labels_off(self, key: OutputKey, channel: _Channel) -> None:
        """Labels have no owner that could go with the group: `onDelete: Remove` takes them off here."""
        wanted = channel.wanted
        if wanted is not None and not wanted.frozen_on_delete:
            task = asyncio.create_task(self._part_with_pods(channel, wanted), name=f"labels of {key[0]}")
            self._partings.add(task)
            task.add_done_callback(self._partings.discard)

    async def _part_with_pods(self, channel: _Channel, last: Revision) -> None:
        """Take the labels of a deleted group's output off all pods."""
        target = last.output.pod_label
        if target is None or channel.pod_labels is None:
            return
        for pause in (*_RETRY_SECONDS, None):
            try:
                # One that only cannot be read keeps them, and another of that name looks after them itself.
                if await find(self._rest, PD_GROUPS.at(last.group.namespace, last.group.name)) is None:
                    await channel.pod_labels.bring(target.key, {}, {})
            except ApiError as error:
                _log.warning("labels not taken off", group=str(last.group), error=str(error))
            else:
                return
            if pause is not None:
                await asyncio.sleep(pause)

    def acks(self) -> tuple[OutputAck, ...]:
        """The newest acknowledged revision of each output."""
        return tuple(channel.ack for channel in self._channels.values() if channel.ack is not None)

    def wanted(self) -> Mapping[OutputKey, Revision]:
        """The newest revision asked of each output."""
        return {key: channel.wanted for key, channel in self._channels.items() if channel.wanted is not None}

    def errors(self) -> Mapping[OutputKey, str]:
        """Why an output does not carry what it should, for those that do not."""
        return {key: channel.error for key, channel in self._channels.items() if channel.error}

    async def close(self) -> None:
        """End all tasks; what the outputs carry stays."""
        tasks = [channel.task for channel in self._channels.values() if channel.task is not None]
        tasks += self._partings
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, key: OutputKey, channel: _Channel) -> None:
        failures = 0
        while True:
            channel.changed.clear()
            revision = channel.wanted
            if revision is None:
                return
            try:
                await self._bring(channel, revision)
                failures, channel.error = 0, ""
                pause = _REAPPLY_SECONDS
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - one output's fault must not end its task: say it, try again
                channel.error = str(error) or type(error).__name__
                _log.warning("output not written", group=str(key[0]), output=key[1], error=str(error))
                pause = _RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)]
                failures += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(channel.changed.wait(), pause)
                continue
            channel.applied.clear()
            if channel.pod_labels is not None:
                channel.pod_labels.reapply()

    async def _bring(self, channel: _Channel, revision: Revision) -> None:
        output = self._outputs[revision.output.type.value]
        rendered = output.render(revision)
        backends = _backends(rendered)
        if channel.known is None:
            channel.known = await self._backends_in_force(rendered)
        unknown = {slot for slot, service in backends.items() if service not in channel.known}
        new = [member for member in revision.members if member.slot.name in unknown]
        if output.carries_weights and not channel.known and not any(member.weight for member in new):
            # There is no route, or one to nowhere, and an entrance without a way on would refuse all. A route
            # with any backend is written: it may carry weights of an earlier leader.
            self._acknowledge(channel, revision, observed=True, written_at=time.monotonic())
            return
        if new and output.carries_weights:
            await self._introduce(channel, output, revision, new)
            if channel.changed.is_set():
                return
            revision = channel.wanted = replace(revision, number=self._number())
            rendered = output.render(revision)
        await self._apply(channel, rendered)
        await self._label_pods(channel, revision, rendered)
        channel.known |= set(backends.values())
        written_at = time.monotonic()
        pause = _READ_BACK_SECONDS
        while not channel.changed.is_set():
            reading = await output.read_back(revision)
            assumed = time.monotonic() - written_at >= ASSUMED_AFTER_SECONDS
            if (reading is not None and reading.in_force) or (reading is None and assumed):
                self._acknowledge(channel, revision, reading is not None, written_at)
                return
            if reading is not None and assumed:
                channel.error = reading.detail
            with suppress(TimeoutError):
                await asyncio.wait_for(channel.changed.wait(), pause)
            pause = min(_READ_BACK_SLOW_SECONDS, pause * _READ_BACK_WIDENS)

    async def _introduce(
        self, channel: _Channel, output: RouterOutput, revision: Revision, new: Sequence[SlotWeight]
    ) -> None:
        """Let the data plane learn new backends before requests are sent to them.

        It watches Services, slices and routes apart, and would answer for a backend it does not know with an
        error. What the revision says of the others is in force meanwhile.
        """
        waiting = {member.slot for member in new}
        members = tuple(
            replace(member, weight=0) if member.slot in waiting else member for member in revision.members
        )
        rendered = output.render(replace(revision, members=members))
        if not channel.known:
            rendered = replace(rendered, objects=rendered.objects[:-1])
        await self._apply(channel, rendered)
        with suppress(TimeoutError):
            await asyncio.wait_for(channel.changed.wait(), _LEARN_SECONDS)

    async def _backends_in_force(self, rendered: Rendered) -> set[str]:
        """The Services that the output's live route names; empty without one, or for other outputs."""
        routes = [desired.manifest for desired in rendered.objects if desired.kind == "HTTPRoute"]
        if not routes:
            return set()
        route = await find(self._rest, HTTP_ROUTES.of(routes[0]))
        return {
            backend["name"]
            for rule in (route or {}).get("spec", {}).get("rules", [])
            for backend in rule.get("backendRefs", [])
        }

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    async def _apply(self, channel: _Channel, rendered: Rendered) -> None:
        for desired in rendered.objects:
            await self._apply_one(channel, desired)

    async def _apply_one(self, channel: _Channel, desired: Desired) -> None:
        at = (desired.kind, desired.manifest["metadata"]["name"])
        resource = _RESOURCES[desired.kind]
        applied = await self._applier.apply(resource, desired.manifest, current=channel.applied.get(at))
        channel.applied[at] = applied.obj

    async def _label_pods(self, channel: _Channel, revision: Revision, rendered: Rendered) -> None:
        target = revision.output.pod_label
        if target is None:
            return
        if channel.pod_labels is None:
            channel.pod_labels = PodLabels(self._rest, revision.group, revision.output.name)
        await channel.pod_labels.bring(target.key, rendered.pod_labels, channel.pods)

    def _acknowledge(self, channel: _Channel, revision: Revision, observed: bool, written_at: float) -> None:
        channel.ack = OutputAck(
            group=revision.group,
            output=revision.output.name,
            revision=revision.number,
            observed=observed,
            at=time.monotonic(),
            written_at=written_at,
            weights={member.slot.name: member.weight for member in revision.members},
        )
        self._on_ack()


def _backends(rendered: Rendered) -> dict[str, str]:
    """Slot to the Service in front of it."""
    services = (desired.manifest["metadata"] for desired in rendered.objects if desired.kind == "Service")
    return {metadata["labels"][labels.SLOT]: metadata["name"] for metadata in services}


def carried(members: Sequence[SlotWeight]) -> tuple[tuple[ObjectKey, int, str, str], ...]:
    """What of the members an output carries: a change of reason alone makes no new revision."""
    return tuple((member.slot, member.weight, member.endpoint, member.pod_uid) for member in members)
