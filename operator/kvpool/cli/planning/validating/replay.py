"""A workload's blocks through a real store of its own, in a process of its own.

Mooncake's client is native code that starts threads, writes to standard error, and can take its process
with it.
"""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from kvpool.cli.faults import CliError
from kvpool.cli.planning.validating.master import Master
from kvpool.cli.planning.validating.store import RealStore, joined

LEASE_MS: Final = 200
"""A block that was read stays at least so long. The default of 5 s would be hours of a trace here, as
nobody waits for its arrival times."""
HIGH_WATERMARK: Final = 0.95
EVICTION_RATIO: Final = 0.05
"""Mooncake's defaults: above 95 % of the memory at least 5 % of the objects leave."""
STEP_REQUESTS: Final = 20
SILENCE_SECONDS: Final = 300.0
"""After which a client that said nothing is taken to hang: no put waits longer than 5 s for room."""
SHOWN_CHARACTERS: Final = 400
STANDARD_ERROR: Final = 2
CLIENT_LOG: Final = "client.log"
Prompts = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Store:
    """The store to start: bytes of its memory and of a block, and whether a second tier of files is below."""

    memory_bytes: int
    block_bytes: int
    disk: bool


@dataclass(frozen=True, slots=True)
class Replayed:
    """Blocks found, over all prompts."""

    memory: int
    disk: int
    prefix: int
    wrong_bytes: int


def replayed(store: Store, prompts: Prompts, advance: Callable[[int], object]) -> Replayed:
    """Start a master and a store, and put all prompts through; `advance` gets how many more are done.

    With a disk, what the memory has no room for goes to files in a temporary folder, and what is read of them
    comes back by and by. Raises CliError.
    """
    flags = [
        f"--default_kv_lease_ttl={LEASE_MS}",
        f"--eviction_high_watermark_ratio={HIGH_WATERMARK}",
        f"--eviction_ratio={EVICTION_RATIO}",
    ]
    if store.disk:
        flags += ["--enable_offload=true", "--offload_on_evict=true", "--promotion_on_hit=true"]
    with (
        tempfile.TemporaryDirectory(prefix="kvpool-validate-") as folder,
        Master(Path(folder), flags) as master,
    ):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_client, args=(theirs, master.endpoint, folder, store, prompts)
        )
        process.start()
        theirs.close()
        try:
            while ours.poll(SILENCE_SECONDS):
                told = ours.recv()
                if isinstance(told, Replayed):
                    return told
                if isinstance(told, str):
                    raise CliError(told)
                advance(told)
            raise CliError(
                f"Mooncake's client said nothing for {SILENCE_SECONDS:.0f} s; {_last_words(folder)}"
            )
        except (EOFError, ConnectionError):
            process.join()
            raise CliError(
                f"Mooncake's client ended by itself with exit code {process.exitcode}; {_last_words(folder)}"
            ) from None
        finally:
            process.kill()
            process.join()


def _last_words(folder: str) -> str:
    """The end of what a client wrote to standard error: its folder goes with the error."""
    with suppress(OSError):
        said = (Path(folder) / CLIENT_LOG).read_text(errors="backslashreplace").strip()
        if said:
            return f"its last words: {said[-SHOWN_CHARACTERS:]}"
    return "it left no word why; try again"


def _end_with_command(folder: str) -> None:
    """Wait for the end of the command; where it was killed, nobody else is left to remove its folder."""
    command = multiprocessing.parent_process()
    if command is not None:
        command.join()
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _client(told: Connection, master: str, folder: str, store: Store, prompts: Prompts) -> None:
    """Bring the memory, join without any, and replay; tells counts of prompts, then what was found."""
    threading.Thread(target=_end_with_command, args=(folder,), daemon=True).start()
    with (Path(folder) / CLIENT_LOG).open("wb") as log:
        os.dup2(log.fileno(), STANDARD_ERROR)
    disk = Path(folder) / "disk"
    disk.mkdir()
    memory = on_disk = prefix = 0
    try:
        owner = joined(master, store.memory_bytes, str(disk) if store.disk else "")
        client = RealStore(joined(master, 0, ""), store.block_bytes)
        for done, prompt in enumerate(prompts, 1):
            found = client.request(prompt)
            memory += found.memory
            on_disk += found.disk
            prefix += found.prefix
            if done % STEP_REQUESTS == 0:
                told.send(STEP_REQUESTS)
        told.send(Replayed(memory, on_disk, prefix, client.wrong_bytes))
    except CliError as error:
        told.send(str(error))
    else:
        # Kept until here: the store's memory is its owner's.
        del owner
