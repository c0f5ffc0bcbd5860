"""`kubectl kvpool timeline`: evidence, moves, weights, pauses, losses and events in one list."""

import click

from kvpool.cli import clock
from kvpool.cli.answer import answer
from kvpool.cli.cluster_state import ClusterState, list_resource, read_cluster
from kvpool.cli.kubeconfig import Login
from kvpool.cli.options import Options, common_flags, seconds_of
from kvpool.cli.session import run
from kvpool.cli.views.moments import happenings, timeline_screen
from kvpool.cli.views.own import own_objects
from kvpool.cluster.reads import Selection
from kvpool.cluster.resources import EVENTS, Obj
from kvpool.cluster.rest import Rest
from kvpool.world.build import read_objects

OWN_EVENTS = Selection(field_selector="regarding.apiVersion=kvpool.dev/v1alpha1")


@click.command()
@click.option("--since", default="30m", show_default=True, metavar="TIME", help="How far back.")
@common_flags
def timeline(options: Options, since: str) -> None:
    """List what happened, oldest first."""
    since_seconds = seconds_of("--since", since)

    async def work(rest: Rest, _: Login) -> tuple[ClusterState, list[Obj]]:
        state = await read_cluster(rest, options.operator_namespace)
        return state, await list_resource(rest, EVENTS, OWN_EVENTS)

    state, events = run(options, work)
    now = clock.now()
    own = own_objects(read_objects(state.raws, now), options.namespace)
    mine = [event for event in events if _is_in(event, options.namespace)]
    found = happenings(own.all, mine, state.operator.pause, since_seconds, now)
    answer(timeline_screen(found, since), options)


def _is_in(event: Obj, namespace: str | None) -> bool:
    where = (event.get("regarding") or {}).get("namespace")
    return namespace is None or where in (None, "", namespace)
