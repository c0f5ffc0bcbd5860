"""``python -m tools.docs [--check]``: write the reference pages, or say which of them have drifted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.docs.claims_page import claims_page
from tools.docs.fields_page import fields_page
from tools.docs.metrics_page import metrics_page

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when everything is written or current, 1 on drift."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page has drifted")
    check = parser.parse_args(arguments).check
    drifted = False
    for path, text in generated().items():
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            drifted = True
            print(f"docs/reference/{path.name} is not what the code says: run python -m tools.docs")
    return 1 if drifted else 0


def generated() -> dict[Path, str]:
    """Every generated page and its text."""
    return {
        REFERENCE / "claims.md": claims_page(),
        REFERENCE / "fields.md": fields_page(),
        REFERENCE / "metrics.md": metrics_page(),
    }


if __name__ == "__main__":
    sys.exit(main())
