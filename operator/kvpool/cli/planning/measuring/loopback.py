"""The loopback network: blocks pulled over TCP within this machine, alone and many at once.

It bounds what copies between processes of one host reach; it says nothing of a fabric.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from kvpool.cli.planning.measuring.repeating import repeat
from kvpool.plan.calibration.constants import Constant, Source
from kvpool.plan.calibration.spread import quantile, spread_of
from kvpool.plan.calibration.transfer_curve import Point, fit_curve
from kvpool.plan.timing.model import NS_PER_SECOND

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SIZES: Final = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
BURSTS: Final = (1, 4, 16, 64)
BURST_BYTES: Final = 4 * MIB
ASK: Final = struct.Struct("!Q")
PATIENCE_SECONDS: Final = 20.0


def measure_loopback(seconds: float) -> Iterator[Constant]:
    """Pull blocks of several sizes one at a time, then bursts of transfers at once."""
    try:
        with _server() as address:
            yield _one_at_a_time(address, seconds / 2)
            for count in BURSTS:
                yield _burst(address, count, seconds / 2 / len(BURSTS))
    except OSError as error:
        yield Constant(
            "network.loopback",
            "bytes/s",
            Source.NOT_MEASURED,
            reason=f"no TCP connection within this machine: {error.strerror or error}",
        )


def _one_at_a_time(address: tuple[str, int], seconds: float) -> Constant:
    points = []
    with _connected(address) as pull:
        buffer = bytearray(max(SIZES))
        for size in SIZES:
            spent = sorted(repeat(partial(_pull, pull, buffer, size), seconds / len(SIZES)))
            points.append(
                Point(
                    size,
                    round(quantile(spent, 0.5)),
                    round(quantile(spent, 0.1)),
                    round(quantile(spent, 0.9)),
                    len(spent),
                )
            )
    curve = fit_curve(points)
    rates = spread_of([point.size_bytes * NS_PER_SECOND / point.spent_ns for point in points])
    return Constant(
        "network.loopback",
        "bytes/s",
        Source.MEASURED,
        float(curve.line.bytes_per_second),
        rates.low,
        rates.high,
        sum(point.samples for point in points),
        "blocks of 64 KiB to 64 MiB pulled over one TCP connection; value: slope of the fitted line; "
        "interval: rates of single sizes",
        curve=curve,
    )


def _burst(address: tuple[str, int], count: int, seconds: float) -> Constant:
    with ExitStack() as held:
        pulls = [held.enter_context(_connected(address)) for _ in range(count)]
        buffers = [bytearray(BURST_BYTES) for _ in range(count)]
        pool = held.enter_context(ThreadPoolExecutor(count))

        def burst() -> None:
            for done in [
                pool.submit(_pull, pull, buffer, BURST_BYTES)
                for pull, buffer in zip(pulls, buffers, strict=True)
            ]:
                done.result()

        rates = spread_of([count * BURST_BYTES * NS_PER_SECOND / one for one in repeat(burst, seconds)])
    return Constant(
        f"network.loopback.burst{count}",
        "bytes/s",
        Source.MEASURED,
        rates.median,
        rates.low,
        rates.high,
        rates.samples,
        f"bursts of {count} blocks of 4 MiB, each pulled over its own TCP connection; all bytes of a burst "
        f"over the time of its last",
    )


@contextmanager
def _server() -> Iterator[tuple[str, int]]:
    """Serve blocks on a port of this machine alone until the end."""
    with socket.create_server(("127.0.0.1", 0), backlog=max(BURSTS)) as listening:
        accepting = threading.Thread(target=_accept, args=(listening,), daemon=True)
        accepting.start()
        host, port = listening.getsockname()[:2]
        try:
            yield host, port
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join(PATIENCE_SECONDS)


def _accept(listening: socket.socket) -> None:
    block = memoryview(bytes(max(SIZES)))
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, block), daemon=True).start()


def _serve(connection: socket.socket, block: memoryview) -> None:
    """Answer each number with so many bytes until the other side hangs up."""
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while len(asked := connection.recv(ASK.size, socket.MSG_WAITALL)) == ASK.size:
            connection.sendall(block[: ASK.unpack(asked)[0]])


@contextmanager
def _connected(address: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=PATIENCE_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def _pull(connection: socket.socket, buffer: bytearray, size: int) -> None:
    connection.sendall(ASK.pack(size))
    view = memoryview(buffer)[:size]
    while view:
        got = connection.recv_into(view)
        if not got:
            raise ConnectionResetError("the serving side hung up")
        view = view[got:]
