"""Which pods a workload runs, asked through its scale sub-resource."""

from __future__ import annotations

import re
from typing import Final

from kvpool.api.common import LabelSelector
from kvpool.api.pdgroup import WorkloadRef
from kvpool.cluster.errors import Gone, Terminal
from kvpool.cluster.reads import get
from kvpool.cluster.resources import Resource
from kvpool.cluster.rest import Rest

_DEADLINE_SECONDS: Final = 3.0
_FORBIDDEN: Final = 403
_API_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}
_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL: Final = re.compile(r"(?P<key>[^\s=!<>]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[^\s=!<>]*)")
_THERE: Final = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s=!<>(),]+)")
_BETWEEN_TERMS: Final = re.compile(r",(?![^(]*\))")


async def workload_selector(rest: Rest, namespace: str, ref: WorkloadRef) -> LabelSelector | None:
    """What selects the workload's pods; None when the API server has no selector that can be followed.

    That is so for a workload that is not there, a kind without a scale sub-resource, and a scale that states
    none or an odd one. Raises ApiError: Terminal (403) when this reader may not ask, which says nothing of
    the workload.
    """
    group, _, version = (ref.api_version or _API_VERSIONS.get(ref.kind, "")).rpartition("/")
    workload = Resource(group, version, f"{ref.kind.lower()}s", ref.kind, namespaced=True)
    try:
        scale = await get(rest, workload.at(namespace, ref.name, "scale"), timeout_seconds=_DEADLINE_SECONDS)
        return parse_selector((scale.get("status") or {}).get("selector") or "")
    except (Gone, ValueError):
        return None
    except Terminal as refusal:
        if refusal.status == _FORBIDDEN:
            raise
        return None


def parse_selector(text: str) -> LabelSelector:
    """Read a selector as scale sub-resources state it: `app=chat,tier in (a,b),!canary`.

    Raises ValueError: when it is empty, as it would select every pod, or holds what no LabelSelector can say.
    """
    terms = [term.strip() for term in _BETWEEN_TERMS.split(text)]
    equal: dict[str, str] = {}
    further: list[dict[str, object]] = []
    for term in terms:
        if (found := _EQUAL.fullmatch(term)) and found["sign"] != "!=":
            if equal.setdefault(found["key"], found["value"]) != found["value"]:
                raise ValueError(f"{text!r} asks for two values of label {found['key']}")
        else:
            further.append(_requirement(term))
    return LabelSelector.parse({"matchLabels": equal, "matchExpressions": further})


def _requirement(term: str) -> dict[str, object]:
    if found := _EQUAL.fullmatch(term):
        return {"key": found["key"], "operator": "NotIn", "values": [found["value"]]}
    if found := _SET.fullmatch(term):
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": "In" if found["word"] == "in" else "NotIn", "values": values}
    if found := _THERE.fullmatch(term):
        return {"key": found["key"], "operator": "DoesNotExist" if found["absent"] else "Exists"}
    raise ValueError(f"{term!r} is no term of a label selector")
