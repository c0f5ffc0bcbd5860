"""One command's conversation with the API server: connected, bounded in time, faults told for people."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubernetes.aio.config import ConfigException

from kvpool.cli.faults import CliError
from kvpool.cli.kubeconfig import Login, find_login
from kvpool.cli.options import Options
from kvpool.cluster.errors import ApiError, Conflict, Gone, Retryable, Throttled, Unauthorized
from kvpool.cluster.rest import Rest

T = TypeVar("T")


def run(options: Options, work: Callable[[Rest, Login], Awaitable[T]], *, endless: bool = False) -> T:
    """Run `work` with a connection, within the command's deadline; `endless` work bounds its own calls.

    Raises:
        CliError: when the cluster could not be asked, or refused.
    """
    login = find_login(options.kubeconfig, options.context)
    seconds = options.timeout_seconds
    return asyncio.run(_run(login, work, seconds, None if endless else seconds))


async def _run(
    login: Login, work: Callable[[Rest, Login], Awaitable[T]], seconds: float, deadline_seconds: float | None
) -> T:
    try:
        async with asyncio.timeout(deadline_seconds):
            rest = await _connect(login)
            try:
                return await work(rest, login)
            finally:
                await rest.close()
    except ApiError as error:
        raise CliError(_for_people(error, login)) from error
    except TimeoutError as error:
        text = f"not done within {seconds:g} s: the API server is slow or does not answer ({login.where})"
        raise CliError(f"{text}; give more time with --timeout") from error


async def _connect(login: Login) -> Rest:
    try:
        return await Rest.connect(login.access)
    except (OSError, ConfigException, AttributeError, KeyError, TypeError, ValueError) as error:
        # What the client says of fields of another type, of base64 that is none, of files that are not there.
        text = " ".join(str(error).split()) or type(error).__name__
        raise CliError(f"the credentials of {login.where} cannot be used: {text}") from error


def _for_people(error: ApiError, login: Login) -> str:
    match error:
        case Unauthorized():
            return f"the API server does not accept the credentials of {login.where}: {error.message}"
        case Gone() if "the server could not find the requested resource" in error.message:
            return f"{error.request}: the cluster has no such kind: install kvpool's chart ({login.where})"
        case Gone():
            return f"{error.request}: not found: {error.message}"
        case Conflict():
            return f"{error.request}: it changed meanwhile, nothing was written: run the command again"
        case Throttled():
            return f"{error.request}: the API server asks to wait: {error.message}"
        case Retryable(status=0):
            return f"the API server did not answer ({login.where}): {error.message}"
        case _:
            return f"{error.request}: {error.status} {error.reason}: {error.message}"
