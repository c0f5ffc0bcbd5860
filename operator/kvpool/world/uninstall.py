"""Reads the ConfigMap that says that kvpool is being uninstalled."""

from collections.abc import Mapping

from kvpool.api import labels
from kvpool.model.snapshot import Uninstall


def read_uninstall(namespace: str, resource_version: str, data: Mapping[str, object]) -> Uninstall | None:
    """Read its data; None when it does not ask for everything to be given back."""
    if data.get(labels.UNINSTALL_DRAIN) != "true":
        return None
    names = str(data.get(labels.UNINSTALL_RETIRED, "")).split(",")
    return Uninstall(namespace, resource_version, tuple(sorted({name for name in names if name})))
