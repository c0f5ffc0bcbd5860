"""The operator's metrics: registered here and nowhere else; docs and alerts are checked against them."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class OperatorMetrics:
    """All series of one operator process, by what they are about. Labels come from bounded sets."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.process = ProcessSeries(registry)
        self.loops = LoopSeries(registry)
        self.api = ApiSeries(registry)
        self.agents = AgentSeries(registry)
        self.pools = PoolSeries(registry)
        self.slots = SlotSeries(registry)
        self.supernodes = SupernodeSeries(registry)
        self.moves = MoveSeries(registry)


class ProcessSeries:
    """Which program this is, and whether it leads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.is_leader = Gauge("kvpool_operator_is_leader", "1 on the leading replica.", registry=registry)
        self.operator_epoch = Gauge("kvpool_operator_epoch", "Epoch of this leadership.", registry=registry)
        self.build_info = Gauge(
            "kvpool_build_info", "Version of the program.", ["version"], registry=registry
        )


class LoopSeries:
    """How the planning loops and their queue go."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "kvpool_reconcile_seconds",
            "Time of one planning step with its writes.",
            ["loop"],
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self.total = Counter(
            "kvpool_reconcile_total", "Planning steps.", ["loop", "result"], registry=registry
        )
        self.last_success = Gauge(
            "kvpool_loop_last_success_timestamp_seconds",
            "When a loop last finished a step.",
            ["loop"],
            registry=registry,
        )
        self.queue_depth = Gauge("kvpool_queue_depth", "Keys that are ready.", registry=registry)
        self.queue_oldest = Gauge(
            "kvpool_queue_oldest_age_seconds", "Age of the oldest ready key.", registry=registry
        )


class ApiSeries:
    """What goes to the API server and what comes from it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
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


class AgentSeries:
    """What the agent channel counts; implements :class:`kvpool.fleet.metrics.FleetMetrics`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.connected = Gauge("kvpool_agents_connected", "Agents with a live stream.", registry=registry)
        self._messages = Counter(
            "kvpool_agent_messages_total",
            "Messages on agent streams.",
            ["direction", "message"],
            registry=registry,
        )
        self._refused = Counter(
            "kvpool_agent_refused_total",
            "Agent streams and enrolments refused.",
            ["reason"],
            registry=registry,
        )

    def enrolled(self, outcome: str) -> None:
        """Count an enrolment."""
        if outcome == "Issued":
            self._messages.labels("received", "enroll").inc()
        else:
            self._refused.labels(outcome).inc()

    def received(self, message: str) -> None:
        """Count a message from an agent."""
        self._messages.labels("received", message).inc()

    def refused(self, reason: str) -> None:
        """Count a refused stream."""
        self._refused.labels(reason).inc()

    def sent(self, message: str) -> None:
        """Count a message to an agent."""
        self._messages.labels("sent", message).inc()

    def superseded(self, message: str) -> None:
        """Count a message that was replaced before it was sent."""
        self._messages.labels("superseded", message).inc()


class PoolSeries:
    """What pools were promised, hold and lost."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.bytes = Gauge(
            "kvpool_pool_bytes",
            "Bytes of a pool's tier by state: declared, admitted, bound, used, foreign, unknown.",
            ["namespace", "pool", "tier", "state"],
            registry=registry,
        )
        self.observed_at = Gauge(
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
        self.sessions = Gauge(
            "kvpool_pool_sessions",
            "Sessions that the planner says fit into what a pool was admitted, by the limit that binds.",
            ["namespace", "pool", "limited_by"],
            registry=registry,
        )
        self.objects_lost = Gauge(
            "kvpool_pool_objects_lost",
            "1 while a pool's condition StoreContentsLost is True: all its objects, or a unit's, were lost.",
            ["namespace", "pool"],
            registry=registry,
        )
        self.contents_lost = Counter(
            "kvpool_store_contents_lost_total",
            "Times a pool's store was seen to lose all its objects.",
            ["namespace", "pool"],
            registry=registry,
        )


class SlotSeries:
    """Who serves, and which weights the outputs carry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.serving = Gauge(
            "kvpool_slot_serving",
            "1 when a slot has a weight above 0 in force.",
            ["namespace", "group", "slot"],
            registry=registry,
        )
        self.bound = Gauge(
            "kvpool_slot_bound",
            "1 when a slot holds a seat.",
            ["namespace", "group", "slot"],
            registry=registry,
        )
        self.weight = Gauge(
            "kvpool_slot_weight",
            "Weight asked for a slot.",
            ["namespace", "group", "slot"],
            registry=registry,
        )
        self.route_revision = Gauge(
            "kvpool_route_revision",
            "Revision of the weights by state: asked, acknowledged.",
            ["namespace", "group", "output", "state"],
            registry=registry,
        )


class SupernodeSeries:
    """What devices there are."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.spares = Gauge(
            "kvpool_spares", "Spare devices by state.", ["supernode", "state"], registry=registry
        )
        self.devices = Gauge("kvpool_devices", "Devices by state.", ["supernode", "state"], registry=registry)


class MoveSeries:
    """How moves of slots go."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.finished = Counter(
            "kvpool_remap_total", "Finished moves.", ["kind", "result"], registry=registry
        )
        self.stage_seconds = Histogram(
            "kvpool_remap_stage_seconds",
            "Time from the first evidence to the end of a stage.",
            ["stage"],
            buckets=(0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 12, 15, 20, 30, 60),
            registry=registry,
        )
        self.blocked = Gauge(
            "kvpool_remap_blocked", "Moves that cannot go on, by reason.", ["reason"], registry=registry
        )
