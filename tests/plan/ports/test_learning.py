"""Learning ports: what transfers between pairs, what must be probed, and when it is forgotten."""

from collections.abc import Callable, Iterator

import pytest

from kvpool.plan.ports.hashes import FlowTuple, HashName, SwitchHash
from kvpool.plan.ports.known import PortTable, ports_by_hash
from kvpool.plan.ports.learning import (
    NotLinearError,
    cover_by_probing,
    expected_probes,
    learn_matrix,
    random_ports,
)
from kvpool.plan.ports.redraw import may_move, redrawn, should_redraw
from kvpool.plan.ports.source_port import FIRST_PORT, LAST_PORT, PORT_COUNT
from kvpool.sim.streams import Stream

HASHES = list(HashName)


def flows(count: int, seed: int) -> Iterator[FlowTuple]:
    draw = Stream(seed)
    for _ in range(count):
        yield FlowTuple(
            draw.below(2**32).to_bytes(4, "big"),
            draw.below(2**32).to_bytes(4, "big"),
            FIRST_PORT + draw.below(PORT_COUNT),
        )


def agreement(switch: SwitchHash, seed: int) -> float:
    """Share of 200 other flows whose port change does what it does to the first flow."""
    first, *others = flows(201, seed)
    draw = Stream(seed).split("ports")
    agreed = 0
    for flow in others:
        bits = 1 + draw.below(PORT_COUNT - 1)
        moved = [
            switch.bucket(one) ^ switch.bucket(one.with_port(one.source_port ^ bits)) for one in (first, flow)
        ]
        agreed += moved[0] == moved[1]
    return agreed / len(others)


@pytest.mark.parametrize("spines", [4, 8, 16])
@pytest.mark.parametrize("name", HASHES)
def test_one_matrix_holds_for_two_hundred_random_flows_on_a_power_of_two(name: HashName, spines: int) -> None:
    switch = SwitchHash(name, spines, seed=5, shift=2)
    first, *others = flows(201, 11)
    matrix, _ = learn_matrix(lambda port: switch.bucket(first.with_port(port)), spines)
    for flow in others:
        offset = switch.bucket(flow.with_port(FIRST_PORT))
        assert switch.bucket(flow) == offset ^ matrix.delta(flow.source_port)
        for spine, port in matrix.ports(offset).items():
            assert switch.bucket(flow.with_port(port)) == spine


@pytest.mark.parametrize("name", HASHES)
def test_on_twelve_spines_the_matrix_transfers_to_few(name: HashName) -> None:
    shares = [agreement(SwitchHash(name, 12, seed=5), seed) for seed in range(8)]
    assert 0.15 < sum(shares) / len(shares) < 0.45
    assert agreement(SwitchHash(name, 8, seed=5), 1) == 1.0


def test_a_new_pair_costs_one_probe() -> None:
    switch = SwitchHash(HashName.CRC32, 8, seed=3)
    first, second = flows(2, 4)
    probed: list[int] = []

    def probe(port: int) -> int:
        probed.append(port)
        return switch.bucket(first.with_port(port))

    matrix, _ = learn_matrix(probe, 8)
    assert len(probed) == 1 + 14 + 4
    table = PortTable()
    table.learn_fabric(matrix)
    table.learn_offset("b", switch.bucket(second.with_port(FIRST_PORT)), now_ns=0)
    assert {switch.bucket(second.with_port(port)) for port in table.ports("b", 0).values()} == set(range(8))


def test_flows_of_one_pair_need_no_offset_to_take_distinct_spines() -> None:
    switch = SwitchHash(HashName.TOEPLITZ, 16)
    first, other = flows(2, 9)
    matrix, _ = learn_matrix(lambda port: switch.bucket(first.with_port(port)), 16)
    assert {switch.bucket(other.with_port(port)) for port in matrix.deltas().values()} == set(range(16))


def test_a_fabric_whose_hash_is_not_linear_is_found_out() -> None:
    draw = Stream(1)
    paths = [draw.below(8) for _ in range(PORT_COUNT)]
    with pytest.raises(NotLinearError, match="probe each pair"):
        learn_matrix(lambda port: paths[port - FIRST_PORT], 8)


def test_a_matrix_for_twelve_spines_is_refused() -> None:
    for spines in (0, 12):
        with pytest.raises(ValueError, match=f"{spines} spines"):
            learn_matrix(lambda _: 0, spines)


def test_a_fabric_of_one_spine_has_a_matrix_too() -> None:
    matrix, offset = learn_matrix(lambda _: 0, 1)
    assert (matrix.ports(0), offset) == ({0: FIRST_PORT}, 0)


def test_a_matrix_says_what_each_bit_does_beside_the_offset_of_its_pair() -> None:
    matrix, offset = learn_matrix(lambda port: (port & 7) ^ 5, 8)
    assert (matrix.columns, offset) == ((1, 2, 4, *(0,) * 11), 5)
    # The lowest port for each spine, in order of spines.
    assert list(matrix.deltas().items()) == [(spine, FIRST_PORT + spine) for spine in range(8)]
    assert list(matrix.ports(5).items()) == [(spine, FIRST_PORT + (spine ^ 5)) for spine in range(8)]


def test_a_spine_that_only_the_last_port_reaches_is_found() -> None:
    class LastOnly(SwitchHash):
        def bucket(self, flow: FlowTuple) -> int:
            return int(flow.source_port == LAST_PORT)

    (flow,) = flows(1, 5)
    assert ports_by_hash(LastOnly(HashName.CRC32, 2), flow) == {0: FIRST_PORT, 1: LAST_PORT}


@pytest.mark.parametrize(
    ("spines", "mean", "largest"), [(4, 8, 30), (8, 22, 63), (12, 37, 110), (16, 54, 143)]
)
def test_trying_random_ports_costs_what_the_coupon_collector_says(
    spines: int, mean: int, largest: int
) -> None:
    assert expected_probes(spines) == pytest.approx(mean, abs=0.6)
    switch = SwitchHash(HashName.CRC32, spines, seed=8)
    spent = []
    for number, flow in enumerate(flows(200, 21)):
        draw = Stream(2).split(spines, number)
        found = cover_by_probing(
            lambda port, flow=flow: switch.bucket(flow.with_port(port)),  # type: ignore[misc]  # a default binds it
            spines,
            random_ports(draw.below),
            budget=10_000,
        )
        assert found.complete
        spent.append(found.probes)
    assert sum(spent) / len(spent) == pytest.approx(expected_probes(spines), rel=0.12)
    assert max(spent) < 2 * largest


def test_a_budget_ends_the_search_with_what_was_found() -> None:
    found = cover_by_probing(lambda port: port % 3, 8, range(FIRST_PORT, LAST_PORT), budget=20)
    assert not found.complete
    assert found.probes == 20
    assert list(found.ports) == [0, 1, 2]


def test_probes_are_counted_as_they_are_sent_and_spines_come_in_order() -> None:
    sent: list[int] = []

    def probe(port: int) -> int:
        sent.append(port)
        return port % 3

    found = cover_by_probing(probe, 3, range(FIRST_PORT + 2, FIRST_PORT - 1, -1))
    assert (found.probes, sent) == (3, [FIRST_PORT + 2, FIRST_PORT + 1, FIRST_PORT])
    assert list(found.ports.items()) == [(spine, FIRST_PORT + spine) for spine in range(3)]


def test_random_ports_are_those_of_the_range() -> None:
    ports = random_ports(lambda bound: bound - 1)
    assert next(iter(ports)) == LAST_PORT
    assert next(iter(random_ports(lambda _: 7))) == FIRST_PORT + 7


def test_the_usual_budget_is_three_times_the_mean() -> None:
    found = cover_by_probing(lambda _: 0, 8, range(FIRST_PORT, LAST_PORT))
    assert found.probes == round(3 * expected_probes(8))


def test_a_known_hash_needs_no_probe_and_any_number_of_spines() -> None:
    switch = SwitchHash(HashName.CRC16_CCITT, 12, seed=4, shift=1)
    (flow,) = flows(1, 5)
    ports = ports_by_hash(switch, flow)
    assert list(ports) == list(range(12))
    assert all(switch.bucket(flow.with_port(port)) == spine for spine, port in ports.items())


def test_ports_are_forgotten_after_their_time_and_with_any_change_of_the_topology() -> None:
    table = PortTable(ttl_ns=100)
    table.learn_ports("a", {0: FIRST_PORT}, now_ns=0)
    assert table.ports("a", 99) == {0: FIRST_PORT}
    assert table.ports("a", 100) == {}
    assert table.ports("a", 0) == {}
    table.learn_ports("a", {0: FIRST_PORT}, now_ns=0)
    matrix, _ = learn_matrix(lambda port: port & 1, 2)
    table.learn_fabric(matrix)
    table.topology_changed()
    assert table.ports("a", 1) == {}
    assert table.matrix is None
    with pytest.raises(LookupError, match="learn"):
        table.learn_offset("a", 1, now_ns=0)


def test_a_transfer_is_slow_below_three_fifths_of_what_was_expected() -> None:
    assert should_redraw(599_999, 1_000_000)
    assert not should_redraw(600_000, 1_000_000)


@pytest.mark.parametrize("port", [FIRST_PORT, FIRST_PORT + 5, LAST_PORT])
def test_another_port_is_any_of_the_others_once(port: int) -> None:
    def drawing(drawn: int) -> Callable[[int], int]:
        def below(bound: int) -> int:
            assert bound == PORT_COUNT - 1
            return drawn

        return below

    found = [redrawn(port, drawing(drawn)) for drawn in range(PORT_COUNT - 1)]
    assert found == [other for other in range(FIRST_PORT, LAST_PORT + 1) if other != port]


def test_a_slow_transfer_gets_another_port_and_only_when_idle() -> None:
    assert should_redraw(29, 50)
    assert not should_redraw(30, 50)
    assert may_move(0)
    assert not may_move(1)
    draw = Stream(3)
    for port in (FIRST_PORT, 50_000, LAST_PORT):
        drawn = [redrawn(port, draw.below) for _ in range(200)]
        assert port not in drawn
        assert all(FIRST_PORT <= one <= LAST_PORT for one in drawn)
