"""Run a command in network, mount and process namespaces of its own; nothing of it is left on the host.

    python -m devcluster.sandbox [--optional] [--pidfile FILE] -- COMMAND...
    python -m devcluster.sandbox --hold FILE                 an empty sandbox in the background
    python -m devcluster.sandbox --enter FILE -- COMMAND...  one more command in a running sandbox
    python -m devcluster.sandbox --stop FILE                 end a sandbox and every process in it

Inside: loopback is up, the device `kvhosts` carries 10.77.0.1 and takes the addresses of simulated hosts,
/dev/shm and /mnt are private tmpfs mounts, /etc/hosts is a private copy, and `KVPOOL_SANDBOX=1` is set.
There is no way out to the network, so everything is installed and built before. Root uses plain namespaces;
other users get a user namespace in which they are root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from devcluster.userns import advice

MARK = "KVPOOL_SANDBOX"
HOSTS_DEVICE = "kvhosts"
OWN_ADDRESS = "10.77.0.1"
PREFIX_LENGTH = 16
MOUNTS = Path("/mnt")
NAMES = Path("/etc/hosts")

NAMESPACES = ["--net", "--mount", "--pid", "--ipc", "--propagation", "private", "--fork", "--kill-child"]
KINDS: tuple[list[str], ...] = (
    [],
    ["--user", "--map-root-user"],
)  # as root; else as root of a user namespace
DEVICE_TYPES = ("dummy", "bridge", "veth")  # kernels differ in which they have
IMPOSSIBLE = 3
START_SECONDS = 20.0
STOP_SECONDS = 10.0


class SandboxError(Exception):
    """A sandbox cannot be made, found or entered; one line says why."""


def inside() -> bool:
    """True in a process that runs in a sandbox."""
    return os.environ.get(MARK) == "1"


def usable_kind() -> list[str]:
    """The `unshare` options that work here, found by trying them. Raises SandboxError."""
    for tool in ("unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(tool) is None:
            raise SandboxError(f"`{tool}` is missing (Debian packages util-linux and iproute2)")
    complaints = []
    for kind in KINDS:
        trial = subprocess.run(
            _unshare(kind, None, ["true"]),
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if trial.returncode == 0:
            return kind
        complaints.append((trial.stderr.strip().splitlines() or [f"exit status {trial.returncode}"])[-1])
    raise SandboxError(f"{'; in a user namespace, '.join(complaints)}: {advice()}")


def run(command: Sequence[str], pidfile: Path | None, optional: bool) -> int:
    """Run `command` in a new sandbox and return its exit status; inside one already, just run it."""
    if inside():
        os.execvp(command[0], list(command))
    try:
        kind = usable_kind()
    except SandboxError as error:
        if not optional:
            raise
        print(f"sandbox: not possible here, running without: {error}", file=sys.stderr)
        os.execvp(command[0], list(command))
    # `unshare` ignores SIGTERM while it waits, so this process stays to pass signals on.
    first = ["setpriv", "--pdeathsig=KILL", *_unshare(kind, pidfile, command)]
    with subprocess.Popen(first, env=_environment()) as child:

        def pass_on(number: int, _frame: FrameType | None) -> None:
            for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split():
                os.kill(int(pid), number)

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, pass_on)
        return child.wait()


def hold(pidfile: Path) -> None:
    """Start an empty sandbox in the background and return when it can be entered."""
    if running(pidfile) is not None:
        raise SandboxError(f"{pidfile} names a sandbox that is running")
    pidfile.unlink(missing_ok=True)
    with _log(pidfile).open("w") as log:
        holder = subprocess.Popen(
            _unshare(usable_kind(), pidfile, ["sleep", "infinity"]),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    end = time.monotonic() + START_SECONDS
    while running(pidfile) is None:
        if holder.poll() is not None or time.monotonic() > end:
            raise SandboxError(f"the sandbox did not start: see {log.name}")
        time.sleep(0.02)


def enter(pidfile: Path, command: Sequence[str]) -> NoReturn:
    """Replace this process by `command` in the running sandbox; keeps the working directory."""
    pid = _found(pidfile)
    namespaces = ["--net", "--mount", "--pid", "--ipc"]
    if Path(f"/proc/{pid}/ns/user").readlink() != Path("/proc/self/ns/user").readlink():
        namespaces += ["--user", "--preserve-credentials"]
    arguments = ["nsenter", f"--target={pid}", *namespaces, "env", f"--chdir={Path.cwd()}", *command]
    os.execvpe("nsenter", arguments, _environment())


def stop(pidfile: Path) -> None:
    """End a sandbox; one that has ended already is fine."""
    pid = running(pidfile)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + STOP_SECONDS
        while running(pidfile) is not None:
            if time.monotonic() > end:
                raise SandboxError(f"process {pid} does not end")
            time.sleep(0.02)
    pidfile.unlink(missing_ok=True)
    _log(pidfile).unlink(missing_ok=True)


def _log(pidfile: Path) -> Path:
    return pidfile.with_suffix(".log")


def _unshare(kind: Sequence[str], pidfile: Path | None, command: Sequence[str]) -> list[str]:
    own = [sys.executable, "-m", "devcluster.sandbox_init", str(pidfile or "")]
    return ["unshare", *kind, *NAMESPACES, *own, *command]


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
    return {**os.environ, MARK: "1", "PYTHONPATH": path}


def running(pidfile: Path) -> int | None:
    """The process id in `pidfile` if it is a sandbox and alive (numbers are used again by others)."""
    try:
        pid = int(pidfile.read_text())
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if f"{MARK}=1".encode() in variables else None


def _found(pidfile: Path) -> int:
    pid = running(pidfile)
    if pid is None:
        raise SandboxError(f"no sandbox is running under {pidfile}")
    return pid


def main() -> int:
    """Exit status: the command's; 3 when there can be no sandbox here."""
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.sandbox",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--optional", action="store_true", help="run without a sandbox when there can be none"
    )
    parser.add_argument("--pidfile", type=Path, help="where to write the process id, for --enter")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--hold", type=Path, metavar="FILE")
    action.add_argument("--enter", type=Path, metavar="FILE")
    action.add_argument("--stop", type=Path, metavar="FILE")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command and not (options.hold or options.stop):
        parser.error("a command is missing")
    try:
        if options.hold:
            hold(options.hold)
        elif options.stop:
            stop(options.stop)
        elif options.enter:
            enter(options.enter, command)
        else:
            return run(command, options.pidfile, options.optional)
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return IMPOSSIBLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
