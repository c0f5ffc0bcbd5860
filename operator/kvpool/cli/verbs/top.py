"""`kubectl kvpool top`: live figures, once or again and again."""

import asyncio

import click

from kvpool.cli import clock
from kvpool.cli.cluster_state import read_cluster
from kvpool.cli.kubeconfig import Login
from kvpool.cli.options import Options, common_flags, seconds_of
from kvpool.cli.printing import render
from kvpool.cli.session import run
from kvpool.cli.views.live_figures import live_figures
from kvpool.cluster.rest import Rest
from kvpool.world.build import read_objects


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Show again until Ctrl-C.")
@click.option("--every", default="2s", show_default=True, metavar="TIME", help="How often, with --watch.")
@common_flags
def top(options: Options, *, watch: bool, every: str) -> None:
    """Show how full pools and nodes are, and the weights of slots."""
    pause_seconds = seconds_of("--every", every)

    async def work(rest: Rest, _: Login) -> None:
        while True:
            async with asyncio.timeout(options.timeout_seconds):
                text = await _look(rest, options)
            if watch:
                click.clear()
            click.echo(text)
            if not watch:
                return
            await asyncio.sleep(pause_seconds)

    try:
        run(options, work, endless=watch)
    except KeyboardInterrupt:
        return


async def _look(rest: Rest, options: Options) -> str:
    state = await read_cluster(rest, options.operator_namespace)
    now = clock.now()
    return render(live_figures(read_objects(state.raws, now), options.namespace, now), options.output)
