"""The demonstration: `python -m demo`, in a sandbox of its own. With KEEP=1 it is left running.

It runs on real nodes where this machine can have them, else its Pods are processes; DEMO_FORM=nodes or
DEMO_FORM=processes asks for one of them, and with KVPOOL_STRICT=1 the second has to be asked for. What is not
built yet is built first.

Exit status 0 when everything was as expected, 1 when something was not, 3 when there can be no sandbox here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from demo import forms, places, preparing, scenario, stopping
from demo.commands import CommandFailedError
from demo.forms import Choice, FormError
from demo.neighbours.mooncake import AdminUnavailableError
from demo.replay_process import ReplayFailedError
from demo.screen import Screen
from demo.trace import TraceUnreadableError
from devcluster import sandbox
from devcluster.nodes.cabling import CablingError
from devcluster.nodes.cgroups import CgroupError
from devcluster.nodes.requirements import NodesImpossibleError
from devcluster.process import ProcessError
from devcluster.recipe import NotBuiltError
from devcluster.rest import ApiError
from devcluster.toolchain import BuildError

KEEP = "KEEP"
STOPPED = 130
FOLLOW_SECONDS = 0.2
TROUBLES = (
    AdminUnavailableError,
    ApiError,
    CablingError,
    CgroupError,
    CommandFailedError,
    FormError,
    LookupError,
    NodesImpossibleError,
    NotBuiltError,
    OSError,
    ProcessError,
    ReplayFailedError,
    TimeoutError,
    TraceUnreadableError,
    subprocess.TimeoutExpired,
)
"""What parts raise when they do not work; anything else is a mistake in the demonstration itself."""


class AlreadyRunningError(Exception):
    """Another demonstration uses the folders of this checkout."""


def main() -> int:
    """Outside the sandbox: clean up what was left, and go in. Inside: run the scenario."""
    if sandbox.inside():
        if places.KEPT.exists():
            print("demo: this is a shell inside a demonstration: leave it to start another", file=sys.stderr)
            return 1
        return run_inside()
    try:
        with only_demonstration(places.LOCK):
            stopping.stop()
            prepare()
            if places.FOLDER.exists():
                shutil.rmtree(places.FOLDER)
            places.FOLDER.mkdir(parents=True)
            command = [sys.executable, "-m", "demo"]
            return run_and_leave(command) if keeps() else sandbox.run(command, None, optional=False)
    except (AlreadyRunningError, BuildError, CgroupError, FormError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. What is built already stays in the cache.", file=sys.stderr)
        return STOPPED
    except sandbox.SandboxError as error:
        print(f"demo: no sandbox can be had here, and nothing is run without: {error}", file=sys.stderr)
        return sandbox.IMPOSSIBLE
    except PermissionError as error:
        print(f"demo: what an earlier run left is another user's: {error}: remove it", file=sys.stderr)
        return 1


def prepare() -> None:
    """Choose the form, say why, install and build what it needs. Raises FormError or BuildError."""
    choice = chosen()
    if choice.line:
        print(f"demo: {choice.line}", flush=True)
    if choice.packages:
        preparing.install(choice.packages)
    preparing.build_for(choice.form)
    os.environ[forms.VARIABLE] = choice.form


def chosen() -> Choice:
    """The form that was asked for or that suits this machine. Raises FormError."""
    asked, strict = os.environ.get(forms.VARIABLE, ""), os.environ.get(forms.STRICT_VARIABLE) == "1"
    return forms.choose(asked, preparing.look_at_machine(), strict)


@contextlib.contextmanager
def only_demonstration(lock: Path) -> Iterator[None]:
    """Hold the lock of this checkout, which the kernel frees when we end. Raises AlreadyRunningError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunningError(
                "another one is running in this checkout: wait for its end, or use another clone"
            ) from None
        yield


def run_inside() -> int:
    """Run the scenario; 1 when something was not as expected."""
    signal.signal(signal.SIGTERM, _interrupt)
    screen = Screen()
    try:
        scenario.run(chosen().form, screen, lambda: _stay(screen) if keeps() else None)
    except KeyboardInterrupt:
        screen.note("Stopped. Nothing is left running.")
        return STOPPED
    except TROUBLES as error:
        screen.expect(False, f"the demonstration came to its end: {type(error).__name__}: {error}")
        screen.say(f"The logs of every process are in {places.LOGS}")
    return verdict(screen)


def verdict(screen: Screen) -> int:
    """Say what was not as expected; 0 when everything was."""
    for text in screen.broken:
        screen.note(f"not as expected: {text}")
    return 1 if screen.broken else 0


def keeps() -> bool:
    """Whether everything is to be left running."""
    return os.environ.get(KEEP, "") not in ("", "0")


def run_and_leave(command: list[str]) -> int:
    """Run in a sandbox that stays, show its output until all steps are over, and return their verdict.

    Stopped before that, by Ctrl-C or a signal, the sandbox is ended.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _run_and_leave(command)
    except KeyboardInterrupt:
        stopping.stop()
        print("\nStopped. Nothing is left running.")
        return STOPPED


def _run_and_leave(command: list[str]) -> int:
    sandbox.hold(places.PIDFILE)
    entered = [sys.executable, "-m", "devcluster.sandbox", f"--enter={places.PIDFILE}", "--", *command]
    with places.OUTPUT.open("w") as output:
        child = subprocess.Popen(
            entered, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    _follow(places.OUTPUT, child)
    if not places.KEPT.exists():
        stopping.stop()
        return child.wait()
    print("It goes on running: `make demo-shell` enters, `make demo-stop` ends it.")
    return int(places.KEPT.read_text())


def _follow(output: Path, child: subprocess.Popen[bytes]) -> None:
    with output.open() as lines:
        while True:
            ended = places.KEPT.exists() or child.poll() is not None
            sys.stdout.write(lines.read())
            sys.stdout.flush()
            if ended:
                return
            time.sleep(FOLLOW_SECONDS)


def _stay(screen: Screen) -> None:
    """Say the verdict, and keep hosts and Pods alive until the sandbox is ended."""
    code = verdict(screen)
    sys.stdout.flush()
    partial = places.KEPT.with_suffix(".new")
    partial.write_text(str(code))
    partial.replace(places.KEPT)
    threading.Event().wait()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
