"""`kubectl kvpool whatif`: what would follow if something were lost, added, or failed more often."""

import click

from kvpool.cli.answer import answer
from kvpool.cli.faults import CliError
from kvpool.cli.foresight import foresee_in, live_snapshot
from kvpool.cli.hypothesis import Hypothesis
from kvpool.cli.kubeconfig import Login
from kvpool.cli.live import Live, read_live
from kvpool.cli.options import Options, common_flags
from kvpool.cli.session import run
from kvpool.cli.views.consequences import Three, consequences
from kvpool.cluster.rest import Rest


@click.command()
@click.option(
    "--lose",
    "lost",
    multiple=True,
    metavar="node/NAME|device/NODE/ID",
    help="A node that goes dark for good, or an accelerator that falls off its bus; may be repeated.",
)
@click.option(
    "--add",
    "added",
    multiple=True,
    metavar="tier=TIER:SIZE",
    help="More of a tier, shared by the nodes that a budget names for it; may be repeated.",
)
@click.option(
    "--fail-rate",
    metavar="PERCENT",
    help="Share of the time that an accelerator is down, such as 0.1%: are the spares enough?",
)
@common_flags
def whatif(options: Options, lost: tuple[str, ...], added: tuple[str, ...], fail_rate: str | None) -> None:
    """Say what would follow, without doing it: memory, moves, spares.

    The operator's own planning steps run on the cluster as it is, and as it would be.
    """
    if not lost and not added and fail_rate is None:
        raise CliError("say what: --lose node/NAME, --add tier=CXL:8Ti or --fail-rate 0.1%")
    hypothesis = Hypothesis.of(lost, added, fail_rate)

    async def work(rest: Rest, login: Login) -> Live:
        del login
        return await read_live(rest, options.operator_namespace)

    live = run(options, work)
    before = live_snapshot(live.objects, live.state, live.selectors, live.now)
    hypothesis.check(before)
    three = Three(
        foresee_in(before, live.now),
        foresee_in(hypothesis.struck(before, live.now), live.now),
        foresee_in(hypothesis.settled(before, live.now), live.now),
    )
    answer(consequences(hypothesis, three, live.now), options)
