"""Reads YAML and JSON files that people write for the planner, and says what is wrong with them."""

import sys
from pathlib import Path
from typing import Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from kvpool.cli.faults import CliError
from kvpool.cli.planning.suggestions import faults_of
from kvpool.cli.texts import documents_of

LIMIT_BYTES: Final = 16 * 2**20

_M = TypeVar("_M", bound=BaseModel)


def read_document(file: str) -> object:
    """Read the one document of a YAML or JSON file; `-` is standard input.

    Raises:
        CliError: when the file cannot be read, is larger than 16 MiB, or holds none or several documents.
    """
    try:
        if file == "-":
            if sys.stdin is None:
                raise CliError("standard input is closed")
            text = sys.stdin.read(LIMIT_BYTES + 1)
        else:
            with Path(file).open(encoding="utf-8") as stream:
                text = stream.read(LIMIT_BYTES + 1)
        if len(text) > LIMIT_BYTES:
            raise CliError(f"{file} has more than {LIMIT_BYTES >> 20} MiB")
        documents = [document for document in documents_of(text) if document is not None]
    except (OSError, ValueError, yaml.YAMLError) as error:
        # ValueError: bytes that are no UTF-8, and a path with a NUL in it.
        raise CliError(f"{file} cannot be read: {' '.join(str(error).split())}") from None
    if len(documents) != 1:
        raise CliError(f"{file} holds {len(documents)} documents; write exactly one")
    return documents[0]


def read_model(file: str, model: type[_M]) -> _M:
    """Read a file as a model.

    Raises:
        CliError: as `read_document`, and with one line for each field that does not fit.
    """
    return fit(read_document(file), model, file)


def fit(document: object, model: type[_M], file: str) -> _M:
    """Take a document as a model.

    Raises:
        CliError: with one line for each field that does not fit.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        faults = faults_of(error, model)
        listed = "".join(f"\n  {fault}" for fault in faults)
        raise CliError(f"{file} cannot be used:{listed}") from None
