"""The hash models: published values, linearity, and what seeds do and do not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.ports.hashes import TOEPLITZ_KEY, FlowTuple, HashName, SwitchHash, toeplitz, xor_fold
from kvpool.plan.ports.source_port import (
    FIRST_PORT,
    LAST_PORT,
    PORT_COUNT,
    flow_label_of_queue_pairs,
    port_of_flow_label,
    port_of_queue_pairs,
)
from kvpool.sim.streams import Stream

ADDRESSES = st.binary(min_size=4, max_size=4)
PORTS = st.integers(FIRST_PORT, LAST_PORT)


def v4(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


@pytest.mark.parametrize(
    ("source", "source_port", "destination", "destination_port", "expected"),
    [
        ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x51CCC178),
        ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xC626B0EA),
        ("24.19.198.95", 12898, "12.22.207.184", 38024, 0x5C2B394A),
        ("38.27.205.30", 48228, "209.142.163.6", 2217, 0xAFC7327F),
        ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x10E828A2),
    ],
)
def test_toeplitz_gives_the_published_verification_values(
    source: str, source_port: int, destination: str, destination_port: int, expected: int
) -> None:
    flow = FlowTuple(v4(source), v4(destination), source_port, destination_port)
    assert toeplitz(flow.packed(), TOEPLITZ_KEY) == expected
    assert SwitchHash(HashName.TOEPLITZ, 8).hash_of(flow) == expected


def crc_bit_by_bit(data: bytes, polynomial: int, start: int) -> int:
    """A 16-bit CRC as its definition says, highest bit first."""
    mixed = start
    for value in data:
        mixed ^= value << 8
        for _ in range(8):
            mixed = (mixed << 1 ^ (polynomial if mixed & 0x8000 else 0)) & 0xFFFF
    return mixed


def crc32_bit_by_bit(data: bytes) -> int:
    """Ethernet's CRC, lowest bit first."""
    mixed = 0xFFFFFFFF
    for value in data:
        mixed ^= value
        for _ in range(8):
            mixed = mixed >> 1 ^ (0xEDB88320 if mixed & 1 else 0)
    return mixed ^ 0xFFFFFFFF


def test_the_crcs_are_those_of_their_polynomials_over_protocol_addresses_and_ports() -> None:
    flow = FlowTuple(v4("10.0.0.1"), v4("10.0.3.7"), 50_000)
    packed = b"\0\x11" + flow.packed()
    assert SwitchHash(HashName.CRC32, 8).hash_of(flow) == crc32_bit_by_bit(packed)
    assert SwitchHash(HashName.CRC16_CCITT, 8, seed=0x1D0F).hash_of(flow) == crc_bit_by_bit(
        packed, 0x1021, 0x1D0F
    )


def test_the_fold_is_the_xor_of_all_words() -> None:
    assert (
        xor_fold(bytes.fromhex("0011 1234 0a0b 0001".replace(" ", ""))) == 0x0011 ^ 0x1234 ^ 0x0A0B ^ 0x0001
    )


@given(st.binary(min_size=2, max_size=40).filter(lambda packed: len(packed) % 2 == 0))
def test_folding_by_halves_is_the_xor_of_all_words(packed: bytes) -> None:
    mixed = 0
    for place in range(0, len(packed), 2):
        mixed ^= int.from_bytes(packed[place : place + 2], "big")
    assert xor_fold(packed) == mixed


@pytest.mark.parametrize(("name", "bits"), [(HashName.TOEPLITZ, 32), (HashName.XOR_FOLD, 16)])
def test_a_seed_is_mixed_into_the_hash_as_far_as_it_is_wide(name: HashName, bits: int) -> None:
    flow = FlowTuple(v4("10.0.0.1"), v4("10.0.0.2"), FIRST_PORT)
    plain = SwitchHash(name, 8).hash_of(flow)
    widest = (1 << bits) - 1
    assert SwitchHash(name, 8, seed=5).hash_of(flow) == plain ^ 5
    assert SwitchHash(name, 8, seed=widest).hash_of(flow) == plain ^ widest
    assert SwitchHash(name, 8, seed=(1 << bits) + 5).hash_of(flow) == plain ^ 5


def test_a_start_value_is_taken_as_far_as_the_check_is_wide() -> None:
    flow = FlowTuple(v4("10.0.0.1"), v4("10.0.0.2"), FIRST_PORT)

    def hashed(seed: int) -> int:
        return SwitchHash(HashName.CRC32, 8, seed=seed).hash_of(flow)

    assert hashed(2**32 + 5) == hashed(5) != hashed(4)
    assert hashed(2**31) != hashed(0)


def test_long_addresses_and_the_ports_at_either_end_are_taken() -> None:
    flow = FlowTuple(bytes(16), bytes(16), 0, 0xFFFF)
    assert flow.packed() == bytes(32) + bytes((0, 0, 0xFF, 0xFF))
    assert SwitchHash(HashName.CRC32, 1).bucket(flow) == 0


def test_what_switches_hash_by_default_is_rdma_over_udp() -> None:
    assert FlowTuple(bytes(4), bytes(4), FIRST_PORT).destination_port == 4791
    assert FlowTuple(bytes(4), bytes(4), FIRST_PORT).protocol == 17


@given(st.sampled_from(HashName), ADDRESSES, ADDRESSES, ADDRESSES, PORTS, PORTS, st.integers(0, 2**32 - 1))
def test_what_a_port_change_does_does_not_depend_on_the_rest(
    name: HashName, source: bytes, destination: bytes, other: bytes, first: int, second: int, seed: int
) -> None:
    switch = SwitchHash(name, 8, seed)
    here, there = FlowTuple(source, destination, first), FlowTuple(other, source, first)
    assert switch.hash_of(here) ^ switch.hash_of(here.with_port(second)) == switch.hash_of(
        there
    ) ^ switch.hash_of(there.with_port(second))


def second_tier(first: SwitchHash, second: SwitchHash) -> set[int]:
    """Paths that a second tier of switches uses for the flows that one bucket of the first sends it."""
    draw = Stream(7)
    used = set()
    for _ in range(1_500):
        flow = FlowTuple(
            draw.below(2**32).to_bytes(4, "big"),
            draw.below(2**32).to_bytes(4, "big"),
            FIRST_PORT + draw.below(PORT_COUNT),
        )
        if first.bucket(flow) == 3:
            used.add(second.bucket(flow))
    return used


@pytest.mark.parametrize("name", list(HashName))
def test_two_tiers_with_equal_seeds_polarise(name: HashName) -> None:
    switch = SwitchHash(name, 8, seed=99)
    assert second_tier(switch, switch) == {3}


@pytest.mark.parametrize("name", list(HashName))
def test_another_seed_alone_does_not_help_but_another_shift_does(name: HashName) -> None:
    first = SwitchHash(name, 8, seed=99)
    assert len(second_tier(first, SwitchHash(name, 8, seed=1234))) == 1
    assert len(second_tier(first, SwitchHash(name, 8, seed=99, shift=5))) == 8


def test_another_toeplitz_key_helps() -> None:
    other = SwitchHash(HashName.TOEPLITZ, 8, key=bytes(reversed(TOEPLITZ_KEY)))
    assert len(second_tier(SwitchHash(HashName.TOEPLITZ, 8), other)) > 1


def test_linux_folds_a_flow_label_into_fourteen_bits() -> None:
    assert port_of_flow_label(0) == 49152
    assert port_of_flow_label(0xFFFFF) == (0x3FFF ^ 0x3F) | 0xC000
    assert port_of_flow_label(0x12345) == ((0x12345 & 0x3FFF) ^ (0x12345 >> 14)) | 0xC000


@pytest.mark.parametrize(
    ("product", "label"),
    # Bits from 20 on are folded in once, what is then from 40 on once more.
    [(3, 3), (1 << 20, 1), (1 << 25, 1 << 5), (1 << 40, 1), (1 << 44, 1 << 4), ((1 << 20) + 1, 0)],
)
def test_linux_folds_the_product_of_both_numbers_into_twenty_bits(product: int, label: int) -> None:
    assert flow_label_of_queue_pairs(product, 1) == label


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**24 - 1))
def test_both_ends_of_a_queue_pair_get_the_same_port(local: int, remote: int) -> None:
    assert port_of_queue_pairs(local, remote) == port_of_queue_pairs(remote, local)
    assert FIRST_PORT <= port_of_queue_pairs(local, remote) <= LAST_PORT
    assert 0 <= flow_label_of_queue_pairs(local, remote) < 1 << 20


def test_addresses_of_two_lengths_are_refused_with_both() -> None:
    with pytest.raises(ValueError, match="4 and 16 bytes"):
        FlowTuple(bytes(4), bytes(16), FIRST_PORT)
    with pytest.raises(ValueError, match="not 39"):
        SwitchHash(HashName.TOEPLITZ, 8, key=bytes(39))
    with pytest.raises(ValueError, match="at least 1, not 0"):
        SwitchHash(HashName.CRC32, 0)
    with pytest.raises(ValueError, match="5 and 5 bytes"):
        FlowTuple(bytes(5), bytes(5), FIRST_PORT)
    with pytest.raises(ValueError, match="65536"):
        FlowTuple(bytes(4), bytes(4), 65536)
    with pytest.raises(ValueError, match="port -1"):
        FlowTuple(bytes(4), bytes(4), FIRST_PORT, -1)
