"""Pausing and resuming: the ConfigMap for the whole cluster, an annotation for one object."""

import asyncio
import getpass
from typing import Final

from kvpool.api import labels
from kvpool.cli.faults import CliError
from kvpool.cli.references import Reference
from kvpool.cluster.apply import Applier
from kvpool.cluster.errors import ApiError, Gone
from kvpool.cluster.reads import find, get
from kvpool.cluster.recorder import Severity, event_about
from kvpool.cluster.resources import CONFIG_MAPS, EVENTS, NAMESPACES, Obj, Resource
from kvpool.cluster.rest import Rest, Verb
from kvpool.cluster.writes import create
from kvpool.model.instant import Instant

MANAGER: Final = "kubectl-kvpool"
PAUSABLE: Final = ("TierBudget", "KVPool", "PDGroup", "Supernode")
_WHO_AM_I: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


async def who_am_i(rest: Rest) -> str:
    """The name by which the API server knows us, else this machine's user."""
    try:
        answer = await create(rest, _WHO_AM_I, {"metadata": {}}, manager=MANAGER)
    except ApiError:
        return await asyncio.to_thread(getpass.getuser)
    return str(answer["status"]["userInfo"]["username"])


async def set_cluster_pause(rest: Rest, namespace: str, *, paused: bool, reason: str, now: Instant) -> Obj:
    """Write the pause of the whole cluster. Raises CliError without the namespace, else ApiError."""
    if await find(rest, NAMESPACES.at(name=namespace)) is None:
        text = f"there is no namespace {namespace}: name the operator's with --operator-namespace"
        raise CliError(text)
    data = {"paused": "true" if paused else "false", "by": await who_am_i(rest), "at": now.text()}
    manifest = {
        "metadata": {"name": labels.PAUSE_CONFIG_MAP, "namespace": namespace},
        "data": data | ({"reason": reason} if reason else {}),
    }
    return (await Applier(rest, MANAGER).apply(CONFIG_MAPS, manifest)).obj


async def set_object_pause(
    rest: Rest, reference: Reference, *, paused: bool, reason: str, now: Instant
) -> bool:
    """Annotate one object and leave an event; False when it was so already.

    Raises CliError for an object that is not there or cannot be paused, else ApiError.
    """
    if reference.kind not in PAUSABLE:
        text = f"{reference} is written by the operator: pause a {', '.join(PAUSABLE)} instead"
        raise CliError(text)
    target = reference.resource.at(reference.namespace or None, reference.name)
    try:
        found = await get(rest, target)
    except Gone:
        raise CliError(f"{reference} does not exist") from None
    before = (found["metadata"].get("annotations") or {}).get(labels.PAUSED, "false") != "false"
    if before == paused:
        return False
    changes = {"metadata": {"annotations": {labels.PAUSED: "true" if paused else None}}}
    query = {"fieldManager": MANAGER}
    changed = await rest.request(Verb.MERGE_PATCH, target, query=query, body=changes)
    await _leave_event(rest, changed, paused=paused, reason=reason, now=now)
    return True


async def _leave_event(rest: Rest, about: Obj, *, paused: bool, reason: str, now: Instant) -> None:
    """Tell the timeline who did it; a user who may not write events has paused all the same."""
    word = "Paused" if paused else "Resumed"
    note = f"{word.lower()} by {await who_am_i(rest)}{f': {reason}' if reason else ''}"
    event = event_about(about, Severity.NORMAL, word, note, action=word, at=now.wall)
    event |= {"reportingController": "kvpool.dev/kubectl", "reportingInstance": MANAGER}
    try:
        await create(rest, EVENTS, event, manager=MANAGER)
    except ApiError:
        return
