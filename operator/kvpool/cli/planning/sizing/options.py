"""The options file of `kvpool size`: one model and its sessions, and hardware options side by side."""

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from kvpool.api.duration import SecondCount
from kvpool.api.quantity import ByteCount
from kvpool.api.schema import Model
from kvpool.api.token_count import TokenCount
from kvpool.plan.known_name import one_of
from kvpool.plan.tiers.stack import MOST_SHARES
from kvpool.plan.timing.cards import CARDS, LINKS
from kvpool.plan.timing.kv_memory import ACTIVATION_BYTES, MEMORY_USE
from kvpool.plan.timing.quantisation import QUANTISATIONS
from kvpool.plan.timing.shapes import SHAPES

MOST_OPTIONS: Final = 64
MOST_TOKENS: Final = 10**9
MOST_PARAMETERS: Final = 10**15

Bytes = ByteCount
PositiveBytes = Annotated[ByteCount, Field(gt=0)]
Seconds = Annotated[SecondCount, Field(ge=1e-6, le=1e10)]
Share = Annotated[float, Field(gt=0, le=1)]
Price = Annotated[float, Field(ge=0, le=1e15)]
Watts = Annotated[float, Field(ge=0, le=1e12)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Text = Annotated[str, Field(min_length=1, max_length=60)]


class ModelSource(Model):
    """Which model: a well-known one, the `config.json` of its weights, or the bytes of a token alone."""

    preset: Annotated[str, one_of("model", SHAPES)] | None = None
    """Name of a well-known model."""
    config: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None
    """Path of the model's `config.json`, from the folder of this file."""
    kv_bytes_per_token: PositiveBytes | None = None
    """Bytes of KV for each token, when nothing else is known: times are then those of the links alone."""
    parameters: Annotated[int, Field(ge=1, le=MOST_PARAMETERS)] | None = None
    """Parameters of the model, when the count that `config` adds up to is not right."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [
            name for name in ("preset", "config", "kv_bytes_per_token") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError(f"give exactly one of preset, config and kvBytesPerToken, not {len(given)}")
        if self.parameters is not None and self.config is None:
            raise ValueError("parameters go with config only")
        return self


class Serving(Model):
    """The accelerators of one instance, and how the model is divided over them."""

    accelerator: Annotated[str, one_of("accelerator", CARDS)]
    """Name of a known accelerator."""
    cards: Count = 1
    """Accelerators that one instance has: tensor-parallel times KV-parallel ranks."""
    kv_parallel: Count = 1
    """Groups of ranks that split the tokens of a context."""
    quantisation: Annotated[str, one_of("quantisation", QUANTISATIONS)] = "W16A16"
    """Bits of weights and activations."""
    kv_bits: Annotated[int, Field(ge=4, le=32)] = 16
    """Bits of one element of KV."""
    memory_use: Share = MEMORY_USE
    """Share of the accelerators' memory that the engine takes for weights, activations and KV."""
    activations: Bytes = ACTIVATION_BYTES
    """Memory of each card for activations and graphs."""
    price: Price = 0.0
    """Of one card."""
    watts: Watts | None = None
    """Of one card; by default its thermal design power."""

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if self.cards % self.kv_parallel:
            raise ValueError(f"{self.cards} cards do not divide into {self.kv_parallel} groups (kvParallel)")
        return self


class Sessions(Model):
    """What people do with the model."""

    context: Annotated[TokenCount, Field(ge=1, le=MOST_TOKENS)]
    """Tokens of a parked session; a high quantile, not the mean."""
    new_tokens: Annotated[TokenCount, Field(ge=1, le=MOST_TOKENS)] = 500
    """Prompt tokens of the next turn."""
    answer_tokens: Annotated[TokenCount, Field(ge=0, le=MOST_TOKENS)] = 0
    """Tokens of an answer, which are parked as well."""
    returns: Seconds
    """Time from one turn of a session to the next."""
    ttft: Seconds | None = None
    """Time to first token that is promised."""
    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """Share of the turns that the promise is for."""
    return_shares: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = None
    """Share of the turns that find their session in a tier, by tier; by default all sessions return
    equally often."""

    @model_validator(mode="after")
    def _shares_are_of_all(self) -> Self:
        total = 1.0 if self.return_shares is None else sum(self.return_shares.values())
        if not 0 < total <= MOST_SHARES:
            raise ValueError(f"returnShares add up to {total:.4g}: give shares that add up to 1, or less")
        return self


class SizedLink(Model):
    """A link, or several side by side."""

    name: Text
    measured: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Name of a rate in the file `calibration`, such as `card.copy.in`."""
    preset: Annotated[str, one_of("link", LINKS)] | None = None
    """Name of a known kind of link."""
    rate: PositiveBytes | None = None
    """Bytes a second of one."""
    setup_microseconds: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Before the first byte moves."""
    count: Count = 1
    """Links side by side, over which a session is spread."""

    @model_validator(mode="after")
    def _has_a_rate(self) -> Self:
        given = sum(value is not None for value in (self.measured, self.preset, self.rate))
        if given != 1:
            raise ValueError(f"give exactly one of measured, preset and rate, not {given}")
        return self


class SizedTier(Model):
    """Modules of one kind of memory below the accelerator's own."""

    name: Text
    modules: Count
    size: PositiveBytes
    """Of one module."""
    reserve: Bytes = 0
    """Of all modules together, for the operating system and others."""
    path: Annotated[tuple[Text, ...], Field(min_length=1, max_length=8)]
    """Links that its bytes cross on their way to the accelerator, the farthest first."""
    price: Price = 0.0
    """Of one module."""
    watts: Watts = 0.0
    """Of one module."""
    drive_writes_per_day: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """How often a day all of it may be written (DWPD); none: as often as one likes."""
    borrowed: bool = False
    """Lent by others, who may ask for it back."""
    out_of_rack: bool = False
    """Reached over links that leave the rack."""

    @model_validator(mode="after")
    def _leaves_something(self) -> Self:
        if self.reserve > self.modules * self.size:
            raise ValueError(f"reserve {self.reserve} is more than all {self.modules} modules have together")
        return self


class HardwareOption(Model):
    """One way to buy memory."""

    name: Text
    exclusive: bool = True
    """A session is in one tier only; else lower tiers keep a copy of what is above them."""
    links: Annotated[tuple[SizedLink, ...], Field(max_length=16)] = ()
    tiers: Annotated[tuple[SizedTier, ...], Field(max_length=16)] = ()
    other_price: Price = 0.0
    """Of chassis, switches and whatever else the option needs."""
    other_watts: Watts = 0.0
    power_cap: Watts | None = None
    """The most that all of it may draw."""
    in_rack_rate: PositiveBytes | None = None
    """Bytes a second that links inside the rack carry; needed when a tier is out of the rack."""

    @model_validator(mode="after")
    def _knows_its_rack(self) -> Self:
        if self.in_rack_rate is None and any(tier.out_of_rack for tier in self.tiers):
            raise ValueError("a tier is outOfRack: give inRackRate, what the links inside carry a second")
        return self


class Swapping(Model):
    """What happens when a spare takes a card's place."""

    detect: Seconds
    """From the fault until it is known."""
    reconfigure: Seconds
    """Of the switch that leads to the spare."""
    weights_over: Annotated[str, one_of("link", LINKS)]
    """Kind of link that the weights of a card come over."""
    unique_kv: Bytes = 0
    """KV of one card that nobody else has; it is fetched or computed again."""
    kv_over: Annotated[str, one_of("link", LINKS)]
    """Kind of link that this KV comes over."""


class SpareDomain(Model):
    """A domain that works only when all its cards do, and spares behind a switch."""

    cards: Count
    down_share: Annotated[float, Field(ge=0, le=1)]
    """Share of the time that one card is down."""
    most_spares: Annotated[int, Field(ge=0, le=64)] = 3
    """How many spares are tried: none, 1, 2, up to this many."""
    wanted: Annotated[float, Field(gt=0, lt=1)] = 0.999
    """Share of the time that the domain is to be whole."""
    swap: Swapping | None = None


class SizingFile(Model):
    """All that `kvpool size` is asked."""

    model: ModelSource
    serving: Serving
    sessions: Sessions
    utilisation: Share = 0.8
    """Share of a link's rate that returning sessions may use."""
    currency: Annotated[str, Field(max_length=8)] = ""
    calibration: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None
    """File that `kvpool calibrate` wrote, from the folder of this file."""
    domain: SpareDomain | None = None
    """Cards that fail together, and spares for them."""
    options: Annotated[tuple[HardwareOption, ...], Field(min_length=1, max_length=MOST_OPTIONS)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [option.name for option in self.options]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"option {twice[0]!r} is given twice: give each option a name of its own")
        return self
