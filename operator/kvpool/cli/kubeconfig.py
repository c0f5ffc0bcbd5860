"""Which kubeconfig, context and namespace a command uses, told apart before anything is asked."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvpool.cli.document_files import read_documents
from kvpool.cli.faults import CliError
from kvpool.cluster.rest import Access

_PARTS: Final = (("contexts", "context"), ("clusters", "cluster"), ("users", "user"))

IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
"""The kubelet sets it in every pod."""


@dataclass(frozen=True, slots=True)
class Login:
    """How the cluster is reached."""

    access: Access
    where: str
    """For messages: the file and the context."""
    namespace: str
    """The context's namespace, where no flag names another."""


def find_login(
    kubeconfig: Path | None, context: str | None, environment: Mapping[str, str] = os.environ
) -> Login:
    """Choose the kubeconfig: the flag, `KUBECONFIG`, the home folder's, else the pod's own account.

    Raises:
        CliError: when the file or the context is not there or makes no sense.
    """
    files = _files(kubeconfig, environment)
    if not files:
        if context is not None:
            raise CliError(
                f"--context {context} was given, and there is no kubeconfig file that could have it"
            )
        return Login(Access(), "the pod's own ServiceAccount", "default")
    contents = [_read(file) for file in files]
    # Several files are merged as kubectl does it: of two entries with one name the first counts.
    contexts = {
        str(entry["name"]): entry.get("context") or {}
        for content in reversed(contents)
        for entry in content.get("contexts") or ()
    }
    wanted = context or next((str(c["current-context"]) for c in contents if c.get("current-context")), "")
    text = os.pathsep.join(str(file) for file in files)
    if wanted not in contexts:
        known = ", ".join(sorted(contexts)) or "none"
        named = f"context {wanted!r} is not in {text}" if wanted else f"{text} names no current context"
        raise CliError(f"{named} (its contexts: {known}): choose one with --context")
    namespace = str(contexts[wanted].get("namespace") or "default")
    return Login(Access(Path(text), context), f"{text}, context {wanted}", namespace)


def _files(kubeconfig: Path | None, environment: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise CliError(f"--kubeconfig {kubeconfig} is no file")
        return [kubeconfig]
    named = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    found = [path for path in named if path.is_file()]
    if found:
        return found
    if named:
        text = ", ".join(str(path) for path in named)
        raise CliError(f"KUBECONFIG names {text}, which is no file: correct it, or give --kubeconfig")
    home = Path(environment.get("HOME", "/")) / ".kube" / "config"
    if home.is_file():
        return [home]
    if environment.get(IN_CLUSTER):
        return []
    raise CliError(f"no kubeconfig: {home} does not exist and KUBECONFIG is not set; give --kubeconfig")


def _read(file: Path) -> dict[str, Any]:
    documents = read_documents(str(file), shown=f"kubeconfig {file}")
    content = documents[0] if len(documents) == 1 else None
    if not isinstance(content, dict):
        raise CliError(f"kubeconfig {file} is no kubeconfig: it should have contexts, clusters and users")
    for kind, of_one in _PARTS:
        entries = content.get(kind) or []
        if not isinstance(entries, list) or not all(_is_entry(entry, of_one) for entry in entries):
            raise CliError(
                f"kubeconfig {file}: {kind} should be a list of entries with a name and a {of_one}"
            )
    return content


def _is_entry(entry: object, of_one: str) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get(of_one) or {}, dict)
    )
