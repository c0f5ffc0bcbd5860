"""Takes out of objects what a support bundle must not carry. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kvpool.cluster.resources import Obj

REMOVED: Final = "<removed>"
_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|credential|api.?key|private|authorization", re.IGNORECASE
)
_SECRET_ARGUMENT: Final = re.compile(rf"^(--?[\w-]*(?:{_SECRET_NAME.pattern})[\w-]*=).+", re.IGNORECASE)
_NOISE: Final = ("managedFields",)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def redacted(obj: Obj) -> Obj:
    """Return a copy without secrets: values of environment variables and flags, data of ConfigMaps that are
    not ours, and annotations that repeat whole manifests. Secrets lose all of their data.
    """
    clean: Obj = _clean(obj)
    if obj.get("kind") == "Secret" or (obj.get("kind") == "ConfigMap" and not _is_ours(obj)):
        for part in ("data", "stringData", "binaryData"):
            if part in clean:
                clean[part] = dict.fromkeys(clean[part], REMOVED)
    return clean


def _is_ours(obj: Obj) -> bool:
    return str(obj["metadata"]["name"]).startswith("kvpool-")


def _clean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        if _is_secret_variable(value):
            return {**value, "value": REMOVED}
        return {
            name: REMOVED if name == _LAST_APPLIED else _clean(item)
            for name, item in value.items()
            if name not in _NOISE
        }
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return _SECRET_ARGUMENT.sub(rf"\1{REMOVED}", value)
    return value


def _is_secret_variable(value: Mapping[str, Any]) -> bool:
    """Whether it is an environment variable with a telling name and a literal value."""
    name, literal = value.get("name"), value.get("value")
    return isinstance(name, str) and isinstance(literal, str) and _SECRET_NAME.search(name) is not None
