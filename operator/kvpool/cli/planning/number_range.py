"""A range of numbers as a flag's value, which NaN is not in."""

from math import isnan

import click


class NumberRange(click.FloatRange):
    """As click's own, which lets NaN through: it is neither below nor above an end."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; what is none or outside is a fault of usage."""
        number: float = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number
