"""The operator's metrics: registered here and nowhere else; docs and alerts are checked against them."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class OperatorMetrics:
    """All series of one operator process. Labels come from bounded sets."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.is_leader = Gauge("kvpool_operator_is_leader", "1 on the leading replica.", registry=registry)
        self.operator_epoch = Gauge("kvpool_operator_epoch", "Epoch of this leadership.", registry=registry)
        self.build_info = Gauge(
            "kvpool_build_info", "Version of the program.", ["version"], registry=registry
        )
        self.reconcile_seconds = Histogram(
            "kvpool_reconcile_seconds",
            "Time of one planning step with its writes.",
            ["loop"],
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self.reconcile_total = Counter(
            "kvpool_reconcile_total", "Planning steps.", ["loop", "result"], registry=registry
        )
        self.loop_last_success = Gauge(
            "kvpool_loop_last_success_timestamp_seconds",
            "When a loop last finished a step.",
            ["loop"],
            registry=registry,
        )
        self.queue_depth = Gauge("kvpool_queue_depth", "Keys that are ready.", registry=registry)
        self.queue_oldest = Gauge(
            "kvpool_queue_oldest_age_seconds", "Age of the oldest ready key.", registry=registry
        )
        self.api_requests = Counter(
            "kvpool_api_requests_total",
            "Requests to the API server.",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self.actions = Counter(
            "kvpool_actions_total", "Decisions carried out.", ["action", "outcome"], registry=registry
        )
        self.malformed = Counter(
            "kvpool_malformed_objects_total",
            "Objects that could not be read and were left out.",
            ["kind"],
            registry=registry,
        )
        self.watch_age = Gauge(
            "kvpool_watch_last_event_age_seconds",
            "Age of the newest word from the API server, by resource.",
            ["resource"],
            registry=registry,
        )
        self.agents_connected = Gauge(
            "kvpool_agents_connected", "Agents with a live stream.", registry=registry
        )
        self.agent_messages = Counter(
            "kvpool_agent_messages_total",
            "Messages on agent streams.",
            ["direction", "message"],
            registry=registry,
        )
        self.agent_refused = Counter(
            "kvpool_agent_refused_total",
            "Agent streams and enrolments refused.",
            ["reason"],
            registry=registry,
        )
        self.pool_bytes = Gauge(
            "kvpool_pool_bytes",
            "Bytes of a pool's tier by state: declared, admitted, bound, used, foreign, unknown.",
            ["namespace", "pool", "tier", "state"],
            registry=registry,
        )
        self.pool_observed_at = Gauge(
            "kvpool_pool_observed_timestamp_seconds",
            "When the oldest figure behind a pool's bytes was taken.",
            ["namespace", "pool"],
            registry=registry,
        )
        self.bind_shortfall = Gauge(
            "kvpool_pool_bind_shortfall_bytes",
            "Admitted and not bound.",
            ["namespace", "pool", "tier"],
            registry=registry,
        )
        self.store_contents_lost = Counter(
            "kvpool_store_contents_lost_total",
            "Times a pool's store was seen to lose its objects.",
            ["namespace", "pool"],
            registry=registry,
        )
        self.slot_serving = Gauge(
            "kvpool_slot_serving",
            "1 when a slot has a weight above 0 in force.",
            ["namespace", "group", "slot"],
            registry=registry,
        )
        self.slot_bound = Gauge(
            "kvpool_slot_bound",
            "1 when a slot holds a seat.",
            ["namespace", "group", "slot"],
            registry=registry,
        )
        self.slot_weight = Gauge(
            "kvpool_slot_weight",
            "Weight asked for a slot.",
            ["namespace", "group", "slot"],
            registry=registry,
        )
        self.spares = Gauge(
            "kvpool_spares", "Spare devices by state.", ["supernode", "state"], registry=registry
        )
        self.devices = Gauge("kvpool_devices", "Devices by state.", ["supernode", "state"], registry=registry)
        self.remap_total = Counter(
            "kvpool_remap_total", "Finished moves.", ["kind", "result"], registry=registry
        )
        self.remap_stage_seconds = Histogram(
            "kvpool_remap_stage_seconds",
            "Time from the first evidence to the end of a stage.",
            ["stage"],
            buckets=(0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 12, 15, 20, 30, 60),
            registry=registry,
        )
        self.remap_blocked = Gauge(
            "kvpool_remap_blocked", "Moves that cannot go on, by reason.", ["reason"], registry=registry
        )
        self.route_revision = Gauge(
            "kvpool_route_revision",
            "Revision of the weights by state: asked, acknowledged.",
            ["namespace", "group", "output", "state"],
            registry=registry,
        )

    def fleet(self) -> "FleetCounters":
        """The part that the agent channel counts into."""
        return FleetCounters(self)


class FleetCounters:
    """Counts for :class:`kvpool.fleet.metrics.FleetMetrics`."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics

    def enrolled(self, outcome: str) -> None:
        """Count an enrolment."""
        if outcome == "Issued":
            self._metrics.agent_messages.labels("received", "enroll").inc()
        else:
            self._metrics.agent_refused.labels(outcome).inc()

    def received(self, message: str) -> None:
        """Count a message from an agent."""
        self._metrics.agent_messages.labels("received", message).inc()

    def refused(self, reason: str) -> None:
        """Count a refused stream."""
        self._metrics.agent_refused.labels(reason).inc()

    def sent(self, message: str) -> None:
        """Count a message to an agent."""
        self._metrics.agent_messages.labels("sent", message).inc()

    def superseded(self, message: str) -> None:
        """Count a message that was replaced before it was sent."""
        self._metrics.agent_messages.labels("superseded", message).inc()
