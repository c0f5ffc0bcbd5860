"""The scenario from an empty control plane to the summary; runs inside the sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from demo import binding, failing, observing, pausing, places, replaying, summary
from demo.cluster import Cluster
from demo.commands import Commands
from demo.deployment import Deployment
from demo.engines import NAMESPACE, OWN_SEGMENTS
from demo.forms import Form
from demo.load import LoadProcess, SentRequest
from demo.memory import footprints
from demo.moves import KVPOOL
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES
from demo.occupancy import occupancy
from demo.requests_told import Window, achieved_rate, count, failed, failures_after_zero
from demo.restarting import restart_agents
from demo.route_watch import RouteWatch
from demo.screen import Screen, size
from demo.starting import running_cluster
from demo.summary import Measured
from demo.takeover import routing_status, take_over

REQUESTS_PER_SECOND = 60.0
FEWEST_REQUESTS_PER_SECOND = 50.0
"""That must really have been sent: fewer would show less than the figures seem to say."""
QUIET_SECONDS = 1.0
"""Of load between two events, so that each has requests of its own around it."""
MOST_SECONDS = 120.0
TIMELINE_LINES = 30
NODES = {Form.NODES: "five real kubelets", Form.PROCESSES: "five simulated hosts"}
AFTER_REPLAY = "After the replay, by the kernel's and by Mooncake's account"


def run(form: Form, screen: Screen, hold: Callable[[], None]) -> None:
    """Run all steps; `hold` is called before everything is ended. Broken expectations are on the screen.

    Raises what the parts raise when one of them does not work at all.
    """
    measured = Measured(form=form.name_in_summary)
    commands = Commands(screen)
    with ExitStack() as parts:
        with screen.step("A control plane, five nodes, and an existing deployment"):
            screen.say(f"Starting etcd, API server, controllers, scheduler, and {NODES[form]} ...")
            cluster = parts.enter_context(running_cluster(form))
            screen.say("They are up. Starting a Mooncake master, engines, and Traefik as the gateway ...")
            deployment = parts.enter_context(cluster.existing_deployment())
            commands.kubectl("get", "pods", f"--namespace={NAMESPACE}", "--output=wide")
        trace = _look_first(screen, cluster, deployment, commands, measured)
        with screen.step("Enforce: memory for the store"):
            binding.bind(cluster, deployment, commands, screen)
        with screen.step("The same requests with kvpool's memory"):
            _replay_again(screen, cluster, deployment, trace, measured)
        _fail_under_load(screen, cluster, deployment, commands, measured)
        with screen.step("Every agent is killed; pause, resume, timeline"):
            lost_node = measured.failures[-1].move.remap["spec"]["from"][0]["node"]
            measured.objects_lost = restart_agents(cluster, deployment, screen, lost_node)
            pausing.pause_and_resume(cluster, commands, screen)
            commands.kvpool("timeline", "--since=2m", last_lines=TIMELINE_LINES)
        with screen.step("Summary"):
            _sum_up(screen, cluster, measured)
        hold()


def _look_first(
    screen: Screen, cluster: Cluster, deployment: Deployment, commands: Commands, measured: Measured
) -> replaying.Trace:
    with screen.step("Observe: kvpool looks at what is there"):
        since = observing.install_to_look(cluster, commands)
        observing.look(cluster, commands, OWN_SEGMENTS * SMALLEST_SEGMENT_BYTES)
    trace = replaying.trace_to_replay()
    with screen.step("The requests of a trace, with the engines' own memory only"):
        counts = replaying.replay(cluster, deployment, screen, trace, "before")
        measured.replay_requests, measured.hit_rate_before = counts.requests, counts.hit_rate
        measured.hit_rate_ceiling = trace.ceiling
        binding.show(screen, AFTER_REPLAY, occupancy(cluster, deployment.store))
    measured.foreign_writes = len(observing.foreign_writes(cluster, screen, since))
    return trace


def _replay_again(
    screen: Screen, cluster: Cluster, deployment: Deployment, trace: replaying.Trace, measured: Measured
) -> None:
    counts = replaying.replay(cluster, deployment, screen, trace, "after")
    before, after = measured.hit_rate_before or 0.0, counts.hit_rate
    measured.hit_rate_after = after
    binding.show(screen, AFTER_REPLAY, occupancy(cluster, deployment.store))
    screen.expect(
        after > before,
        f"hit rate {before:.4f} before, {after:.4f} after; with room for everything {trace.ceiling:.4f}",
    )


def _fail_under_load(
    screen: Screen, cluster: Cluster, deployment: Deployment, commands: Commands, measured: Measured
) -> None:
    load = LoadProcess(
        deployment.gateway_url, places.LOGS / "load.jsonl", requests_per_second=REQUESTS_PER_SECOND
    )
    load.start()
    try:
        with RouteWatch(cluster.plane.as_user("demo"), deployment.gateway_url) as watch:
            with screen.step("Enforce: kvpool's route takes over, under load"):
                take_over(cluster, commands, watch)
                measured.router = routing_status(cluster, screen)
                requests = load.so_far()
                screen.expect(not failed(requests), f"{failed(requests)} of {len(requests)} requests failed")
            with screen.step("An accelerator fails"):
                measured.failures.append(failing.fail_accelerator(cluster, watch, screen))
                time.sleep(QUIET_SECONDS)
            with screen.step("A whole host goes away"):
                measured.failures.append(failing.take_host_away(cluster, watch, screen))
                time.sleep(QUIET_SECONDS)
            commands.kubectl("get", "remaps", f"--namespace={NAMESPACE}")
    finally:
        requests = load.stop()
    _count_requests(screen, requests, measured)


def _count_requests(screen: Screen, requests: tuple[SentRequest, ...], measured: Measured) -> None:
    measured.sent, measured.failed = len(requests), failed(requests)
    rate = achieved_rate(requests)
    screen.expect(
        rate >= FEWEST_REQUESTS_PER_SECOND,
        f"{rate:.1f} requests/s were sent, {FEWEST_REQUESTS_PER_SECOND:.0f} at least",
    )
    ends = [*(failure.injection.monotonic for failure in measured.failures[1:]), float("inf")]
    for failure, end in zip(measured.failures, ends, strict=True):
        window = Window(failure.injection.monotonic, failure.zero_at, end)
        counts = count(requests, window)
        measured.windows.append(counts)
        for line in failures_after_zero(requests, window):
            screen.note(f"        {line}")
        screen.expect(
            counts.failed_after_zero == 0,
            f"{failure.injection.what}: {counts.sent} requests; of those sent before weight 0 "
            f"{counts.failed_before_zero} failed, of those sent after it {counts.failed_after_zero}",
        )


def _sum_up(screen: Screen, cluster: Cluster, measured: Measured) -> None:
    measured.pool = cluster.plane.admin.get(KVPOOL, "KVPool", "chat", NAMESPACE)
    measured.memory = footprints(cluster)
    for component in ("operator", "agent", "keeper"):
        mine = [one for one in measured.memory if one.component == component]
        if not mine:
            screen.expect(False, f"a Pod of the {component} runs")
            continue
        worst = max(mine, key=lambda one: one.resident_bytes - one.limit_bytes)
        screen.expect(
            worst.resident_bytes <= worst.limit_bytes,
            f"memory, {len(mine)} x {component}: {size(worst.resident_bytes)} of {size(worst.limit_bytes)}",
        )
    measured.seconds = screen.elapsed_seconds
    told = summary.summarise(measured)
    summary.write(told, places.SUMMARY)
    summary.show(screen, measured)
    acknowledged, revision = measured.router.get("acknowledged"), measured.router.get("revision")
    screen.expect(acknowledged == "Observed", f"revision {revision} of the weights is {acknowledged}")
    screen.say(f"Written to {places.SUMMARY}")
    _tell_time(screen, measured.seconds)


def _tell_time(screen: Screen, seconds: float) -> None:
    """Say how long it took, as the summary has it; too long is nobody's fault and breaks no expectation."""
    took = f"The demonstration took {seconds:.0f} s"
    if seconds > MOST_SECONDS:
        screen.note(f"{took}. On two cores with nothing else to do it is less than {MOST_SECONDS:.0f} s.")
    else:
        screen.say(f"{took}, of {MOST_SECONDS:.0f} s at most.")
