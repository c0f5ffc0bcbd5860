"""The forms of traces that can be read, and how a first line tells which one a file has."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kvpool.sim.workloads import azure, burstgpt, dynamo, lengths, mooncake, own, qwen, weka
from kvpool.sim.workloads.azure import AzureReader
from kvpool.sim.workloads.burstgpt import BurstGptReader
from kvpool.sim.workloads.dynamo import DynamoReader
from kvpool.sim.workloads.fields import csv_cells, json_object
from kvpool.sim.workloads.lengths import LengthsReader
from kvpool.sim.workloads.mooncake import MooncakeReader
from kvpool.sim.workloads.own import OwnReader
from kvpool.sim.workloads.qwen import QwenReader
from kvpool.sim.workloads.reading import LineError, Reader, Reading
from kvpool.sim.workloads.weka import WekaReader

SEEN: Final = 12


@dataclass(frozen=True, slots=True)
class Form:
    """A form of traces."""

    recognises: Callable[[Collection[str]], bool] | None
    """Whether a first line's keys (or columns) are of this form; None: it must be named."""
    opens: Callable[[str, Reading], Reader]
    """Makes the reader; takes the first line."""
    header: bool
    """Whether the first line is not data."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A reader for a file, and whether its first line is used up."""

    reader: Reader
    header: bool


FORMS: Final[Mapping[str, Form]] = {
    "kvpool": Form(own.recognises, OwnReader, header=True),
    "weka": Form(weka.recognises, lambda _, reading: WekaReader(reading), header=False),
    "qwen": Form(qwen.recognises, lambda _, reading: QwenReader(reading), header=False),
    "dynamo": Form(dynamo.recognises, lambda _, reading: DynamoReader(reading, deltas=False), header=False),
    "mooncake-delta": Form(None, lambda _, reading: DynamoReader(reading, deltas=True), header=False),
    "mooncake": Form(mooncake.recognises, lambda _, reading: MooncakeReader(reading), header=False),
    "azure": Form(azure.recognises, AzureReader, header=True),
    "burstgpt": Form(burstgpt.recognises, BurstGptReader, header=True),
    "lengths": Form(lengths.recognises, LengthsReader, header=True),
}
"""By name; the first one that recognises a line reads it."""


def opened(first: str, form: str | None, reading: Reading) -> Opening:
    """Return the reader for a file that starts with the line `first`."""
    if form is None:
        form = _recognised(first)
    elif form not in FORMS:
        raise LineError(f"the form {form!r} is not known; it is one of {', '.join(FORMS)}")
    return Opening(FORMS[form].opens(first, reading), FORMS[form].header)


def _recognised(first: str) -> str:
    is_json = first.lstrip().startswith(("{", "["))
    keys = list(json_object(first)) if is_json else csv_cells(first)
    for name, form in FORMS.items():
        if form.recognises is not None and form.recognises(keys):
            return name
    what = "a JSON object with the fields" if is_json else "a CSV header with the columns"
    # Of a file that is no trace at all only so much is told as a header would have: names are short.
    names = ", ".join(key[: SEEN * 2] for key in keys[:SEEN])
    raise LineError(
        f"is {what} {names}, which is no known form ({', '.join(FORMS)}): name its form with --form, "
        "or make a trace of a log of requests with `kvpool trace import`"
    )
