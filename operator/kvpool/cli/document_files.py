"""Files that people hand over, read whole as documents, within a bound, or told why they cannot be."""

import sys
from pathlib import Path
from typing import Final

import yaml

from kvpool.cli.aliases import LIMIT_BYTES
from kvpool.cli.faults import CliError
from kvpool.cli.texts import documents_of

_UNNAMED: Final = '"<unicode string>", '
"""What PyYAML calls the file before each line number."""


def read_documents(file: str, *, shown: str = "") -> list[object]:
    """Read the documents of a YAML or JSON file; `-` is standard input; empty ones are left out.

    Args:
        file: its path.
        shown: what messages call it; the path, if empty.

    Raises:
        CliError: when it cannot be read, or is larger than 16 MiB; the text has the line, where there is one.
    """
    shown = shown or file
    try:
        content = _content(file)
        if len(content) > LIMIT_BYTES:
            raise CliError(f"{shown} has more than {LIMIT_BYTES >> 20} MiB: name another file, or split it")
        return [document for document in documents_of(content.decode()) if document is not None]
    except OSError as error:
        raise CliError(f"{shown} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CliError(f"{shown} cannot be read: line {line} is not UTF-8: save it as UTF-8") from None
    except (ValueError, yaml.YAMLError) as error:
        # ValueError: a path with a NUL in it.
        text = " ".join(str(error).split()).replace(_UNNAMED, "")
        raise CliError(f"{shown} cannot be read: {text}") from None


def _content(file: str) -> bytes:
    """Return as much of the file as shows whether it is within the bound."""
    if file == "-":
        if sys.stdin is None:
            raise CliError("standard input is closed")
        return sys.stdin.buffer.read(LIMIT_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(LIMIT_BYTES + 1)
