"""The accelerator: measured where there is one, from its data sheet where one is named, else unknown."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

from kvpool.cli.planning.measuring.repeating import repeat
from kvpool.plan.calibration.constants import Constant, Source
from kvpool.plan.calibration.spread import quantile, spread_of
from kvpool.plan.calibration.transfer_curve import Point, fit_curve
from kvpool.plan.timing.cards import CARDS, Card
from kvpool.plan.timing.model import NS_PER_SECOND

MIB: Final = 1 << 20
SIZES: Final = (64 << 10, MIB, 16 * MIB, 256 * MIB)
WITHIN_BYTES: Final = 1024 * MIB


class NoAcceleratorError(Exception):
    """There is none that can be measured; the text says why in one sentence."""


class Accelerator(Protocol):
    """One accelerator, open. Each copy returns when it is done."""

    @property
    def name(self) -> str:
        """As its driver calls it."""

    @property
    def driver(self) -> str:
        """Version of the driver."""

    def copy_in(self, size_bytes: int) -> None:
        """Copy from pinned host memory."""

    def copy_out(self, size_bytes: int) -> None:
        """Copy to pinned host memory."""

    def copy_within(self, size_bytes: int) -> None:
        """Copy within its own memory: each byte is read once and written once."""


Opener = Callable[[int], AbstractContextManager[Accelerator]]
"""Opens the first accelerator with room for transfers of so many bytes; raises NoAcceleratorError."""


def measure_accelerator(opened: Opener, card_name: str | None, seconds: float) -> Iterator[Constant]:
    """Measure the first accelerator; what cannot be measured comes from the data sheet of its card."""
    card = None if card_name is None else CARDS[card_name]
    try:
        with opened(WITHIN_BYTES) as accelerator:
            found = list(_measured(accelerator, seconds))
            name = accelerator.name
    except NoAcceleratorError as error:
        known = ", ".join(sorted(CARDS))
        yield from _sheet(card, f"{error}; name a card for its data sheet (--card): {known}", measured=False)
        for copy in ("card.copy.in", "card.copy.out"):
            yield Constant(copy, "bytes/s", Source.NOT_MEASURED, reason=str(error))
    else:
        yield from found
        yield from _sheet(card or _card_of(name), f"{name} is no card that is known here", measured=True)


def _card_of(name: str) -> Card | None:
    """The known card that a driver's name speaks of, such as `NVIDIA H200`."""
    words = name.replace("-", " ").upper().split()
    return next((card for card in CARDS.values() if card.name.split("-")[0].upper() in words), None)


def _measured(accelerator: Accelerator, seconds: float) -> Iterator[Constant]:
    described = f"{accelerator.name}, driver {accelerator.driver}"
    spent = repeat(lambda: accelerator.copy_within(WITHIN_BYTES), seconds / 3, least=5)
    rates = spread_of([2 * WITHIN_BYTES * NS_PER_SECOND / one for one in spent])
    yield Constant(
        "card.memory.rate",
        "bytes/s",
        Source.MEASURED,
        rates.median,
        rates.low,
        rates.high,
        rates.samples,
        f"copies of 1 GiB within the memory of {described}; bytes read and bytes written together",
    )
    for name, copy, words in (
        ("card.copy.in", accelerator.copy_in, "from pinned host memory to"),
        ("card.copy.out", accelerator.copy_out, "to pinned host memory from"),
    ):
        points = [_point(copy, size, seconds / 3 / len(SIZES)) for size in SIZES]
        curve = fit_curve(points)
        single = [point.size_bytes * NS_PER_SECOND / point.spent_ns for point in points]
        yield Constant(
            name,
            "bytes/s",
            Source.MEASURED,
            float(curve.line.bytes_per_second),
            min(single),
            max(single),
            sum(point.samples for point in points),
            f"copies of 64 KiB to 256 MiB {words} {described}; value: slope of the fitted line; interval: "
            f"rates of single sizes",
            curve=curve,
        )


def _point(copy: Callable[[int], None], size: int, seconds: float) -> Point:
    spent = sorted(repeat(lambda: copy(size), seconds))
    low, middle, high = (round(quantile(spent, share)) for share in (0.1, 0.5, 0.9))
    return Point(size, middle, low, high, len(spent))


def _sheet(card: Card | None, reason: str, *, measured: bool) -> Iterator[Constant]:
    """What a data sheet says: everything, or only what was not measured."""
    rows = (
        ("card.memory.bytes", "bytes", lambda one: one.hbm_bytes),
        *(() if measured else (("card.memory.rate", "bytes/s", lambda one: one.hbm_bytes_per_second),)),
        ("card.products.16bit", "flop/s", lambda one: one.flops_16bit),
        ("card.products.8bit", "flop/s", lambda one: one.flops_8bit),
        ("card.products.4bit", "flop/s", lambda one: one.flops_4bit),
    )
    for name, unit, value in rows:
        if card is None:
            yield Constant(name, unit, Source.NOT_MEASURED, reason=reason)
        elif stated := value(card):
            yield Constant(
                name,
                unit,
                Source.DATA_SHEET,
                float(stated),
                method=f"data sheet of {card.name}",
                reason="peak, not measured here" if unit != "bytes" else "",
            )
