"""Reads YAML and JSON files that people write for the planner, and says what is wrong with them."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from kvpool.cli.document_files import read_documents
from kvpool.cli.faults import CliError
from kvpool.cli.planning.suggestions import faults_of

_M = TypeVar("_M", bound=BaseModel)


def read_document(file: str) -> object:
    """Read the one document of a YAML or JSON file; `-` is standard input.

    Raises:
        CliError: when the file cannot be read, is larger than 16 MiB, or holds none or several documents.
    """
    documents = read_documents(file)
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
