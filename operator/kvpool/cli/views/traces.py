"""What a trace holds, for people and programs."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from kvpool.cli.screen import Lines, Screen
from kvpool.sim.workloads.request import Workload

NOTES: Final[Mapping[str, str]] = {
    "bad_lines": "{:,} bad lines left out",
    "zero_tokens": "{:,} requests without prompt or answer tokens left out",
    "failed_requests": "{:,} failed requests left out",
    "sorted_after_lines_out_of_order": "{:,} lines were earlier than the line before: sorted by arrival",
    "arrivals_in_bursts_ns_apart": "arrivals in bursts {seconds:g} s apart: a coarse clock? (--spread)",
    "spread_ns": "arrivals spread uniformly over {seconds:g} s",
    "spread_seed": "seed of the spreading: {}",
    "arrivals_made_with_seed": "the file has no times; Poisson arrivals made with seed {}",
    "arrivals_made_per_1000_seconds": "arrivals made: {:,} in 1000 s",
    "subagents": "{:,} subagents, each a session of its own",
    "think_time_by_the_clock": "{:,} think times were not told and are from the clock",
    "turns_whose_parent_is_not_there": "{:,} turns continue one that is not in the file: new sessions",
    "waits_for_other_sessions": "{:,} requests wait for other sessions: only the earliest time is kept",
    "waits_for_requests_not_there_before": "{:,} waits are for requests that are not before them",
    "bytes_of_100_tokens": "blocks of text cut at {:,} bytes for 100 tokens",
    "answers_measured_by_their_text": "{:,} answers without usage measured by their text",
    "prompts_measured_by_their_text": "{:,} prompts without usage measured by their text",
    "prompts_longer_than_their_text": "{:,} prompts have far more tokens than text: they share nothing",
    "parents_not_seen": "{:,} events continue blocks that were stored before the log began: left out",
    "events_of_lower_tiers": "{:,} events of lower tiers passed over",
    "caches_cleared": "{:,} times a cache was cleared",
}
"""What the notes of loaders mean; `seconds` is the figure in seconds where it is nanoseconds."""


def notes_told(notes: Mapping[str, int]) -> list[str]:
    """Return a loader's notes as sentences. Files of people's own may have reasons of their own."""
    return [
        NOTES[reason].format(figure, seconds=figure / 1e9)
        if reason in NOTES
        else f"{reason.replace('_', ' ')}: {figure:,}"
        for reason, figure in notes.items()
    ]


def imported_screen(workload: Workload, target: str, salt: str) -> Screen:
    """Return what an import has made; `salt` is the file of a salt that was made for it, or empty."""
    figures = trace_figures(workload)
    requests, seconds = figures["requests"], figures["seconds"]
    prompts, outputs = figures["prompt_tokens"], figures["output_tokens"]
    blocks, distinct = figures["blocks"], figures["distinct_blocks"]
    lines = [
        f"{requests:,} requests in {seconds:,.0f} s: {prompts:,} prompt and {outputs:,} output tokens",
        f"{blocks:,} blocks of {workload.block_tokens} tokens, of which {distinct:,} are distinct",
        *notes_told(workload.notes),
        f"written to {target}: lengths, times and salted ids, no text",
    ]
    if salt:
        lines.append(f"salt kept in {salt}: with it guesses of texts can be tested, so keep it from others")
    document: dict[str, JsonValue] = {
        **figures,
        "block_tokens": workload.block_tokens,
        "source": workload.source,
        "notes": dict(workload.notes),
        "trace": target,
    }
    return Screen(sections=(Lines("", lines),), document=document)


def trace_figures(workload: Workload) -> dict[str, int | float]:
    """Return sums over a workload's requests."""
    requests = workload.requests
    return {
        "requests": len(requests),
        "seconds": requests[-1].arrival_ns / 1e9,
        "prompt_tokens": sum(request.prompt_tokens for request in requests),
        "output_tokens": sum(request.output_tokens for request in requests),
        "blocks": sum(len(request.blocks) for request in requests),
        "distinct_blocks": len({block for request in requests for block in request.blocks}),
    }
