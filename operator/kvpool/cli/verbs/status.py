"""`kubectl kvpool status`: where did my memory go, on one screen."""

import click

from kvpool.cli import clock
from kvpool.cli.answer import answer
from kvpool.cli.cluster_state import read_cluster
from kvpool.cli.options import Format, Options, common_flags
from kvpool.cli.session import run
from kvpool.cli.views.overview import overview
from kvpool.world.build import read_objects


@click.command()
@common_flags
def status(options: Options) -> None:
    """Show where the memory went: declared, admitted, bound, used, foreign, unknown, with ages."""
    state = run(options, lambda rest, _: read_cluster(rest, options.operator_namespace))
    now = clock.now()
    objects = read_objects(state.raws, now)
    wide = options.output is Format.WIDE
    answer(overview(objects, state.operator, options.namespace, now, wide=wide), options)
