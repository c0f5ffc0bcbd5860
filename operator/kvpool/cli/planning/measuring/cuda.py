"""An NVIDIA accelerator through its driver's own library, so that no framework need be installed.

Functions and their meaning: NVIDIA, "CUDA Driver API".
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from kvpool.cli.planning.measuring.accelerator import Accelerator, NoAcceleratorError

LIBRARY: Final = "libcuda.so.1"

_Address = ctypes.c_uint64 | ctypes.c_void_p


def load() -> ctypes.CDLL:
    """The driver's library.

    Raises:
        NoAcceleratorError: when it is not here.
    """
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        raise NoAcceleratorError(
            f"no accelerator can be measured: {LIBRARY} of its driver is not here"
        ) from None


@contextmanager
def opened(room_bytes: int, library: Callable[[], ctypes.CDLL] = load) -> Iterator[Accelerator]:
    """Open the first accelerator with two pieces of its memory and one of pinned host memory.

    Raises:
        NoAcceleratorError: when there is none, or it has not so much room.
    """
    driver = library()
    with ExitStack() as held:
        _call(driver, "cuInit", ctypes.c_uint(0))
        count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        _call(driver, "cuDeviceGetCount", ctypes.byref(count))
        if not count.value:
            raise NoAcceleratorError("no accelerator can be measured: its driver sees none")
        _call(driver, "cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        _call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        held.callback(driver.cuDevicePrimaryCtxRelease_v2, device)
        _call(driver, "cuCtxSetCurrent", context)
        places = []
        for _ in range(2):
            place = ctypes.c_uint64()
            _call(driver, "cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(room_bytes))
            held.callback(driver.cuMemFree_v2, place)
            places.append(place)
        host = ctypes.c_void_p()
        _call(driver, "cuMemAllocHost_v2", ctypes.byref(host), ctypes.c_size_t(room_bytes))
        held.callback(driver.cuMemFreeHost, host)
        yield _Card(driver, device, places, host)


class _Card:
    """The accelerator that is open."""

    def __init__(
        self, driver: ctypes.CDLL, device: ctypes.c_int, places: list[ctypes.c_uint64], host: ctypes.c_void_p
    ) -> None:
        self._driver = driver
        self._first, self._second = places
        self._host = host
        name = ctypes.create_string_buffer(128)
        _call(driver, "cuDeviceGetName", name, ctypes.c_int(len(name)), device)
        version = ctypes.c_int()
        _call(driver, "cuDriverGetVersion", ctypes.byref(version))
        self.name = name.value.decode(errors="replace")
        self.driver = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"

    def copy_in(self, size_bytes: int) -> None:
        self._copy("cuMemcpyHtoD_v2", self._first, self._host, size_bytes)

    def copy_out(self, size_bytes: int) -> None:
        self._copy("cuMemcpyDtoH_v2", self._host, self._first, size_bytes)

    def copy_within(self, size_bytes: int) -> None:
        self._copy("cuMemcpyDtoD_v2", self._second, self._first, size_bytes)

    def _copy(self, function: str, into: _Address, out: _Address, size_bytes: int) -> None:
        _call(self._driver, function, into, out, ctypes.c_size_t(size_bytes))
        _call(self._driver, "cuCtxSynchronize")


def _call(driver: ctypes.CDLL, function: str, *arguments: object) -> None:
    failed = getattr(driver, function)(*arguments)
    if failed:
        raise NoAcceleratorError(f"the accelerator cannot be measured: {function} gave error {failed}")
