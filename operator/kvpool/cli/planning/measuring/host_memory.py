"""Host memory: how fast processors copy within each NUMA node, also those of memory alone (CXL)."""

import ctypes
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from kvpool.cli.planning.measuring.machine import Limits, MemoryNode
from kvpool.cli.planning.measuring.memory_binding import BindingError, Buffer, buffers
from kvpool.cli.planning.measuring.repeating import repeat
from kvpool.plan.calibration.constants import Constant, Source
from kvpool.plan.calibration.spread import spread_of
from kvpool.plan.timing.model import NS_PER_SECOND

MIB: Final = 1 << 20
MOST_BUFFER_BYTES: Final = 256 * MIB
"""Far above the caches of one socket."""
LEAST_BUFFER_BYTES: Final = 32 * MIB
SHARE_OF_FREE: Final = 8
MOST_THREADS: Final = 16


def measure_host_memory(nodes: Sequence[MemoryNode], allowed: Limits, seconds: float) -> Iterator[Constant]:
    """Copy from every node with processors within every node with memory, for `seconds` altogether."""
    able = [node for node in nodes if node.processors]
    cases = [(source, target) for target in nodes for source in _nearest_first(able, target)]
    if not cases:
        yield _not_measured("host.memory", "this process may run on no processor of a node with memory")
    for source, target in cases:
        size = _buffer_bytes(target, allowed.memory_bytes)
        name = f"host.memory.node{target.number}.copy"
        if source is not _nearest_first(able, target)[0]:
            name += f".from{source.number}"
        if size < LEAST_BUFFER_BYTES:
            yield _not_measured(
                name,
                f"node {target.number} has {target.free_bytes // MIB} MiB free; "
                f"{SHARE_OF_FREE * LEAST_BUFFER_BYTES // MIB} are needed for two buffers beyond the caches",
            )
            continue
        bound = target.number if len(nodes) > 1 else None
        try:
            threads = _threads(source, allowed.processors)
            yield from _measured(name, (source, target), bound, size, threads, seconds / len(cases))
        except BindingError as error:
            yield _not_measured(name, str(error))
        except OSError as error:
            yield _not_measured(name, f"two buffers of {size // MIB} MiB could not be had: {error.strerror}")


def _nearest_first(able: Sequence[MemoryNode], target: MemoryNode) -> list[MemoryNode]:
    """Nodes with processors, the target itself first if it is one."""
    return sorted(
        able, key=lambda node: (node.number != target.number, target.distances.get(node.number, 255))
    )


def _measured(
    name: str,
    ends: tuple[MemoryNode, MemoryNode],
    bound: int | None,
    size: int,
    threads: int,
    seconds: float,
) -> Iterator[Constant]:
    source, target = ends
    kind = (
        "" if target.has_processors else f"; node {target.number} has no processors, as CXL memory has none"
    )
    for count, suffix in ((threads, ""), *(((1, ".one_thread"),) if threads > 1 else ())):
        part = size // count // 4096 * 4096
        with buffers(2 * count, part, bound) as held:
            spent = _copies(held, source.processors, seconds / (2 if threads > 1 else 1))
        rates = spread_of([count * part * NS_PER_SECOND / one for one in spent])
        yield Constant(
            name + suffix,
            "bytes/s",
            Source.MEASURED,
            rates.median,
            rates.low,
            rates.high,
            rates.samples,
            f"copies of {count * part // MIB} MiB within node {target.number} by {count} "
            f"{'threads' if count > 1 else 'thread'} of node {source.number}; bytes copied, each read and "
            f"written once{kind}",
        )


def _copies(held: Sequence[Buffer], processors: Sequence[int], seconds: float) -> list[int]:
    """Time rounds in which each thread copies one buffer to its other; ctypes lets them run side by side."""
    pairs = list(zip(held[::2], held[1::2], strict=True))
    with ThreadPoolExecutor(len(pairs), initializer=partial(os.sched_setaffinity, 0, processors)) as pool:

        def one_round() -> None:
            for done in [
                pool.submit(ctypes.memmove, into.address, out.address, out.size_bytes) for out, into in pairs
            ]:
                done.result()

        return repeat(one_round, seconds)


def _threads(source: MemoryNode, processor_limit: float | None) -> int:
    """As many as a node's processors, or as a container lets run at once."""
    most = MOST_THREADS if processor_limit is None else max(1, int(processor_limit))
    return min(len(source.processors), MOST_THREADS, most)


def _buffer_bytes(node: MemoryNode, memory_limit_bytes: int | None) -> int:
    """For each of two buffers: an eighth of what is free, or of what a container may use."""
    free = node.free_bytes if memory_limit_bytes is None else min(node.free_bytes, memory_limit_bytes)
    return min(MOST_BUFFER_BYTES, free // SHARE_OF_FREE)


def _not_measured(name: str, reason: str) -> Constant:
    return Constant(name, "bytes/s", Source.NOT_MEASURED, reason=reason)
