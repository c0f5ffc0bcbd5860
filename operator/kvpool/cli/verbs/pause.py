"""`kubectl kvpool pause` and `resume`: no new actions, for everything or for one object."""

import click

from kvpool.cli import clock
from kvpool.cli.faults import CliError
from kvpool.cli.kubeconfig import Login
from kvpool.cli.options import Options, common_flags, reason_flag
from kvpool.cli.pausing import set_cluster_pause, set_object_pause
from kvpool.cli.references import read_reference
from kvpool.cli.session import run
from kvpool.cluster.rest import Rest

_OBJECT = click.argument("target", metavar="[KIND/NAME]", required=False)
_ALL = click.option("--all", "everything", is_flag=True, help="The whole cluster.")


@click.command()
@_OBJECT
@_ALL
@reason_flag
@common_flags
def pause(options: Options, target: str | None, *, everything: bool, reason: str) -> None:
    """Stop new actions, for the cluster (--all) or one object (KIND/NAME); leases keep renewing."""
    _set(options, target, everything=everything, reason=reason, paused=True)


@click.command()
@_OBJECT
@_ALL
@reason_flag
@common_flags
def resume(options: Options, target: str | None, *, everything: bool, reason: str) -> None:
    """Let new actions start again, for the cluster (--all) or one object (KIND/NAME)."""
    _set(options, target, everything=everything, reason=reason, paused=False)


def _set(options: Options, target: str | None, *, everything: bool, reason: str, paused: bool) -> None:
    if everything == (target is not None):
        raise CliError("give either --all or one KIND/NAME")
    now = clock.now()

    async def work(rest: Rest, login: Login) -> str:
        word = "paused" if paused else "resumed"
        if target is None:
            namespace = options.operator_namespace
            await set_cluster_pause(rest, namespace, paused=paused, reason=reason, now=now)
            return f"the cluster is {word}"
        reference = read_reference(target, options.namespace or login.namespace)
        changed = await set_object_pause(rest, reference, paused=paused, reason=reason, now=now)
        state = word if paused else "not paused"
        return f"{reference} is {word}" if changed else f"{reference} was {state} already"

    click.echo(run(options, work))
