"""Claims that were run again, as a table for people and a document for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvpool.cli.screen import Column, Screen, Table
from kvpool.cli.views.figures import as_document, as_json
from kvpool.sim.claims.row import ClaimRow, Verdict


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """One row, the parameters it was run with, and the processor seconds that it took."""

    row: ClaimRow
    parameters: Mapping[str, Any]
    seconds: float


def claims_screen(answers: Sequence[ClaimAnswer]) -> Screen:
    """Build the screen; a claim that does not come out is a finding."""
    columns = (
        Column("CLAIM"),
        Column("SAYS"),
        Column("SOURCE", wide=True),
        Column("KIND", wide=True),
        Column("OURS"),
        Column("BAND"),
        Column("VERDICT"),
        Column("DECIDED BY", wide=True),
        Column("SECONDS", right=True),
    )
    rows = [
        (
            found.row.claim.number,
            found.row.claim.text,
            f"{found.row.claim.source} ({found.row.claim.reading})",
            str(found.row.claim.kind),
            found.row.ours,
            found.row.band,
            str(found.row.verdict),
            found.row.knob,
            f"{found.seconds:.1f}",
        )
        for found in answers
    ]
    findings = [
        f"{found.row.claim.number}: {found.row.ours}; the band is {found.row.band}"
        for found in answers
        if found.row.verdict is Verdict.NO
    ]
    document = {"claims": [_document(found) for found in answers]}
    return Screen([Table("Claims", columns, rows)], as_document(document), findings)


def _document(found: ClaimAnswer) -> dict[str, object]:
    row = found.row
    return {
        "claim": row.claim.number,
        "text": row.claim.text,
        "source": row.claim.source,
        "reading": str(row.claim.reading),
        "kind": str(row.claim.kind),
        "ours": row.ours,
        "band": row.band,
        "verdict": str(row.verdict),
        "knob": row.knob,
        "figures": as_json(row.figures),
        "parameters": as_json(found.parameters),
        "checksums": as_json(row.checksums),
        "seed": row.seed,
        "seconds": round(found.seconds, 1),
    }
