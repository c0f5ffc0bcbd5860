"""`kvpool ratio`: how many instances should prefill and decode, or hold attention and experts."""

import click
from pydantic import JsonValue

from kvpool.cli.answer import answer_as
from kvpool.cli.options import Format
from kvpool.cli.planning.documents import read_model
from kvpool.cli.planning.output import output_flag
from kvpool.cli.planning.ratios.asking import attention_plan, constants_of, roles_of, swings_of, table_of
from kvpool.cli.planning.ratios.file import AttentionExperts, PrefillDecode, RatioFile
from kvpool.cli.planning.ratios.view import (
    attention_document,
    attention_section,
    cell_document,
    cells_section,
    impossible_of,
    origins_section,
    swing_document,
    swings_section,
)
from kvpool.cli.screen import Screen, Section
from kvpool.plan.ratio.demand import Promise
from kvpool.plan.timing.model import NS_PER_SECOND


@click.command()
@click.option(
    "-f", "--filename", "file", required=True, metavar="FILE", help="Question file; - is standard input."
)
@output_flag
def ratio(file: str, output: str) -> None:
    """Say how many instances should prefill and how many decode, for each kind of request, and why.

    FILE asks in prefillDecode, attentionExperts, or both. Exit code 1 when something cannot be served.
    """
    asked = read_model(file, RatioFile)
    sections: list[Section] = []
    document: dict[str, JsonValue] = {}
    findings: list[str] = []
    if asked.prefill_decode is not None:
        _prefill_decode(asked.prefill_decode, sections, document, findings)
    if asked.attention_experts is not None:
        _attention_experts(asked.attention_experts, sections, document, findings)
    answer_as(Screen(sections, document, findings), Format(output))


def _prefill_decode(
    question: PrefillDecode, sections: list[Section], document: dict[str, JsonValue], findings: list[str]
) -> None:
    roles = roles_of(question)
    cells = table_of(question, roles)
    promise = Promise(round(question.ttft * NS_PER_SECOND), round(question.tpot * NS_PER_SECOND))
    swings = swings_of(cells[0], roles, promise)
    prefill, decode = (constants_of(question, role) for role in (question.prefill, question.decode))
    sections += [origins_section(question, prefill, decode), cells_section(cells)]
    if swings:
        sections.append(swings_section(swings))
    document["prefillDecode"] = {
        "constants": {"prefill": prefill.source, "decode": decode.source},
        "requests": [cell_document(cell) for cell in cells],
        "sensitivity": [swing_document(swing) for swing in swings],
    }
    findings += impossible_of(cells)


def _attention_experts(
    question: AttentionExperts, sections: list[Section], document: dict[str, JsonValue], findings: list[str]
) -> None:
    plan = attention_plan(question)
    sections.append(attention_section(plan, question.most_ratio))
    document["attentionExperts"] = attention_document(plan)
    if plan.warning:
        findings.append(plan.warning)
