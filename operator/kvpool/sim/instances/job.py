"""One request on its way through the instances: what is known of it, and what has happened to it."""

from kvpool.plan.routing.pending import Pending
from kvpool.plan.routing.views import Objective
from kvpool.sim.prefixes.resident import ResidentPrefixes
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
        "brought_tokens",
        "context_tokens",
        "decode_place",
        "deepest",
        "end_ns",
        "expected_end",
        "expected_tokens",
        "first_ns",
        "fresh_tokens",
        "hit_tokens",
        "is_computed",
        "is_landed",
        "left_tokens",
        "loaded",
        "loads_left",
        "lost_tokens",
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
        self.brought_tokens = 0
        """Of the prompt's start, what is in the device once its loads have ended."""
        self.fresh_tokens = 0
        """Of its context, what had to be computed when it was sent."""
        self.loads_left = 0
        """Ways up that still carry something of it; it waits for them."""
        self.deepest = Tier.NEW
        self.recomputed_tokens = 0
        self.lost_tokens = 0
        """Of the prompt's KV that it had when its instance died."""
        self.preempted = 0
        self.must_recompute = False
        """Its KV was taken from it and is to be computed again where it decodes."""
        self.is_computed = False
        """Its prompt's KV is somewhere."""
        self.is_landed = False
        """That is where it decodes."""
        self.prefill_place = -1
        self.decode_place = -1
        self.first_ns = -1
        self.end_ns = -1

    @property
    def need_tokens(self) -> int:
        """KV to reserve: the prompt and the bound of the output."""
        return self.prompt_tokens + self.bound_tokens

    def usable_match(self, memory: ResidentPrefixes) -> int:
        """Tokens of its context whose KV is in a memory; the last token is always computed."""
        size = memory.block_tokens
        return memory.match(self.blocks[: (self.context_tokens - 1) // size]) * size

    def enter(self, pending: Pending) -> None:
        """Let an instance's record of pending sequences know it."""
        objective = self.objective
        self.expected_end = pending.enter(
            self.expected_tokens, self.need_tokens, objective.weight, objective.tpot_ns
        )

    def leave(self, pending: Pending) -> None:
        """Take it out of the record that it was entered in."""
        objective = self.objective
        pending.leave(self.expected_end, self.need_tokens, objective.weight, objective.tpot_ns)

    def compute_again(self, hit_tokens: int) -> None:
        """Count what it lost with an instance and is computed once more: all but what is found elsewhere."""
        self.recomputed_tokens += max(0, self.lost_tokens - hit_tokens)
        self.lost_tokens = 0

    def restart(self) -> None:
        """Its instance died with all that it had: it begins again, and the user waits from the start."""
        if self.is_computed:  # else what an earlier death took is yet to be computed again
            self.lost_tokens = self.prompt_tokens
        self.context_tokens = self.prompt_tokens
        self.left_tokens = self.request.output_tokens
        self.must_recompute = self.is_computed = self.is_landed = False
        self.brought_tokens = 0
        self.first_ns = -1
