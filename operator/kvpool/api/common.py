"""Shapes that several kinds share: metadata, selectors, references, modes and tiers."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kvpool.api.schema import Cel, ListAtomic, MaxProperties, Model

Name = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
ShortText = Annotated[str, Field(max_length=256)]
LabelKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    ),
]
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]
Labels = Annotated[dict[str, LabelValue], MaxProperties(64)]


class Mode(StrEnum):
    """How far kvpool may go: look only, say what it would do, or do it."""

    OBSERVE = "Observe"
    RECOMMEND = "Recommend"
    ENFORCE = "Enforce"

    @property
    def rank(self) -> int:
        """0 for Observe, 1 for Recommend, 2 for Enforce."""
        return (Mode.OBSERVE, Mode.RECOMMEND, Mode.ENFORCE).index(self)

    def capped(self, cap: "Mode") -> "Mode":
        """Return the lower of this mode and the cluster-wide cap."""
        return self if self.rank <= cap.rank else cap


class Role(StrEnum):
    """What an engine instance does."""

    PREFILL = "Prefill"
    DECODE = "Decode"


class OwnerReference(Model):
    """The part of metav1.OwnerReference that kvpool reads and writes."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """The part of metav1.ObjectMeta that kvpool reads."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class SelectorRequirement(Model):
    """One expression of a label selector."""

    key: LabelKey
    """The label."""
    operator: Annotated[str, Field(max_length=16, pattern="^(In|NotIn|Exists|DoesNotExist)$")]
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[LabelValue, ...], ListAtomic(), Field(max_length=32)] = ()
    """For In and NotIn: the values; none for Exists and DoesNotExist."""


class LabelSelector(Model):
    """Which objects, by label; an empty selector matches every object."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels that must all be there, with these values."""
    match_expressions: Annotated[tuple[SelectorRequirement, ...], ListAtomic(), Field(max_length=16)] = ()
    """Further requirements, which must all hold."""

    def matches(self, labels: "dict[str, str]") -> bool:
        """Tell whether an object with ``labels`` is selected (Kubernetes semantics)."""
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(_holds(requirement, labels) for requirement in self.match_expressions)


NonEmptySelector = Annotated[
    LabelSelector,
    Cel(
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || "
        "(has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        "an empty selector would match every pod of the namespace: name at least one label",
        reason="FieldValueRequired",
    ),
]
"""A selector of pods, which may not be all of them."""


def _holds(requirement: SelectorRequirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None


class LocalRef(Model):
    """Another object of the same namespace, by name."""

    name: Name
    """Name of the object."""
