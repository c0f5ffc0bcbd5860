"""The first process of a sandbox: sets up its mounts and links, runs the command, reaps orphans.

Started by `devcluster.sandbox` inside the new namespaces; when it ends, the kernel ends all the rest.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from devcluster.sandbox import (
    DEVICE_TYPES,
    HOSTS_DEVICE,
    IMPOSSIBLE,
    MOUNTS,
    NAMES,
    OWN_ADDRESS,
    PREFIX_LENGTH,
    SandboxError,
)

SETUP_SECONDS = 10
COMMAND_NOT_FOUND = 127


def _do(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, timeout=SETUP_SECONDS, check=False)
    if result.returncode != 0:
        raise SandboxError(f"`{' '.join(command)}`: {result.stderr.strip()}")


def set_up() -> None:
    """Mount what has to be private and bring the links up. Raises SandboxError."""
    _do("mount", "-t", "proc", "proc", "/proc")
    _do("mount", "-t", "tmpfs", "-o", "mode=1777", "kvpool-shm", "/dev/shm")
    _do("mount", "-t", "tmpfs", "-o", "mode=0755", "kvpool-mounts", str(MOUNTS))
    _make_names_private()
    _do("ip", "link", "set", "lo", "up")
    _add_hosts_device()
    _do("ip", "address", "add", f"{OWN_ADDRESS}/{PREFIX_LENGTH}", "dev", HOSTS_DEVICE)
    _do("ip", "link", "set", HOSTS_DEVICE, "up")


def _make_names_private() -> None:
    """Put a copy over /etc/hosts, so that names of Services can be written there."""
    original = NAMES.read_text() if NAMES.exists() else "127.0.0.1 localhost\n::1 localhost\n"
    copy = MOUNTS / "hosts"
    copy.write_text(original)
    _do("mount", "--bind", str(copy), str(NAMES))


def _add_hosts_device() -> None:
    for kind in DEVICE_TYPES:
        try:
            _do("ip", "link", "add", HOSTS_DEVICE, "type", kind)
        except SandboxError as error:
            complaint = error
        else:
            return
    raise complaint


def run_as_first_process(command: list[str]) -> int:
    """Run `command`, pass signals on to it, reap every orphan, and return its exit status."""
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        print(f"sandbox: {command[0]}: {error.strerror}", file=sys.stderr)
        return COMMAND_NOT_FOUND

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):  # it may have ended just now
            os.kill(child.pid, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def main() -> int:
    """Arguments: where to write the process id ("" for nowhere), then the command."""
    pidfile, command = sys.argv[1], sys.argv[2:]
    seen_outside = Path("/proc/self").readlink()  # /proc is still the one of the host
    try:
        set_up()
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return IMPOSSIBLE
    if pidfile:
        Path(pidfile).write_text(f"{seen_outside}\n")
    code = run_as_first_process(command)
    if pidfile:
        Path(pidfile).unlink(missing_ok=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
