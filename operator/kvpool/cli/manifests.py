"""Manifests from a file, as the API server would take them: dry-run applied, with defaults filled in."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TextIO

import yaml

from kvpool.cli.faults import CliError
from kvpool.cli.pausing import MANAGER
from kvpool.cli.texts import documents_of
from kvpool.cluster.errors import Terminal
from kvpool.cluster.reads import find
from kvpool.cluster.resources import OWN_RESOURCES, Obj, Resource
from kvpool.cluster.rest import Rest, Verb

PEOPLES: Final = ("TierBudget", "KVPool", "PDGroup", "Supernode")
_LIMIT_BYTES: Final = 16 * 2**20


def read_manifests(file: str, stdin: TextIO, namespace: str) -> list[Obj]:
    """Read every document of a YAML or JSON file (`-`: standard input); namespaced ones default to one.

    Raises:
        CliError: when the file cannot be read, or holds what `plan` does not know.
    """
    try:
        text = stdin.read(_LIMIT_BYTES + 1) if file == "-" else Path(file).read_text(encoding="utf-8")
        if len(text) > _LIMIT_BYTES:
            raise CliError(f"{file} has more than {_LIMIT_BYTES >> 20} MiB")
        documents = [document for document in documents_of(text) if document is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CliError(f"{file} cannot be read: {' '.join(str(error).split())}") from None
    if not documents:
        raise CliError(f"{file} holds no manifest")
    return [_checked(document, file, namespace) for document in documents]


def _checked(document: object, file: str, namespace: str) -> Obj:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise CliError(f"{file}: a document is no manifest: it needs apiVersion, kind, metadata and spec")
    kind, name = document.get("kind"), document["metadata"].get("name")
    if kind not in PEOPLES or document.get("apiVersion") != "kvpool.dev/v1alpha1":
        what = f"{document.get('apiVersion')} {kind}"
        raise CliError(f"{file}: {what} is nothing that people plan here: use {', '.join(PEOPLES)}")
    if not isinstance(name, str) or not name:
        raise CliError(f"{file}: a {kind} has no metadata.name")
    resource = resource_of_kind(str(kind))
    if resource.namespaced:
        document["metadata"].setdefault("namespace", namespace)
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
