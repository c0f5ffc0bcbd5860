"""`kubectl kvpool plan`: what applying a manifest would do."""

from collections.abc import Sequence
from dataclasses import replace

import click

from kvpool.cli.answer import answer
from kvpool.cli.foresight import foresee
from kvpool.cli.kubeconfig import Login
from kvpool.cli.live import Live, read_live
from kvpool.cli.manifests import dry_run, read_manifests
from kvpool.cli.options import Options, common_flags
from kvpool.cli.session import run
from kvpool.cli.views.difference import ChangedRow, difference
from kvpool.cluster.resources import Obj
from kvpool.cluster.rest import Rest
from kvpool.world.build import read_objects


@click.command()
@click.option(
    "-f", "--filename", "file", required=True, metavar="FILE", help="Manifests; - is standard input."
)
@common_flags
def plan(options: Options, file: str) -> None:
    """Say what applying FILE would do, without doing it: the first actions, and the answer with figures.

    The API server checks the manifests first (dry run); then the operator's planning steps run twice.
    """

    async def work(rest: Rest, login: Login) -> tuple[Live, list[Obj]]:
        manifests = read_manifests(file, options.namespace or login.namespace)
        checked = await dry_run(rest, manifests)
        return await read_live(rest, options.operator_namespace), checked

    live, checked = run(options, work)
    raws = [raw for raw in live.state.raws if _identity(raw) not in {_identity(new) for new in checked}]
    state = replace(live.state, raws=[*raws, *checked])
    before = foresee(live.objects, live.state, live.selectors, live.now)
    after = foresee(read_objects(state.raws, live.now), state, live.selectors, live.now)
    changed = [ChangedRow(_named(new), _change(new, live.state.raws)) for new in checked]
    answer(difference(changed, before, after), options)


def _identity(raw: Obj) -> tuple[str, str, str]:
    meta = raw["metadata"]
    return str(raw.get("kind")), str(meta.get("namespace") or ""), str(meta["name"])


def _named(raw: Obj) -> str:
    kind, namespace, name = _identity(raw)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _change(new: Obj, raws: Sequence[Obj]) -> str:
    old = next((raw for raw in raws if _identity(raw) == _identity(new)), None)
    if old is None:
        return "created"
    return "unchanged" if old.get("spec") == new.get("spec") else "changed"
