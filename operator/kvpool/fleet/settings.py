"""What the agent channel is told at start."""

from dataclasses import dataclass

from kvpool.api.labels import AGENT_AUDIENCE
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import LeaseTerms

DEFAULT_AGENT_PORT = 8443
DEFAULT_ENROLMENT_PORT = 8444
DEFAULT_LEASE = LeaseTerms(duration_seconds=10.0, max_skew_seconds=1.0, strict=False)


@dataclass(frozen=True, slots=True)
class EnrolmentRules:
    """Who may have a certificate, and how often the API server is asked about it."""

    service_account: ObjectKey
    """The agents' ServiceAccount."""
    audience: str = AGENT_AUDIENCE
    review_cache_seconds: float = 10.0
    reviews_per_second: float = 50.0
    """Mean rate of TokenReviews; enrolments beyond it are answered RESOURCE_EXHAUSTED."""
    reviews_burst: int = 200


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Where to listen, under which names, and where the authority is kept.

    `server_names` are DNS names and addresses of the server certificate. Port 0 takes any free port.
    """

    namespace: str
    server_names: tuple[str, ...]
    enrolment: EnrolmentRules
    listen_address: str = "[::]"
    agent_port: int = DEFAULT_AGENT_PORT
    enrolment_port: int = DEFAULT_ENROLMENT_PORT
    default_lease: LeaseTerms = DEFAULT_LEASE
    """Of nodes that have no plan yet."""
    ca_secret: str = "kvpool-ca"  # noqa: S105 - the name of a Secret, not a secret
    ca_config_map: str = "kvpool-ca"
