"""`kubectl kvpool drain` and `undrain`: empty a node or a device, and give it back."""

import click

from kvpool.api.common import Mode
from kvpool.cli.draining import Change, Written, change_maintenance
from kvpool.cli.faults import CliError
from kvpool.cli.maintenance import drained, undrained
from kvpool.cli.options import Options, common_flags, reason_flag
from kvpool.cli.session import run

_PLACE = click.argument("place", metavar="NODE|NODE/DEVICE")


@click.command()
@_PLACE
@reason_flag
@common_flags
def drain(options: Options, place: str, reason: str) -> None:
    """Put a node or one device on its Supernode's maintenance list: slots move off, nothing moves on."""
    node, device = _read(place)
    written = _change(options, place, lambda entries: drained(entries, node, device, reason))
    if not written.changed:
        click.echo(f"{place} is on the maintenance list of Supernode {written.supernode} already")
        return
    click.echo(f"{place} is now on the maintenance list of Supernode {written.supernode}")
    if written.mode is not Mode.ENFORCE:
        click.echo(f"note: the Supernode is in mode {written.mode}: slots move off only in mode Enforce")


@click.command()
@_PLACE
@common_flags
def undrain(options: Options, place: str) -> None:
    """Take a node or one device off its Supernode's maintenance list."""
    node, device = _read(place)
    written = _change(options, place, lambda entries: undrained(entries, node, device))
    state = "is no longer" if written.changed else "was not"
    click.echo(f"{place} {state} on the maintenance list of Supernode {written.supernode}")


def _read(place: str) -> tuple[str, str]:
    node, slash, device = place.partition("/")
    if not node or (slash and not device):
        raise CliError(f"{place!r} is neither NODE nor NODE/DEVICE: write node-7 or node-7/3")
    return node, device


def _change(options: Options, place: str, change: Change) -> Written:
    node, device = _read(place)
    return run(options, lambda rest, _: change_maintenance(rest, node, device, change))
