"""`kubectl kvpool uninstall`: what an uninstall leaves, and with --drain the way to nothing being left."""

import asyncio
from collections.abc import Sequence

import click

from kvpool.cli import clock
from kvpool.cli.answer import answer
from kvpool.cli.cluster_state import read_operator
from kvpool.cli.faults import CliError
from kvpool.cli.kubeconfig import Login
from kvpool.cli.operator_state import OperatorState
from kvpool.cli.options import Options, common_flags_within
from kvpool.cli.session import run
from kvpool.cli.uninstalling.inventory import Inventory, take_inventory
from kvpool.cli.uninstalling.remains import Item, Left, Step, left_of, release_of
from kvpool.cli.uninstalling.removal import Removal, ask
from kvpool.cli.views.departure import Departure, announced, kept_by_helm, over, progress
from kvpool.cli.views.findings import leader_finding
from kvpool.cluster.rest import Rest

_LED: tuple[Step, ...] = (Step.HOLDINGS, Step.NODES)
"""Steps that nobody but a leading operator can take."""


@click.command()
@click.option("--drain", "drained", is_flag=True, help="Give everything back and remove what is kept.")
@click.option("--yes", is_flag=True, help="Do it; without, only what would go is shown.")
@click.option("--crds", is_flag=True, help="The CustomResourceDefinitions too.")
@common_flags_within("5m")
def uninstall(options: Options, *, drained: bool, yes: bool, crds: bool) -> None:
    """Show what `helm uninstall` leaves; with --drain --yes make everything go, for `helm uninstall` last."""
    if (yes or crds) and not drained:
        raise CliError("--yes and --crds go with --drain: without it nothing is changed")
    if yes:
        answer(over(*run(options, lambda rest, _: _remove(rest, options, crds=crds), endless=True)), options)
        return

    async def look(rest: Rest, _: Login) -> Departure:
        return _departure(await take_inventory(rest, options.operator_namespace), options, crds=crds)

    departure = run(options, look)
    answer(announced(departure) if drained else kept_by_helm(departure), options)


async def _remove(rest: Rest, options: Options, *, crds: bool) -> tuple[Departure, Left]:
    namespace = options.operator_namespace
    deadline = asyncio.get_running_loop().time() + options.timeout_seconds
    async with asyncio.timeout_at(deadline):
        operator = await read_operator(rest, namespace)
        departure = _departure(await take_inventory(rest, namespace), options, crds=crds)
        _check(operator, departure)
        if any(departure.items[step] for step in _LED):
            await ask(rest, namespace, clock.now())
    left = await Removal(rest, namespace, deadline, _Progress()).run(tuple(departure.items))
    return departure, left


def _departure(inventory: Inventory, options: Options, *, crds: bool) -> Departure:
    steps = [step for step in Step if crds or step is not Step.DEFINITIONS]
    return Departure(
        options.operator_namespace,
        release_of(inventory),
        {step: left_of(step, inventory) for step in steps},
        crds=crds,
    )


def _check(operator: OperatorState, departure: Departure) -> None:
    """Raises CliError when nobody would do what is to be done."""
    if not any(departure.items[step] for step in _LED):
        return
    if operator.pause.paused:
        raise CliError(
            "the cluster is paused, which stops an uninstall too: run `kubectl kvpool resume --all`"
        )
    missing = leader_finding(operator, clock.now())
    if missing is not None:
        raise CliError(f"{missing}; memory and seats are given back by a leading operator: start it first")


class _Progress:
    """Tells on standard error what a step waits for, whenever that changes."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, step: Step, items: Sequence[Item]) -> None:
        text = progress(step, items)
        if text != self._said:
            self._said = text
            click.echo(text, err=True)
