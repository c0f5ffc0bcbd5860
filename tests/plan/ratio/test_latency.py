"""Latencies of a split: closed forms of queues, and a decode batch in balance."""

from math import inf

import pytest

from kvpool.plan.ratio.demand import Shape
from kvpool.plan.ratio.latency import Latencies, mean_wait
from kvpool.plan.ratio.split import Split
from tests.plan.ratio.groups import LONG, QWEN3_8B

SHORT = Shape(prompt_tokens=500, output_tokens=20, weight=3)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_one_server_waits_as_m_m_1_and_m_d_1_do(load: float) -> None:
    assert mean_wait(load, 1, variation=1) == pytest.approx(load / (1 - load))
    assert mean_wait(load, 1, variation=0) == pytest.approx(load / (1 - load) / 2)


def test_two_servers_wait_as_m_m_2_does() -> None:
    load = 1.2
    rho = load / 2
    assert mean_wait(load, 2, variation=1) == pytest.approx(rho**2 / (1 - rho**2))


def test_more_than_all_servers_can_do_waits_for_ever() -> None:
    assert mean_wait(2.0, 2, variation=1) == inf


def test_a_decode_batch_finishes_as_many_as_come() -> None:
    found = Latencies(QWEN3_8B, (LONG,), 4_000).of(Split(3, 2))
    rate, context = 2.0, 16_225
    batch = rate * 450 * found.tpot_ns / 1e9
    assert found.tpot_ns == pytest.approx(
        QWEN3_8B.decode.step_ns(round(batch), round(batch * context)), rel=0.02
    )
    assert found.end_to_end_ns == pytest.approx(found.ttft_ns + 450 * found.tpot_ns)


def test_more_prefill_shortens_the_first_token_and_more_decode_every_other() -> None:
    many, few = (Latencies(QWEN3_8B, (LONG,), 3_000).of(split) for split in (Split(4, 1), Split(2, 3)))
    assert many.ttft_ns < few.ttft_ns
    assert many.tpot_ns > few.tpot_ns


def test_what_cannot_be_served_takes_for_ever() -> None:
    assert Latencies(QWEN3_8B, (LONG,), 3_000).of(Split(1, 5)).ttft_ns == inf
    assert Latencies(QWEN3_8B, (LONG,), 8_000).of(Split(5, 1)).tpot_ns == inf


def test_one_split_after_another_is_told_as_each_alone_would_be() -> None:
    together = Latencies(QWEN3_8B, (LONG, SHORT), 3_000)
    tried = [Split(prefill, decode) for prefill in range(1, 6) for decode in range(1, 6)]
    assert [together.of(split) for split in tried] == [
        Latencies(QWEN3_8B, (LONG, SHORT), 3_000).of(split) for split in tried
    ]
