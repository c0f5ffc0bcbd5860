"""What the kernel says of Pods on real nodes, without kubelet and kvpool: processes, mappings, memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster.rest import JsonObject
from tests.e2e.site import RealSite

MEMORY = Path("/sys/fs/cgroup/memory")
PAGE_KIB = 4
UNIT_FILE = "/segment"


@dataclass(frozen=True)
class Mapping:
    """One mapping of a unit's file by its keeper, which has the node's `address`."""

    address: str
    start: int
    end: int


def cgroup(site: RealSite, pod: JsonObject) -> Path:
    """The Pod's memory cgroup. Raises ValueError when it has none (any more)."""
    meta, node = pod["metadata"], pod["spec"]["nodeName"]
    (folder,) = MEMORY.glob(f"{site.cluster.name}/{node}/**/pod{meta['uid']}")
    return folder


def statistics(site: RealSite, pod: JsonObject) -> dict[str, int]:
    """memory.stat of a Pod's cgroup, as the kernel has it."""
    lines = (cgroup(site, pod) / "memory.stat").read_text().splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}


def runs(site: RealSite, pod: JsonObject) -> bool:
    """Whether any process of the Pod is alive, its sandbox's included."""
    meta, node = pod["metadata"], pod["spec"]["nodeName"]
    for folder in MEMORY.glob(f"{site.cluster.name}/{node}/**/pod{meta['uid']}"):
        if any(file.read_text().strip() for file in folder.rglob("cgroup.procs")):
            return True
    return False


def process(site: RealSite, pod: JsonObject, program: str) -> Path:
    """The folder in proc of a program's one process in the Pod. Raises ValueError unless there is one."""
    node_proc = site.cluster.root(pod["spec"]["nodeName"]) / "proc"
    uid = pod["metadata"]["uid"]
    (found,) = [folder for folder in node_proc.glob("[0-9]*") if _is_program(folder, program, uid)]
    return found


@contextmanager
def frozen(site: RealSite, pod: JsonObject, program: str) -> Iterator[None]:
    """A program of the Pod that is stopped where it is, and goes on in the end."""
    node, pid = pod["spec"]["nodeName"], process(site, pod, program).name
    assert site.cluster.run(node, ["kill", "-STOP", pid]).returncode == 0
    try:
        yield
    finally:
        site.cluster.run(node, ["kill", "-CONT", pid])


def facts(site: RealSite, pod: JsonObject, program: str) -> dict[str, str]:
    """What the kernel says of the Pod's process, by the names of /proc/PID/status."""
    lines = (process(site, pod, program) / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def mappings(site: RealSite, *keepers: JsonObject) -> list[Mapping]:
    """Where keepers have their units' files in their address spaces; each maps its file more than once."""
    return [
        Mapping(site.address(keeper["spec"]["nodeName"]), start, end)
        for keeper in keepers
        for start, end in _ranges(process(site, keeper, "kvpool-keeper"))
    ]


def bytes_by_numa_node(site: RealSite, keeper: JsonObject) -> dict[int, int]:
    """Where the pages of a keeper's unit lie, by numa_maps of the mapping that shows most of them."""
    folder = process(site, keeper, "kvpool-keeper")
    starts = {start for start, _ in _ranges(folder)}
    lines = (folder / "numa_maps").read_text().splitlines()
    found = [_pages(line) for line in lines if int(line.split()[0], 16) in starts]
    return max(found, key=lambda pages: sum(pages.values()))


def _ranges(folder: Path) -> list[tuple[int, int]]:
    lines = [line for line in (folder / "maps").read_text().splitlines() if line.endswith(UNIT_FILE)]
    ends = (line.split()[0].split("-") for line in lines)
    return [(int(start, 16), int(end, 16)) for start, end in ends]


def _pages(line: str) -> dict[int, int]:
    size = re.search(r"kernelpagesize_kB=(\d+)", line)
    page_bytes = (int(size[1]) if size else PAGE_KIB) << 10
    return {int(node): int(pages) * page_bytes for node, pages in re.findall(r" N(\d+)=(\d+)", line)}


def _is_program(folder: Path, program: str, pod_uid: str) -> bool:
    try:
        words = (folder / "cmdline").read_bytes().split(b"\0")
        return pod_uid in (folder / "cgroup").read_text() and any(
            word.endswith(f"/{program}".encode()) for word in words[:2]
        )
    except OSError:
        return False
