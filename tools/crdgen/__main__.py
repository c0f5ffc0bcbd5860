"""``python -m tools.crdgen [--check]``: write the generated files, or say which of them have drifted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kvpool.api import KINDS
from tools.crdgen.definition import definition, rendered
from tools.crdgen.rewrite import NotStructuralError
from tools.crdgen.samples import bad_samples
from tools.crdgen.structural import findings
from tools.crdgen.validation_page import validation_page

ROOT = Path(__file__).resolve().parents[2]
CRDS = ROOT / "crds"
CHART_CRDS = ROOT / "charts" / "kvpool" / "files" / "crds"  # helm reads no file outside of its chart
VALIDATION_PAGE = ROOT / "docs" / "reference" / "validation.md"


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when everything is written or current, 1 on findings or drift."""
    parser = argparse.ArgumentParser(prog="python -m tools.crdgen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file has drifted")
    check = parser.parse_args(arguments).check
    try:
        files = generated()
    except NotStructuralError as problem:
        print(f"not a structural schema: {problem}", file=sys.stderr)
        return 1
    problems = _drift(files) if check else _written(files)
    for line in problems:
        print(line, file=sys.stderr)
    return 1 if problems else 0


def generated() -> dict[Path, str]:
    """Every generated file and its text; raises `NotStructuralError`, also for definitions unfit to apply."""
    files = {}
    crds = [definition(model) for model in KINDS]
    for crd in crds:
        if found := findings(crd):
            raise NotStructuralError(crd["metadata"]["name"], "\n  ".join(["", *map(str, found)]))
        plural, group = crd["metadata"]["name"].split(".", 1)
        for folder in (CRDS, CHART_CRDS):
            files[folder / f"{group}_{plural}.yaml"] = rendered(crd)
    files[VALIDATION_PAGE] = validation_page(crds, bad_samples())
    return files


def _stale(files: dict[Path, str]) -> list[Path]:
    there = {path for folder in (CRDS, CHART_CRDS) for path in folder.glob("kvpool.dev_*.yaml")}
    return sorted(there - set(files))


def _drift(files: dict[Path, str]) -> list[str]:
    drifted = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    return [
        f"{path.relative_to(ROOT)} is not what the models say: run python -m tools.crdgen"
        for path in [*drifted, *_stale(files)]
    ]


def _written(files: dict[Path, str]) -> list[str]:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in _stale(files):
        path.unlink()
    return []


if __name__ == "__main__":
    sys.exit(main())
