"""A support bundle: our objects, events and the operator's own, secrets removed, as one archive."""

import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

import yaml

from kvpool.cli.cluster_state import list_resource
from kvpool.cli.faults import CliError
from kvpool.cli.redaction import redacted
from kvpool.cluster.errors import ApiError, Unauthorized
from kvpool.cluster.reads import Selection
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    HTTP_ROUTES,
    LEASES,
    NODES,
    OWN_RESOURCES,
    PODS,
    Obj,
    Resource,
)
from kvpool.cluster.rest import Rest
from kvpool.model.instant import Instant

FOLDER: Final = "kvpool-report"
_DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
_KEEPERS: Final = Selection(label_selector="kvpool.dev/unit")
_OWN_EVENTS: Final = Selection(field_selector="regarding.apiVersion=kvpool.dev/v1alpha1")


@dataclass(slots=True)
class Bundle:
    """Files by name within the bundle's folder, and what could not be read."""

    files: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


async def collect(rest: Rest, operator_namespace: str, now: Instant) -> Bundle:
    """Read everything; what the user may not read is named in the bundle. Raises Unauthorized."""
    bundle = Bundle()
    operators = Selection(namespace=operator_namespace)
    wanted: list[tuple[str, Resource, Selection]] = [
        *((f"{resource.plural}.yaml", resource, Selection()) for resource in OWN_RESOURCES),
        ("events.yaml", EVENTS, _OWN_EVENTS),
        ("nodes.yaml", NODES, Selection()),
        ("keeper-pods.yaml", PODS, _KEEPERS),
        ("httproutes.yaml", HTTP_ROUTES, Selection()),
        *(
            (f"operator/{resource.plural}.yaml", resource, operators)
            for resource in (PODS, DEPLOYMENTS, _DAEMON_SETS, LEASES, CONFIG_MAPS)
        ),
    ]
    nodes: list[Obj] = []
    for name, resource, selection in wanted:
        found = await _list(rest, bundle, resource, selection)
        if found is not None:
            bundle.files[name] = _yaml([redacted(item) for item in found])
        if resource is NODES:
            nodes = found or []
    definitions = await _list(rest, bundle, CUSTOM_RESOURCE_DEFINITIONS, Selection()) or []
    bundle.files["versions.yaml"] = yaml.safe_dump(_versions(nodes, definitions, now), sort_keys=False)
    if bundle.missing:
        bundle.files["missing.txt"] = "\n".join(bundle.missing) + "\n"
    return bundle


async def _list(rest: Rest, bundle: Bundle, resource: Resource, selection: Selection) -> list[Obj] | None:
    try:
        return await list_resource(rest, resource, selection)
    except Unauthorized:
        raise
    except ApiError as error:
        bundle.missing.append(str(error))
        return None


def _yaml(items: list[Obj]) -> str:
    return yaml.safe_dump_all(items, sort_keys=False, allow_unicode=True)


def _versions(nodes: list[Obj], definitions: list[Obj], now: Instant) -> Mapping[str, object]:
    kubelets = {
        str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "")) for node in nodes
    }
    ours = [item for item in definitions if item["spec"]["group"] == "kvpool.dev"]
    return {
        "takenAt": now.text(),
        "plugin": version("kvpool"),
        "kubelets": sorted(kubelets - {""}),
        "customResources": {
            item["metadata"]["name"]: [one["name"] for one in item["spec"]["versions"]] for item in ours
        },
    }


def write_bundle(bundle: Bundle, path: Path) -> None:
    """Write the archive, readable by its owner alone; an existing file is never replaced.

    Raises:
        CliError: when the file exists or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CliError(f"{path} exists: name another file with --out") from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in sorted(bundle.files.items()):
            content = text.encode()
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
