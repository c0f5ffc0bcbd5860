"""`KIND/NAME` as people type it: every kind by its names, short names included."""

from dataclasses import dataclass
from typing import Final

from kvpool.api import KINDS
from kvpool.api.schema import resource_of
from kvpool.cli.faults import CliError
from kvpool.cluster.resources import OWN_RESOURCES, Resource

_SPOKEN: Final = {
    "budget": "TierBudget",
    "pool": "KVPool",
    "group": "PDGroup",
    "node": "KVNode",
}
"""Names beside those that kubectl knows."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that a person named."""

    resource: Resource
    namespace: str
    """Empty for cluster-scoped kinds."""
    name: str

    @property
    def kind(self) -> str:
        """The kind, such as KVPool."""
        return self.resource.kind

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


def read_reference(text: str, namespace: str) -> Reference:
    """Read `pool/chat`, `pdg/chat`, `node/node-1`, ...; namespaced kinds are looked for in `namespace`.

    Raises:
        CliError: when it is no reference, or the kind is none of ours.
    """
    kind, slash, name = text.partition("/")
    if not slash or not kind or not name:
        raise CliError(f"{text!r} is not KIND/NAME: write pool/chat, slot/chat-decode-0 or node/node-1")
    resource = _by_word().get(kind.lower())
    if resource is None:
        known = ", ".join(sorted({*_SPOKEN, *(resource_of(model).singular for model in KINDS)}))
        raise CliError(f"{text!r}: there is no kind {kind!r}; the kinds are {known}")
    return Reference(resource, namespace if resource.namespaced else "", name)


def _by_word() -> dict[str, Resource]:
    resources = {resource.kind: resource for resource in OWN_RESOURCES}
    words = {word: resources[kind] for word, kind in _SPOKEN.items()}
    for model in KINDS:
        facts = resource_of(model)
        for word in (facts.singular, facts.plural, *facts.short_names):
            words[word] = resources[facts.kind]
    return words
