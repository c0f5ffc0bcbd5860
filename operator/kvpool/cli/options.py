"""The flags that every verb takes."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Final

import click

from kvpool.api.duration import parse_duration
from kvpool.cli.faults import CliError

DEFAULT_OPERATOR_NAMESPACE: Final = "kvpool-system"
LONGEST_REASON: Final = 256
"""As `spec.maintenance` of a Supernode takes it; an event takes no more than four times as much."""


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Options:
    """Where to ask, about what, and how to print."""

    namespace: str | None
    """None: the flag was not given."""
    context: str | None
    kubeconfig: Path | None
    """None: `KUBECONFIG`, else the home folder's."""
    output: Format
    operator_namespace: str
    timeout_seconds: float
    """For the whole command."""


def seconds_of(flag: str, text: str) -> float:
    """Read a duration flag.

    Raises:
        CliError: when it is none, or not above zero.
    """
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise CliError(f"{flag}: {error}") from None
    if seconds <= 0:
        raise CliError(f"{flag} must be above 0, not {text}")
    return seconds


def _short(context: click.Context, flag: click.Parameter, text: str) -> str:
    """Return a reason that fits wherever reasons are kept."""
    del context, flag
    if len(text) > LONGEST_REASON:
        raise CliError(f"--reason has {len(text)} characters: give {LONGEST_REASON} at most")
    return text


reason_flag = click.option(
    "--reason", default="", metavar="TEXT", callback=_short, help="Why, for people: 256 characters at most."
)


def common_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the common flags, as its first argument `options`."""
    return common_flags_within("20s")(verb)


def common_flags_within(time: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `common_flags`, for a verb that is given another time."""
    return lambda verb: _with_flags(verb, time)


def _with_flags(verb: Callable[..., None], time: str) -> Callable[..., None]:
    @wraps(verb)
    def with_options(
        *arguments: object,
        namespace: str | None,
        context: str | None,
        kubeconfig: Path | None,
        output: str,
        operator_namespace: str,
        timeout: str,
        **flags: object,
    ) -> None:
        options = Options(
            namespace=namespace,
            context=context,
            kubeconfig=kubeconfig,
            output=Format(output),
            operator_namespace=operator_namespace,
            timeout_seconds=seconds_of("--timeout", timeout),
        )
        verb(options, *arguments, **flags)

    decorated: Callable[..., None] = with_options
    deadline = click.option(
        "--timeout", metavar="TIME", default=time, show_default=True, help="Deadline of the whole command."
    )
    for flag in (deadline, *reversed(_FLAGS)):
        decorated = flag(decorated)
    return decorated


_FLAGS: Final = (
    click.option("-n", "--namespace", metavar="NS", help="Namespace of the objects."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig file."),
    click.option("--kubeconfig", metavar="FILE", type=click.Path(path_type=Path), help="Kubeconfig file."),
    click.option(
        "-o",
        "--output",
        type=click.Choice([known.value for known in Format]),
        default=Format.TABLE.value,
        help="How to print; wide has every row and column.",
    ),
    click.option(
        "--operator-namespace",
        metavar="NS",
        default=DEFAULT_OPERATOR_NAMESPACE,
        envvar="KVPOOL_OPERATOR_NAMESPACE",
        show_default=True,
        show_envvar=True,
        help="Where the operator runs.",
    ),
)
