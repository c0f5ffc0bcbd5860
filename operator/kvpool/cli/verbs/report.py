"""`kubectl kvpool report`: a support bundle, secrets removed."""

from pathlib import Path

import click

from kvpool.cli import clock
from kvpool.cli.bundle import Bundle, collect, write_bundle
from kvpool.cli.cluster_state import ClusterState, read_cluster
from kvpool.cli.kubeconfig import Login
from kvpool.cli.options import Format, Options, common_flags
from kvpool.cli.printing import render
from kvpool.cli.session import run
from kvpool.cli.views.overview import overview
from kvpool.cluster.rest import Rest
from kvpool.world.build import read_objects


@click.command()
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="The archive; never replaced.")
@common_flags
def report(options: Options, out: Path | None) -> None:
    """Write our objects, events and the operator's own into one archive, without secrets."""
    now = clock.now()

    async def work(rest: Rest, _: Login) -> tuple[ClusterState, Bundle]:
        state = await read_cluster(rest, options.operator_namespace)
        return state, await collect(rest, options.operator_namespace, now)

    state, bundle = run(options, work)
    screen = overview(read_objects(state.raws, now), state.operator, None, now, wide=True)
    bundle.files["status.txt"] = render(screen, Format.WIDE) + "\n"
    path = out if out is not None else Path(f"kvpool-report-{now.wall:%Y%m%d-%H%M%S}.tar.gz")
    write_bundle(bundle, path)
    click.echo(f"{path}: {len(bundle.files)} files, secrets removed; look through it before you send it")
    for text in bundle.missing:
        click.echo(f"not in it: {text}")
