from __future__ import annotations

from pathlib import Path

from kvpool_agent.topology import NumaNode, numa_nodes

MEMINFO = """Node {n} MemTotal:       {total} kB
Node {n} MemFree:        1000 kB
Node {n} MemUsed:        9000 kB
Node {n} Active(file):   300 kB
Node {n} Inactive(file): 200 kB
Node {n} SReclaimable:   50 kB
Node {n} HugePages_Total:     0
"""


def add_node(sysroot: Path, number: int, total: int, cpus: str) -> None:
    folder = sysroot / "devices/system/node" / f"node{number}"
    folder.mkdir(parents=True)
    (folder / "meminfo").write_text(MEMINFO.format(n=number, total=total))
    (folder / "cpulist").write_text(f"{cpus}\n")


def test_nodes_are_read_with_what_is_free_or_reclaimable(tmp_path: Path) -> None:
    add_node(tmp_path, 0, 10_000, "0-3")
    assert numa_nodes(tmp_path) == (NumaNode(0, 10_000 * 1024, 1550 * 1024, has_cpus=True),)


def test_a_node_without_cpus_is_told_apart_and_one_without_memory_is_none(tmp_path: Path) -> None:
    add_node(tmp_path, 2, 5000, "")
    add_node(tmp_path, 0, 10_000, "0-3")
    add_node(tmp_path, 1, 0, "")
    assert [(node.number, node.has_cpus) for node in numa_nodes(tmp_path)] == [(0, True), (2, False)]


def test_a_machine_without_numa_has_no_nodes(tmp_path: Path) -> None:
    assert numa_nodes(tmp_path) == ()


def test_a_node_that_vanishes_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    add_node(tmp_path, 0, 10_000, "0-3")
    (tmp_path / "devices/system/node/node7").mkdir()
    assert [node.number for node in numa_nodes(tmp_path)] == [0]


def test_this_machine_has_its_nodes() -> None:
    for node in numa_nodes(Path("/sys")):
        assert 0 < node.free_bytes <= node.capacity_bytes
