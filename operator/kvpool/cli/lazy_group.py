"""A group of verbs that are imported when they are asked for, so that its help waits for none of them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from kvpool.plan.nearest_name import nearest_name


class Verb(NamedTuple):
    """Where a verb is, and what the help of its group says of it."""

    module: str
    attribute: str
    help: str
    """One sentence; it is shown whole."""


class LazyGroup(click.Group):
    """A group that knows its verbs by name, place and one sentence."""

    def __init__(self, *, verbs: Mapping[str, Verb], **settings: Any) -> None:  # noqa: ANN401  # click's own
        super().__init__(**settings)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all verbs, in the order of the alphabet."""
        return sorted(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; None when there is none of that name."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = getattr(import_module(verb.module), verb.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; click, which knows no names here, could not say which one was meant."""
        near = nearest_name(args[0], self.verbs) if args[0] not in self.verbs else ""
        if near and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near!r}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each verb does, in as many lines as that takes."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.verbs[name].help) for name in self.list_commands(ctx)])
