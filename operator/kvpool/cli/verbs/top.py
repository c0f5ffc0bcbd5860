"""`kubectl kvpool top`: live figures, once or again and again."""

import time

import click

from kvpool.cli import clock
from kvpool.cli.cluster_state import read_cluster
from kvpool.cli.options import Options, common_flags, seconds_of
from kvpool.cli.printing import render
from kvpool.cli.session import run
from kvpool.cli.views.live_figures import live_figures
from kvpool.world.build import read_objects


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Show again until Ctrl-C.")
@click.option("--every", default="2s", show_default=True, metavar="TIME", help="How often, with --watch.")
@common_flags
def top(options: Options, *, watch: bool, every: str) -> None:
    """Show how full pools and nodes are, and the weights of slots."""
    pause_seconds = seconds_of("--every", every)
    try:
        while True:
            text = _look(options)
            if watch:
                click.clear()
            click.echo(text)
            if not watch:
                return
            time.sleep(pause_seconds)
    except KeyboardInterrupt:
        return


def _look(options: Options) -> str:
    state = run(options, lambda rest, _: read_cluster(rest, options.operator_namespace))
    now = clock.now()
    return render(live_figures(read_objects(state.raws, now), options.namespace, now), options.output)
