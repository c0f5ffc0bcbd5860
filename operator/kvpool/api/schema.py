"""What the models say about themselves beyond Python types: the words the CRD generator reads.

Field annotations ride in ``Annotated[T, ...]``; rules on a whole object and the facts about a kind are class
decorators. Nothing here touches the cluster: `tools/crdgen` turns the words into a structural schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar

from annotated_types import GroupedMetadata, MaxLen
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

GROUP = "kvpool.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "kv"
"""``kubectl get kv`` lists every kind. Not "kvpool": kubectl would take ``kvpool chat`` for all kinds."""

VALIDATIONS = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
INT_OR_STRING = "x-kubernetes-int-or-string"
LATER = "x-kvpool-later"
PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"

_M = TypeVar("_M", bound="Model")


class _Extension:
    """An annotation that adds keys to the JSON schema of the field it stands at."""

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        raise NotImplementedError

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return self.extend(dict(handler(core_schema)))


@dataclass(frozen=True, init=False)
class ListMap(_Extension):
    """A list whose items are identified by ``keys`` (camelCase names); the API server refuses duplicates."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        if not keys:
            raise ValueError("ListMap needs at least one key")
        object.__setattr__(self, "keys", keys)

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """Mark the list as a map by key."""
        return schema | {LIST_TYPE: "map", LIST_MAP_KEYS: list(self.keys)}


@dataclass(frozen=True)
class ListSet(_Extension):
    """A list of scalars without duplicates."""

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """Mark the list as a set."""
        return schema | {LIST_TYPE: "set"}


@dataclass(frozen=True)
class ListAtomic(_Extension):
    """A list that one writer replaces as a whole."""

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """Mark the list as one value."""
        return schema | {LIST_TYPE: "atomic"}


@dataclass(frozen=True)
class MaxProperties(GroupedMetadata):
    """At most ``count`` entries in a map; pydantic enforces it too."""

    count: int

    def __iter__(self) -> Iterator[MaxLen]:
        yield MaxLen(self.count)


@dataclass(frozen=True)
class PreserveUnknown(_Extension):
    """A node whose content the API server keeps as it is, for fields annotated ``dict[str, Any]``."""

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """Keep the description and default; the content is not described."""
        kept = {key: schema[key] for key in ("description", "default", VALIDATIONS) if key in schema}
        return {"type": "object", PRESERVE_UNKNOWN: True} | kept


Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]


@dataclass(frozen=True)
class Cel(_Extension):
    """One CEL rule: the API server evaluates it with ``self`` as the annotated node.

    ``message`` is fixed text; ``message_expression`` is CEL giving a string that can name the values
    (``'%d is above %d'.format([self.a, self.b])``; ``string(int)`` exceeds the server's cost limit).
    ``field_path`` is relative to the node, e.g. ``.lowWatermark``.
    """

    rule: str
    message: str | None = None
    message_expression: str | None = None
    reason: Reason = "FieldValueInvalid"
    field_path: str | None = None
    optional_old_self: bool = False

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """Append the rule to those already at the node."""
        return schema | {VALIDATIONS: [*schema.get(VALIDATIONS, []), self.rendered()]}

    def rendered(self) -> dict[str, Any]:
        """The entry of ``x-kubernetes-validations``."""
        entry: dict[str, Any] = {"rule": self.rule}
        if self.message is not None:
            entry["message"] = self.message
        if self.message_expression is not None:
            entry["messageExpression"] = self.message_expression
        if self.reason != "FieldValueInvalid":
            entry["reason"] = self.reason
        if self.field_path is not None:
            entry["fieldPath"] = self.field_path
        if self.optional_old_self:
            entry["optionalOldSelf"] = True
        return entry


NOT_SUPPORTED_YET = Cel("false", "not supported yet: remove the field", reason="FieldValueForbidden")
"""For a field that the API has a place for and this version does nothing with."""


@dataclass(frozen=True)
class Later(_Extension):
    """Values of an enumeration that a later version will take; until then the refusal says so."""

    values: tuple[str, ...]

    def __init__(self, *values: str) -> None:
        object.__setattr__(self, "values", values)

    def extend(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """Let the values through the enumeration, so that the rule's message answers."""
        listed = ", ".join(f"'{value}'" for value in self.values)
        refusal = Cel(f"!(self in [{listed}])", message_expression="'%s is not supported yet'.format([self])")
        return refusal.extend(schema | {LATER: list(self.values)})


@dataclass(frozen=True)
class Column:
    """One printer column; ``priority`` 1 shows only with ``-o wide``."""

    name: str
    type: Literal["string", "integer", "date", "boolean"]
    json_path: str
    priority: int = 0
    description: str = ""
    format: str = ""


@dataclass(frozen=True)
class Scale:
    """The scale subresource: JSON paths of the wanted and the observed count, and of the pods' selector."""

    spec_path: str
    status_path: str
    selector_path: str | None = None


@dataclass(frozen=True)
class Resource:
    """The facts about a kind that its CRD states beside the schema."""

    kind: str
    plural: str
    singular: str
    scope: Literal["Namespaced", "Cluster"]
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    status: bool = True
    scale: Scale | None = None

    @property
    def crd_name(self) -> str:
        """``metadata.name`` of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"

    @property
    def namespaced(self) -> bool:
        """Whether objects of the kind live in a namespace."""
        return self.scope == "Namespaced"


class Model(BaseModel):
    """Base of every API type: frozen, camelCase outside, snake_case inside, strict when we construct it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    cel_rules: ClassVar[tuple[Cel, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.cel_rules:
            schema[VALIDATIONS] = [rule.rendered() for rule in cls.cel_rules]
        return schema

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Read an object from the cluster; unknown fields are ignored at every level.

        Raises `pydantic.ValidationError` when a known field does not fit its type.
        """
        return cls.model_validate(raw, extra="ignore")

    def dump(self) -> dict[str, Any]:
        """The JSON form for an apply: camelCase names, absent instead of null, defaults written out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def cel(
    rule: str,
    message: str | None = None,
    message_expression: str | None = None,
    *,
    reason: Reason = "FieldValueInvalid",
    field_path: str | None = None,
) -> Callable[[type[_M]], type[_M]]:
    """Put a CEL rule on the object node of a model; several read from top to bottom."""

    def decorate(model: type[_M]) -> type[_M]:
        added = Cel(rule, message, message_expression, reason=reason, field_path=field_path)
        model.cel_rules = (added, *model.cel_rules)
        return model

    return decorate


def resource(
    kind: str,
    plural: str,
    singular: str,
    scope: Literal["Namespaced", "Cluster"],
    short_names: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    *,
    status: bool = True,
    scale: Scale | None = None,
) -> Callable[[type[_M]], type[_M]]:
    """Say that a model is the top level of a kind; `resource_of` reads it back."""
    facts = Resource(kind, plural, singular, scope, short_names, tuple(columns), status, scale)

    def decorate(model: type[_M]) -> type[_M]:
        setattr(model, _RESOURCE, facts)
        return model

    return decorate


_RESOURCE = "__kvpool_resource__"


def resource_of(model: type[Model]) -> Resource:
    """The facts that ``@resource`` attached to this very class; raises `TypeError` for any other model."""
    facts = vars(model).get(_RESOURCE)
    if not isinstance(facts, Resource):
        raise TypeError(f"{model.__name__} is not the top level of a kind: decorate it with @resource(...)")
    return facts
