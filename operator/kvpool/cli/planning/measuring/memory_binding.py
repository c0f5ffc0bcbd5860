"""Memory on a chosen NUMA node: pages are bound by the kernel's own call, so that no numactl is needed."""

import ctypes
import mmap
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

BIND: Final = 2
"""MPOL_BIND of linux/mempolicy.h."""
CALLS: Final = {"x86_64": 237, "aarch64": 235, "riscv64": 235, "ppc64le": 259, "s390x": 268}
"""Number of `mbind` by machine."""
MASK_BITS: Final = 1024


class BindingError(Exception):
    """Memory cannot be bound here; the text says why in one sentence."""


class Buffer:
    """Anonymous memory of some bytes, present from the start, with its address."""

    def __init__(self, size_bytes: int, node: int | None) -> None:
        """Map, bind to a node (None: anywhere) and touch every page.

        Raises:
            BindingError: when the kernel does not bind it.
            OSError: when there is not so much memory.
        """
        self._map = mmap.mmap(-1, size_bytes)
        self._view = (ctypes.c_char * size_bytes).from_buffer(self._map)
        self.address = ctypes.addressof(self._view)
        self.size_bytes = size_bytes
        try:
            if node is not None:
                _bind(self.address, size_bytes, node)
            ctypes.memset(self.address, 0x5A, size_bytes)
        except BaseException:  # whatever ends it, Ctrl-C too: the mapping is given back
            self.close()
            raise

    def close(self) -> None:
        """Give the memory back."""
        del self._view
        self._map.close()


@contextmanager
def buffers(count: int, size_bytes: int, node: int | None) -> Iterator[list[Buffer]]:
    """Several buffers of one size on one node, given back at the end."""
    held: list[Buffer] = []
    try:
        for _ in range(count):
            held.append(Buffer(size_bytes, node))  # noqa: PERF401  # what was mapped must be known to `finally`
        yield held
    finally:
        for buffer in held:
            buffer.close()


def _bind(address: int, size_bytes: int, node: int) -> None:
    number = CALLS.get(platform.machine())
    if number is None:
        raise BindingError(f"memory cannot be bound to a node on {platform.machine()}")
    mask = (ctypes.c_ulong * (MASK_BITS // (8 * ctypes.sizeof(ctypes.c_ulong))))()
    width = 8 * ctypes.sizeof(ctypes.c_ulong)
    mask[node // width] = 1 << node % width
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.syscall(
        ctypes.c_long(number),
        ctypes.c_void_p(address),
        ctypes.c_ulong(size_bytes),
        ctypes.c_int(BIND),
        ctypes.byref(mask),
        ctypes.c_ulong(MASK_BITS),
        ctypes.c_uint(0),
    )
    if failed:
        raise BindingError(
            f"memory could not be bound to node {node}: {os.strerror(ctypes.get_errno())}; a container must "
            f"allow mbind"
        )
