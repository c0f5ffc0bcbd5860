"""Manifests from a file, as the API server would take them: dry-run applied, with defaults filled in."""

from collections.abc import Iterable
from typing import Final

from kvpool.cli.document_files import read_documents
from kvpool.cli.faults import CliError
from kvpool.cli.json_values import what_json_lacks
from kvpool.cli.pausing import MANAGER
from kvpool.cluster.errors import Terminal
from kvpool.cluster.reads import find
from kvpool.cluster.resources import OWN_RESOURCES, Obj, Resource
from kvpool.cluster.rest import Rest, Verb

PEOPLES: Final = ("TierBudget", "KVPool", "PDGroup", "Supernode")
_METADATA: Final[tuple[tuple[str, type, str], ...]] = (
    ("namespace", str, "text"),
    ("labels", dict, "mapping"),
    ("annotations", dict, "mapping"),
)


def read_manifests(file: str, namespace: str) -> list[Obj]:
    """Read every document of a YAML or JSON file (`-`: standard input); namespaced ones default to one.

    Raises:
        CliError: when the file cannot be read, or holds what `plan` does not know, or one object twice.
    """
    documents = [item for document in read_documents(file) for item in _items(document)]
    if not documents:
        raise CliError(f"{file} holds no manifest")
    manifests = [_checked(document, file, namespace) for document in documents]
    seen = set()
    for manifest in manifests:
        identity = manifest["kind"], _name(manifest)
        if identity in seen:
            raise CliError(f"{file}: {' '.join(identity)} is in it twice: keep one")
        seen.add(identity)
    return manifests


def _items(document: object) -> list[object]:
    """Unwrap a List, as `kubectl get -o yaml` prints of several objects."""
    if isinstance(document, dict) and document.get("kind") == "List":
        items = document.get("items")
        return items if isinstance(items, list) else []
    return [document]


def _checked(document: object, file: str, namespace: str) -> Obj:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise CliError(f"{file}: a document is no manifest: it needs apiVersion, kind, metadata and spec")
    kind, metadata = document.get("kind"), document["metadata"]
    if kind not in PEOPLES or document.get("apiVersion") != "kvpool.dev/v1alpha1":
        what = f"{document.get('apiVersion')} {kind}"
        raise CliError(f"{file}: {what} is nothing that people plan here: use {', '.join(PEOPLES)}")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise CliError(f"{file}: a {kind} has no metadata.name, or one that is no text: write it in quotes")
    for field, wanted, word in _METADATA:
        if not isinstance(metadata.get(field) or wanted(), wanted):
            raise CliError(f"{file}: {kind} {name}: metadata.{field} is no {word}")
    foreign = what_json_lacks(document)
    if foreign:
        raise CliError(f"{file}: {kind} {name}: {foreign}")
    if resource_of_kind(str(kind)).namespaced:
        metadata["namespace"] = metadata.get("namespace") or namespace
    return document


def resource_of_kind(kind: str) -> Resource:
    """The resource of one of our kinds."""
    return next(resource for resource in OWN_RESOURCES if resource.kind == kind)


async def dry_run(rest: Rest, manifests: Iterable[Obj]) -> list[Obj]:
    """Let the API server check and complete every manifest without storing it.

    Raises CliError with the server's words when it refuses one, else ApiError.
    """
    answers = []
    for manifest in manifests:
        resource = resource_of_kind(manifest["kind"])
        try:
            answers.append(await _try(rest, resource, manifest))
        except Terminal as error:
            text = f"{manifest['kind']} {_name(manifest)} would be refused: {error.message}"
            raise CliError(text) from error
    return answers


async def _try(rest: Rest, resource: Resource, manifest: Obj) -> Obj:
    """Create or replace in a dry run: the file's spec is all of the spec, as after `kubectl apply`."""
    query = {"fieldManager": MANAGER, "fieldValidation": "Strict", "dryRun": "All"}
    target = resource.of(manifest)
    old = await find(rest, target)
    if old is None:
        collection = resource.at(target.namespace)
        return await rest.request(Verb.CREATE, collection, query=query, body=manifest)
    metadata = {**old["metadata"]}
    for part in ("labels", "annotations"):
        metadata[part] = {**(metadata.get(part) or {}), **(manifest["metadata"].get(part) or {})}
    body = {**manifest, "metadata": metadata}
    return await rest.request(Verb.UPDATE, target, query=query, body=body)


def _name(manifest: Obj) -> str:
    meta = manifest["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])
