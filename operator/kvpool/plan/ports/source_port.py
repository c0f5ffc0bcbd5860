"""Source ports of RoCEv2: the range, and the port that Linux gives a flow label or a pair of queue pairs.

Source: Linux, include/rdma/ib_verbs.h (`rdma_flow_label_to_udp_sport`, `rdma_calc_flow_label`).
"""

from typing import Final

FIRST_PORT: Final = 0xC000
"""49152: the two highest bits are always set, so 14 bits are free."""
LAST_PORT: Final = 0xFFFF
PORT_BITS: Final = 14
PORT_COUNT: Final = 1 << PORT_BITS
FLOW_LABEL_MASK: Final = 0xFFFFF


def port_of_flow_label(flow_label: int) -> int:
    """The source port of a 20-bit flow label: its 14 low bits XOR its 6 high ones."""
    label = flow_label & FLOW_LABEL_MASK
    return ((label & (PORT_COUNT - 1)) ^ (label >> PORT_BITS)) | FIRST_PORT


def flow_label_of_queue_pairs(local: int, remote: int) -> int:
    """The flow label used where none is set, from the numbers of both queue pairs (24 bits each)."""
    mixed = local * remote
    mixed ^= mixed >> 20
    mixed ^= mixed >> 40
    return mixed & FLOW_LABEL_MASK


def port_of_queue_pairs(local: int, remote: int) -> int:
    """The source port of a pair of queue pairs without a flow label. The order of the two does not matter."""
    return port_of_flow_label(flow_label_of_queue_pairs(local, remote))
