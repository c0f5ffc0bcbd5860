"""From raw API objects to facts: what kvpool cares about, or why the object cannot be read.

Every function here is total: an object that makes no sense becomes `Malformed` and is left out, so that it
never takes a loop down. Raw objects are parsed JSON as the API server sent it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, DecimalException
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from kvpool.api.quantity import parse_quantity
from kvpool.api.schema import Model
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import NodeFact, PodFact

Raw = Mapping[str, Any]
M = TypeVar("M", bound=Model)
T = TypeVar("T")

_UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading an object of an unexpected shape raises."""

_MOST_DIGITS: Final = 40
"""Of a quantity; the API server caps at 2**63, and the digits of `1e999999999` would fill the memory."""

_SERVICE: Final = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that was left out, and why."""

    kind: str
    name: str
    """`namespace/name`, or the name alone."""
    message: str

    @property
    def key(self) -> ObjectKey:
        """The object's key; the namespace is empty for a cluster-scoped kind."""
        namespace, _, name = self.name.rpartition("/")
        return ObjectKey(namespace, name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name} cannot be read and is left out: {self.message}"


def parse_object(model: type[M], raw: Raw) -> M | Malformed:
    """Read an object of one of our kinds; fields of a newer version are ignored."""
    try:
        return model.parse(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        return Malformed(model.__name__, _name_of(raw), f"{where}: {problem['msg']}")


def project_node(raw: Raw, ready_since: float | None) -> NodeFact | Malformed:
    """Read a Node; `ready_since` is when its readiness was first seen as it is (monotonic seconds).

    A Node without the condition Ready has neither `ready` nor `ready_since`: nothing was said of it.
    """
    return _total("Node", raw, lambda: _node(raw, ready_since))


def project_pod(raw: Raw) -> PodFact | Malformed:
    """Read a Pod; its memory request is the one the scheduler counts."""
    return _total("Pod", raw, lambda: _pod(raw))


def ready_addresses(raw: Raw) -> tuple[tuple[str, str], ...] | Malformed:
    """Read an EndpointSlice as pairs of Service name and ready address."""
    return _total("EndpointSlice", raw, lambda: _ready_addresses(raw))


def _total(kind: str, raw: Raw, read: Callable[[], T]) -> T | Malformed:
    try:
        return read()
    except _UNREADABLE as error:
        return Malformed(kind, _name_of(raw), f"{type(error).__name__}: {error}")


def _node(raw: Raw, ready_since: float | None) -> NodeFact:
    metadata, status = raw["metadata"], raw.get("status") or {}
    word = _condition(status, "Ready")
    addresses = [entry["address"] for entry in status.get("addresses") or () if entry["type"] == "InternalIP"]
    return NodeFact(
        name=_text(metadata["name"]),
        uid=_text(metadata["uid"]),
        labels=_labels(metadata),
        ready={"True": True, "False": False}.get(word or ""),
        ready_since=ready_since if word is not None else None,
        address=_text(addresses[0]) if addresses else "",
        allocatable_memory_bytes=memory_bytes((status.get("allocatable") or {}).get("memory", "0")),
        boot_id=_text((status.get("nodeInfo") or {}).get("bootID", "")),
    )


def _pod(raw: Raw) -> PodFact:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    return PodFact(
        key=ObjectKey(_text(metadata["namespace"]), _text(metadata["name"])),
        uid=_text(metadata["uid"]),
        labels=_labels(metadata),
        node=_text(spec.get("nodeName") or ""),
        address=_text(status.get("podIP") or ""),
        phase=_text(status.get("phase") or "Pending"),
        ready=_condition(status, "Ready") == "True",
        deleting=metadata.get("deletionTimestamp") is not None,
        memory_request_bytes=_pod_memory(spec),
        owner=_controller(metadata),
        resource_version=_text(metadata.get("resourceVersion") or ""),
        created_at=_text(metadata.get("creationTimestamp") or ""),
        started_at=_started_at(status),
        has_one_container=len(status.get("containerStatuses") or ()) == 1,
        unschedulable=_unschedulable(status),
    )


def _started_at(status: Raw) -> str:
    """The newest start of a container that runs; kubelets write all of them in UTC, so that texts compare."""
    starts = (
        ((entry.get("state") or {}).get("running") or {}).get("startedAt") or ""
        for entry in status.get("containerStatuses") or ()
    )
    return max(map(_text, starts), default="")


def _unschedulable(status: Raw) -> str:
    """The scheduler's words on a Pod that it finds no node for; empty when it has one, or did not look."""
    for entry in status.get("conditions") or ():
        if entry["type"] == "PodScheduled" and entry["status"] == "False":
            return _text(entry.get("message") or entry.get("reason") or "no reason given")
    return ""


def _ready_addresses(raw: Raw) -> tuple[tuple[str, str], ...]:
    service = _labels(raw["metadata"]).get(_SERVICE, "")
    return tuple(
        (service, _text(address))
        for endpoint in raw.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for address in endpoint["addresses"]
    )


def _condition(status: Raw, kind: str) -> str | None:
    """The status word of a condition; None when the object does not have it."""
    words = [entry["status"] for entry in status.get("conditions") or () if entry["type"] == kind]
    return _text(words[0]) if words else None


def _controller(metadata: Raw) -> str:
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    return f"{owners[0]['kind']}/{owners[0]['name']}" if owners else ""


def _pod_memory(spec: Raw) -> int:
    """Bytes that the scheduler counts: the pod's own request, else containers and side-cars together or the
    largest moment of initialisation; and the runtime's overhead.

    Source: the Kubernetes documentation, "Sidecar Containers", resource sharing within containers.
    """
    overhead = memory_bytes((spec.get("overhead") or {}).get("memory", "0"))
    whole = ((spec.get("resources") or {}).get("requests") or {}).get("memory")
    if whole is not None:
        return memory_bytes(whole) + overhead
    peak = sidecars = 0
    for container in spec.get("initContainers") or ():
        request = _request(container)
        if container.get("restartPolicy") == "Always":
            sidecars += request
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + request)
    return max(peak, sidecars + sum(_request(container) for container in spec["containers"])) + overhead


def _request(container: Raw) -> int:
    return memory_bytes(((container.get("resources") or {}).get("requests") or {}).get("memory", "0"))


def memory_bytes(text: str) -> int:
    """Return the bytes of any quantity that the API server accepts, rounded up: `1Gi`, `1e9`, `1500m`.

    Raises:
        ValueError: when it is no quantity.
    """
    try:
        return parse_quantity(str(text))
    except ValueError:
        number = str(text).strip()
        thousandths = number.endswith("m")
        try:
            exact = Decimal(number.removesuffix("m")) / (1000 if thousandths else 1)
        except DecimalException:
            raise ValueError(f"{text!r} is not a quantity") from None
        if not exact.is_finite() or exact.adjusted() > _MOST_DIGITS:
            raise ValueError(f"{text!r} is not a quantity") from None
        return int(exact.to_integral_value(rounding=ROUND_CEILING))


def _labels(metadata: Raw) -> dict[str, str]:
    return {_text(key): _text(value) for key, value in (metadata.get("labels") or {}).items()}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} should be text")
    return value


def _name_of(raw: object) -> str:
    """Whatever name a broken object has."""
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(metadata, Mapping):
        return "without a name"
    parts = (metadata.get("namespace"), metadata.get("name"))
    return "/".join(str(part) for part in parts if part) or "without a name"
