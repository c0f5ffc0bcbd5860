"""Reads the sample manifests under ``crds/samples``; their header says what must become of them.

The format is described for people in ``crds/samples/README.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

SAMPLES = Path(__file__).resolve().parents[2] / "crds" / "samples"
Verb = Literal["create", "update", "apply"]

_CONDITION = re.compile(r"^(?P<type>\w+)=(?P<status>True|False|Unknown) reason=(?P<reason>\w+)$")
_REFUSED = {"case", "verb", "code", "message", "from", "subresource"}
_ACCEPTED = {"case", "condition", "message", "from", "with"}


class BadHeaderError(Exception):
    """A sample's header cannot be read; the message names the file and what is wrong."""


@dataclass(frozen=True)
class Condition:
    """What the operator must say of a sample that the API server accepts."""

    type: str
    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.type}={self.status}, reason {self.reason}"


@dataclass(frozen=True)
class BadSample:
    """A manifest that must be refused by the API server, or else by the operator in a condition.

    ``before`` is the good sample that exists already (for an update), ``beside`` are others that do.
    """

    name: str
    case: str
    message: str
    manifest: dict[str, Any]
    verb: Verb = "create"
    code: int | None = None
    subresource: str = ""
    before: str | None = None
    beside: tuple[str, ...] = ()
    condition: Condition | None = None


def good_samples() -> dict[str, dict[str, Any]]:
    """The manifests that must be accepted, by file name."""
    return {path.name: yaml.safe_load(path.read_text()) for path in sorted((SAMPLES / "good").glob("*.yaml"))}


def bad_samples() -> list[BadSample]:
    """The manifests that must be refused, sorted by name; raises `BadHeaderError`."""
    return [read_bad_sample(path) for path in sorted((SAMPLES / "bad").glob("*.yaml"))]


def read_bad_sample(path: Path) -> BadSample:
    """One file with its header; raises `BadHeaderError`."""
    text = path.read_text()
    lines = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.removeprefix("# "))
    header = yaml.safe_load("\n".join(lines))
    if not isinstance(header, dict):
        raise BadHeaderError(f"{path.name}: the file must begin with comment lines `# name: value`")
    manifest = yaml.safe_load(text)
    return _accepted(path, header, manifest) if "condition" in header else _refused(path, header, manifest)


def _refused(path: Path, header: dict[str, Any], manifest: dict[str, Any]) -> BadSample:
    _check_names(path, header, required={"case", "verb", "code", "message"}, known=_REFUSED)
    if header["verb"] not in ("create", "update", "apply"):
        raise BadHeaderError(f"{path.name}: verb {header['verb']!r} is none of create, update, apply")
    if (header["verb"] == "update") != ("from" in header):
        raise BadHeaderError(f"{path.name}: `from` names the good sample of an update, and only of one")
    return BadSample(
        path.name,
        header["case"],
        header["message"],
        manifest,
        verb=header["verb"],
        code=header["code"],
        subresource=header.get("subresource", ""),
        before=header.get("from"),
    )


def _accepted(path: Path, header: dict[str, Any], manifest: dict[str, Any]) -> BadSample:
    _check_names(path, header, required={"case", "condition", "message"}, known=_ACCEPTED)
    condition = _CONDITION.match(header["condition"])
    if condition is None:
        raise BadHeaderError(f"{path.name}: condition must read `Type=Status reason=Reason`")
    return BadSample(
        path.name,
        header["case"],
        header["message"],
        manifest,
        before=header.get("from"),
        beside=tuple(header.get("with", ())),
        condition=Condition(**condition.groupdict()),
    )


def _check_names(path: Path, header: dict[str, Any], required: set[str], known: set[str]) -> None:
    if missing := sorted(required - set(header)):
        raise BadHeaderError(f"{path.name}: the header lacks {', '.join(missing)}")
    if not isinstance(header["message"], str):
        raise BadHeaderError(f"{path.name}: message must be text: put it in quotes")
    if strange := sorted(set(header) - known):
        raise BadHeaderError(f"{path.name}: the header has no place for {', '.join(strange)}")
