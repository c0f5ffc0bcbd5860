"""One request on its way through the instances: what is known of it, and what has happened to it."""

from kvpool.plan.routing.views import Objective
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.workloads.request import Request


class Job:
    """A request that was let in; instances and fleets change it as it goes.

    `context_tokens` is the KV that it has, `left_tokens` the output that it has still to make.
    """

    __slots__ = (
        "arrival_ns",
        "blocks",
        "bound_tokens",
        "context_tokens",
        "decode_place",
        "deepest",
        "end_ns",
        "expected_end",
        "expected_tokens",
        "first_ns",
        "hit_tokens",
        "left_tokens",
        "loaded",
        "must_recompute",
        "number",
        "objective",
        "preempted",
        "prefill_place",
        "private_tokens",
        "prompt_tokens",
        "recomputed_tokens",
        "request",
        "reserved_tokens",
    )

    def __init__(
        self, number: int, request: Request, arrival_ns: int, objective: Objective, block_tokens: int
    ) -> None:
        self.number = number
        self.request = request
        self.arrival_ns = arrival_ns
        self.objective = objective
        self.prompt_tokens = request.prompt_tokens
        # Only whole blocks can be shared; the rest of the prompt is private.
        self.blocks = request.blocks[: request.prompt_tokens // block_tokens]
        self.private_tokens = request.prompt_tokens - len(self.blocks) * block_tokens
        self.context_tokens = request.prompt_tokens
        self.left_tokens = request.output_tokens
        self.expected_tokens = request.output_tokens
        self.bound_tokens = request.output_tokens
        self.reserved_tokens = 0
        self.expected_end = 0
        """What the instance's record of pending sequences knows it by."""
        self.hit_tokens = 0
        """Of the prompt, not computed."""
        self.loaded: dict[Tier, int] = {}
        """Of those, brought up from lower tiers."""
        self.deepest = Tier.NEW
        self.recomputed_tokens = 0
        self.preempted = 0
        self.must_recompute = False
        """Its KV was taken from it and is to be computed again where it decodes."""
        self.prefill_place = -1
        self.decode_place = -1
        self.first_ns = -1
        self.end_ns = -1

    @property
    def need_tokens(self) -> int:
        """KV to reserve: the prompt and the bound of the output."""
        return self.prompt_tokens + self.bound_tokens
