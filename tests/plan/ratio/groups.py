"""Groups whose figures are known."""

from kvpool.plan.ratio.demand import Promise, Shape
from kvpool.plan.ratio.rates import Roles
from kvpool.plan.timing.model import LinkModel, TimingModel

MS = 1_000_000
SECOND = 1_000 * MS


def milliseconds(*values: float) -> TimingModel:
    """Prefill a, b, c and step a, b, k in milliseconds."""
    return TimingModel(*(value * MS for value in values))


FAST_LINK = LinkModel(1 * MS, 50 * 10**9)
H200 = milliseconds(2.21, 0.01949, 5.00e-7, 5.31, 0.0079, 3.27e-5)
"""H200, Qwen3-8B."""
QWEN3_8B = Roles(H200, H200, FAST_LINK, kv_bytes_per_token=147_456, decode_capacity_tokens=800_000)
LONG = Shape(prompt_tokens=16_000, output_tokens=450)
PROMISE = Promise(ttft_ns=3 * SECOND, tpot_ns=30 * MS)

A100 = milliseconds(18.10, 0.1019, 7.12e-6, 19.93, 0.0385, 6.27e-4)
"""A100, OPT-13B, batches below 95: DistServe's simulator."""
OPT_13B = Roles(A100, A100, FAST_LINK, kv_bytes_per_token=819_200, decode_capacity_tokens=56_000)

QWEN3_32B = Roles(
    prefill=milliseconds(0, 2 * 0.0519, 2 * 7.69e-7, 2 * 10.8, 2 * 0.0206, 2 * 2.93e-5),
    decode=milliseconds(0, 0.0519, 7.69e-7, 10.8, 0.0206, 2.93e-5),
    link=FAST_LINK,
    kv_bytes_per_token=262_144,
    decode_capacity_tokens=724_000,
    prefill_cards=1,
    decode_cards=2,
)
"""H200: prefill on one card (twice the time of two), decode on two."""
