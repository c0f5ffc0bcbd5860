"""The life of one Pod's process on a host: started, watched, asked whether it is ready, started again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from devcluster import readiness
from devcluster.backoff import BackOff
from devcluster.podstatus import Containers
from devcluster.process import ManagedProcess, ProcessError
from devcluster.rest import ApiError, JsonObject

PROBE_PERIOD_SECONDS = 1.0


@dataclass
class PodLife:
    """What a host remembers of a Pod that it runs."""

    address: str
    process: ManagedProcess | None = None
    written: Containers | None = None
    """What the Pod's status says."""
    _kill_at: float | None = None
    _begun: bool = False
    _restarts: int = 0
    _exit_code: int | None = None
    _failure: str = ""
    _started_at: float = 0.0
    _ready: bool = False
    _probed_at: float = float("-inf")
    _back_off: BackOff = field(default_factory=BackOff)

    def tend(self, pod: JsonObject, run: Callable[[], ManagedProcess | None], now: float) -> Containers:
        """Start what is to be started and return how the containers are at `now` (monotonic seconds).

        `run` starts the Pod's process for the first time, and again after it raised.
        """
        policy = pod["spec"].get("restartPolicy", "Always")
        if not self._begun:
            self._begin(run, now)
        elif self.process is not None and not self.process.running:
            self._exit_code = self.process.returncode
            if policy == "Never" or (policy == "OnFailure" and self._exit_code == 0):
                return Containers(
                    running=False, ready=False, restarts=self._restarts, exit_code=self._exit_code, final=True
                )
            self._begin_again(self.process, now)
        running = self._begun and (self.process is None or self.process.running)
        return Containers(
            running=running,
            ready=running and self._is_ready(pod, now),
            restarts=self._restarts,
            exit_code=self._exit_code,
            failure=self._failure,
        )

    def has_ended(self, grace_seconds: float, now: float) -> bool:
        """SIGTERM at the first call, SIGKILL once the grace is over; True when no process is left."""
        if self.process is None or not self.process.running:
            return True
        if self._kill_at is None:
            self._kill_at = now + grace_seconds
            self.process.signal(signal.SIGTERM)
        elif now >= self._kill_at:
            self.process.kill()
            return True
        return False

    def _begin(self, run: Callable[[], ManagedProcess | None], now: float) -> None:
        if self._failure and not self._back_off.is_due(now):
            return
        self._back_off.started()
        try:
            self.process = run()
        except (ApiError, OSError, ProcessError, KeyError) as error:
            self._failure = f"{type(error).__name__}: {error}"
            self._back_off.ended(now, ran_seconds=0)
            return
        self._begun, self._failure, self._started_at = True, "", now

    def _begin_again(self, process: ManagedProcess, now: float) -> None:
        self._back_off.ended(now, now - self._started_at)
        self._ready, self._probed_at = False, float("-inf")
        if not self._back_off.is_due(now):
            return
        self._back_off.started()
        process.start()
        self._restarts += 1
        self._started_at = now

    def _is_ready(self, pod: JsonObject, now: float) -> bool:
        if now - self._probed_at >= PROBE_PERIOD_SECONDS:
            self._probed_at = now
            self._ready = self.process is None or readiness.passes(pod, self.address)
        return self._ready
