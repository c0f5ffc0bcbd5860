"""Kubeconfig files with everything inside them, so that they can be copied."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from devcluster.rest import Credentials

CONTEXT = "devcluster"


def write_kubeconfig(path: Path, credentials: Credentials, namespace: str = "default") -> Path:
    """Write a kubeconfig (mode 0600) with one context and return its path."""
    user: dict[str, str] = {}
    if credentials.certificate_file is not None and credentials.key_file is not None:
        user["client-certificate-data"] = _encoded(credentials.certificate_file)
        user["client-key-data"] = _encoded(credentials.key_file)
    if credentials.token is not None:
        user["token"] = credentials.token
    cluster = {
        "server": credentials.server,
        "certificate-authority-data": _encoded(credentials.ca_file),
    }
    context = {"cluster": CONTEXT, "user": CONTEXT, "namespace": namespace}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": user}],
        "contexts": [{"name": CONTEXT, "context": context}],
        "current-context": CONTEXT,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
