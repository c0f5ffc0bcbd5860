"""`kubectl kvpool explain`: the reasons behind a decision, and behind holding still."""

import click

from kvpool.cli.answer import answer
from kvpool.cli.faults import CliError
from kvpool.cli.foresight import foresee
from kvpool.cli.kubeconfig import Login
from kvpool.cli.live import Live, read_live
from kvpool.cli.options import Options, common_flags
from kvpool.cli.references import Reference, read_reference
from kvpool.cli.session import run
from kvpool.cli.views.explanation import explanation
from kvpool.cli.views.own import OwnObject, OwnObjects, own_objects
from kvpool.cluster.rest import Rest
from kvpool.plan.sizes import listed


@click.command()
@click.argument("target", metavar="KIND/NAME")
@common_flags
def explain(options: Options, target: str) -> None:
    """Say why pool/NAME, slot/NAME, node/NAME, ... is as it is, and what would be done next.

    The operator's own planning steps run on what the objects say; agents' streams are the operator's alone.
    """

    async def work(rest: Rest, login: Login) -> tuple[Reference, Live]:
        reference = read_reference(target, options.namespace or login.namespace)
        return reference, await read_live(rest, options.operator_namespace)

    reference, live = run(options, work)
    item = _find(own_objects(live.objects, None), reference, live)
    foresight = foresee(live.objects, live.state, live.selectors, live.now)
    answer(explanation(item, foresight, live.now), options)


def _find(own: OwnObjects, reference: Reference, live: Live) -> OwnObject:
    alike = [item for item in own.all if item.kind == reference.kind and item.metadata.name == reference.name]
    for item in alike:
        if item.metadata.namespace == reference.namespace:
            return item
    for malformed in live.objects.malformed:
        if malformed.kind == reference.kind and malformed.name.rpartition("/")[2] == reference.name:
            raise CliError(str(malformed))
    if alike:
        where = listed(item.metadata.namespace for item in alike)
        raise CliError(f"{reference} does not exist; one of that name is in namespace {where}: give -n")
    raise CliError(f"{reference} does not exist")
