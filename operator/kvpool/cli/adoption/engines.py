"""Finds engines: pods that run a known engine, their role, and the workload that keeps them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kvpool.cluster.resources import Obj

DEFAULT_PORT: Final = 8000
_ENGINES: Final = ("vllm", "sglang")
_NO_ENGINES: Final = ("router", "gateway", "proxy")
_LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
_TEMPLATE_HASH: Final = "pod-template-hash"
_OF_ONE_POD: Final = re.compile(r"hash|revision|pod-index|pod-name|worker-index|group-key|group-index")
_ROLE_WORD: Final = re.compile(r"(?:^|[-_.])(prefill|decode)(?=$|[-_.])")


@dataclass(frozen=True, slots=True)
class Engines:
    """The engine pods of one role that one workload keeps, or that share labels without one."""

    role: str
    """Prefill or Decode."""
    kind: str
    """Kind of the workload; empty: bare pods."""
    name: str
    """Name of the workload, or of the first pod."""
    pods: tuple[str, ...]
    port: int
    labels: Mapping[str, str]
    """Labels that all of the pods have."""

    @property
    def stem(self) -> str:
        """The name without its role: `chat-prefill` and `chat-decode` belong together."""
        name = self.name if self.kind else re.sub(r"-\d+$", "", self.name)
        return _ROLE_WORD.sub("", name).strip("-_.") or "engines"


def find_engines(pods: Iterable[Obj]) -> list[Engines]:
    """Engine pods by workload and role, in name order."""
    grouped: dict[tuple[str, str, str], list[Obj]] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        if _is_engine(pod):
            kind, name = _workload(pod)
            stem = name if kind else re.sub(r"-\d+$", "", str(pod["metadata"]["name"]))
            grouped.setdefault((_role(pod), kind, stem), []).append(pod)
    return _joined(_engines(*key, found) for key, found in sorted(grouped.items()))


def _joined(found: Iterable[Engines]) -> list[Engines]:
    """Bare pods that one selector selects are one, whatever their names: no pod is to be in two groups."""
    kept: list[Engines] = []
    for one in found:
        for index, other in enumerate(kept):
            shared = dict(one.labels.items() & other.labels.items())
            bare = not one.kind and not other.kind and one.role == other.role
            if bare and shared and shared in (dict(one.labels), dict(other.labels)):
                labels = dict(sorted(shared.items()))
                kept[index] = replace(other, pods=(*other.pods, *one.pods), labels=labels)
                break
        else:
            kept.append(one)
    return kept


def _engines(role: str, kind: str, stem: str, pods: list[Obj]) -> Engines:
    names = tuple(str(pod["metadata"]["name"]) for pod in pods)
    shared = set((pods[0]["metadata"].get("labels") or {}).items())
    for pod in pods[1:]:
        shared &= set((pod["metadata"].get("labels") or {}).items())
    labels = {name: value for name, value in sorted(shared) if not _OF_ONE_POD.search(name)}
    return Engines(role, kind, stem if kind else names[0], names, _port(pods[0]), labels)


def _words(pod: Obj) -> list[str]:
    """Images, commands and arguments."""
    return [
        str(word)
        for container in pod["spec"].get("containers") or ()
        for word in (
            container.get("image", ""),
            *(container.get("command") or ()),
            *(container.get("args") or ()),
        )
    ]


def _is_engine(pod: Obj) -> bool:
    """Whether it runs a known engine, or a label calls it prefill or decode."""
    labels = pod["metadata"].get("labels") or {}
    said = [word.lower() for word in (*_words(pod), *map(str, labels.values()), str(pod["metadata"]["name"]))]
    if any(no in word for word in said for no in _NO_ENGINES):
        return False
    if any(name.endswith("role") and value in ("prefill", "decode") for name, value in labels.items()):
        return True
    return any(engine in word for word in said for engine in _ENGINES)


def _role(pod: Obj) -> str:
    """By labels and name, else by the transfer's configuration; an engine of no role decodes."""
    labels = (pod["metadata"].get("labels") or {}).values()
    for text in (*map(str, labels), str(pod["metadata"]["name"])):
        found = _ROLE_WORD.search(text)
        if found is not None:
            return found[1].capitalize()
    return "Prefill" if any("kv_producer" in word for word in _words(pod)) else "Decode"


def _workload(pod: Obj) -> tuple[str, str]:
    """Kind and name of the workload with a scale sub-resource; empty for bare pods."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    if _LWS_NAME in labels:
        return "LeaderWorkerSet", str(labels[_LWS_NAME])
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    if not owners:
        return "", ""
    kind, name = str(owners[0]["kind"]), str(owners[0]["name"])
    if kind == "ReplicaSet" and _TEMPLATE_HASH in labels:
        return "Deployment", name.removesuffix(f"-{labels[_TEMPLATE_HASH]}")
    return kind, name


def _port(pod: Obj) -> int:
    ports = [
        int(port["containerPort"])
        for container in pod["spec"].get("containers") or ()
        for port in container.get("ports") or ()
    ]
    return DEFAULT_PORT if not ports or DEFAULT_PORT in ports else ports[0]
