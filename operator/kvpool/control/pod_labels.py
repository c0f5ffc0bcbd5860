"""Keeps the label of one PodLabel output on its members' pods, and on no other pod that it labelled.

Each output is a field manager of its own: two outputs may label one pod and neither takes the other's label
away. The API server remembers who set a label, so a new leader finds the pods that this output labelled, also
those that lost their seat when nobody could write.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from kvpool.cluster.apply import Applier
from kvpool.cluster.errors import Conflict, Gone
from kvpool.cluster.reads import Selection, pages
from kvpool.cluster.resources import PODS, Obj
from kvpool.cluster.rest import Rest
from kvpool.control import managers
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import PodFact


class PodLabels:
    """One output's labels. After an error, `bring` again: what is not done yet is remembered."""

    def __init__(self, rest: Rest, group: ObjectKey, output: str) -> None:
        self._rest = rest
        self._namespace = group.namespace
        self._manager = manager_of(group, output)
        self._applier = Applier(rest, self._manager)
        self._labelled: dict[str, str] | None = None
        """UID to name of the pods that may carry our label; None until looked up."""
        self._applied: dict[str, Obj] = {}

    def reapply(self) -> None:
        """Send everything again with the next `bring`, as others may have changed it."""
        self._applied.clear()

    async def bring(
        self, key: str, wanted: Mapping[str, Mapping[str, str | None]], pods: Mapping[str, PodFact]
    ) -> None:
        """Put the `wanted` labels (by pod UID) on, and the label `key` off all other pods of this output.

        `pods` are the known pods by UID; one that is missing there is looked for in the namespace, and is
        gone only when it is not there either. Raises ApiError.
        """
        if self._labelled is None:
            self._labelled = await self._find_labelled(key)
        present = {
            uid: {label: value for label, value in labels.items() if value is not None}
            for uid, labels in wanted.items()
        }
        serving = {uid: labels for uid, labels in present.items() if labels}
        for uid, name in list(self._labelled.items()):
            if uid not in serving:
                await self._apply(uid, name, {})
                del self._labelled[uid]
        names = await self._names(serving, pods)
        for uid, name in names.items():
            self._labelled[uid] = name
            await self._apply(uid, name, serving[uid])

    async def _names(self, uids: Iterable[str], pods: Mapping[str, PodFact]) -> dict[str, str]:
        """Names of those pods that exist, by UID."""
        names = {uid: pods[uid].key.name for uid in uids if uid in pods}
        unknown = set(uids) - names.keys()
        if unknown:
            there = await self._list(Selection(namespace=self._namespace))
            found = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in there}
            names |= {uid: found[uid] for uid in unknown if uid in found}
        return names

    async def _apply(self, uid: str, name: str, labels: Mapping[str, str]) -> None:
        metadata: Obj = {"name": name, "namespace": self._namespace, "uid": uid}
        if labels:
            metadata["labels"] = dict(labels)
        try:
            applied = await self._applier.apply(PODS, {"metadata": metadata}, current=self._applied.get(uid))
        except (Conflict, Gone):
            # The name belongs to another pod by now, or to none: this one went, and its label with it.
            self._applied.pop(uid, None)
        else:
            self._applied[uid] = applied.obj

    async def _find_labelled(self, key: str) -> dict[str, str]:
        found = await self._list(Selection(namespace=self._namespace, label_selector=key))
        return {
            pod["metadata"]["uid"]: pod["metadata"]["name"]
            for pod in found
            if any(
                entry.get("manager") == self._manager for entry in pod["metadata"].get("managedFields", ())
            )
        }

    async def _list(self, selection: Selection) -> list[Obj]:
        return [pod async for page in pages(self._rest, PODS, selection) for pod in page.items]


def manager_of(group: ObjectKey, output: str) -> str:
    """The field manager of one output: the API takes at most 128 characters, so names are digested."""
    digest = blake2b(f"{group}/{output}".encode(), digest_size=8).hexdigest()
    return f"{managers.ROUTING}-{digest}"
