"""Claims that were run again, as a table for people and a document for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.cli.views.figures import as_document, as_json
from kvpool.sim.claims.row import ClaimRow, Verdict


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """One row, the parameters it was run with, and the processor seconds that it took."""

    row: ClaimRow
    parameters: Mapping[str, Any]
    seconds: float


def claims_screen(answers: Sequence[ClaimAnswer], *, wide: bool = False) -> Screen:
    """Build the screen; a claim that does not come out, or could not be run, is a finding.

    What is only in columns of the wide table is in lines below the narrow one.
    """
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
    sections: list[Section] = [Table("Claims", columns, rows)]
    if not wide:
        sections.append(
            Lines("What each says of itself", [line for found in answers for line in _lines(found.row)])
        )
    findings = [text for found in answers if (text := _finding(found.row))]
    document = {"claims": [_document(found) for found in answers]}
    return Screen(sections, as_document(document), findings)


def _lines(row: ClaimRow) -> Iterator[str]:
    claim = row.claim
    yield f"{claim.number}: {claim.kind}, {claim.reading}, {claim.source}"
    if row.knob and row.verdict is not Verdict.NOT_RUN:
        yield f"  decided by: {row.knob}"


def _finding(row: ClaimRow) -> str:
    """What a person should look at; empty: nothing."""
    match row.verdict:
        case Verdict.NO:
            return f"{row.claim.number}: {row.ours}; the band is {row.band}"
        case Verdict.NOT_RUN:
            return f"{row.claim.number} was not run: {row.knob}"
        case _:
            return ""


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
