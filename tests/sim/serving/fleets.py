"""Small fleets and workloads that tests of serving share."""

from hypothesis import strategies as st

from kvpool.plan.routing.counting import RoundRobin
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.serving.design import InstanceSpec, MixedDesign, SplitDesign
from kvpool.sim.serving.mixed import MixedFleet
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.workloads.request import Request, Workload

CARD = TimingModel(15e6, 192_000, 0.002, 20e6, 120_000, 800)
LINK = LinkModel(100_000, 8_000_000_000)
SPEC = InstanceSpec(CARD, 54_000, LINK, 64)
BYTES_PER_TOKEN = 500_000
OBJECTIVES = {"interactive": Objective(3_000_000_000, 60_000_000, 100), "batch": Objective(10**10, 10**8, 50)}
BLOCK = 512


def workload(*requests: Request) -> Workload:
    return Workload(tuple(sorted(requests, key=lambda one: one.arrival_ns)), BLOCK, "made by a test", "")


def split(prefill: int = 1, decode: int = 1, spec: InstanceSpec = SPEC) -> SplitDesign:
    return SplitDesign((spec,) * prefill, (spec,) * decode, BYTES_PER_TOKEN, OBJECTIVES)


def split_fleet(design: SplitDesign | None = None) -> SplitFleet:
    return SplitFleet(design or split(), RoundRobin())


REQUESTS = st.builds(
    Request,
    st.integers(0, 20_000_000_000),
    st.integers(1, 9000),
    st.integers(1, 400),
    st.lists(st.integers(0, 30), unique=True, max_size=18).map(tuple),
    st.sampled_from(["interactive", "batch"]),
)
WORKLOADS = st.lists(REQUESTS, min_size=1, max_size=40).map(lambda requests: workload(*requests))


def mixed(instances: int = 1, spec: InstanceSpec = SPEC, chunk_tokens: int = 2048) -> MixedDesign:
    return MixedDesign((spec,) * instances, BYTES_PER_TOKEN, OBJECTIVES, chunk_tokens)


def mixed_fleet(design: MixedDesign | None = None) -> MixedFleet:
    return MixedFleet(design or mixed(), RoundRobin())
