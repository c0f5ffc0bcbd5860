"""Every period, deadline and bound of the agent, in one place."""

from __future__ import annotations

REPORT_SECONDS = 3.0
"""A Report is sent at least this often."""
REPORT_GAP_SECONDS = 0.1
"""Changes within this time share one Report."""
DEFAULT_TTL_SECONDS = 10.0
DEFAULT_MAX_SKEW_SECONDS = 1.0
SHORTEST_TTL_SECONDS, LONGEST_TTL_SECONDS = 0.1, 86_400.0
"""Terms beyond these make no sense: a shorter lease is renewed without rest, a longer one fences nobody."""
RENEWS_PER_TTL = 5
MOST_MISSED_GRANTS = 2
"""After so many unanswered Renews the stream is dialled anew.

In an outage every node has noticed it after (MOST_MISSED_GRANTS + 2) / RENEWS_PER_TTL of a lease, counted
from the first node's last Grant: before that node's lease ends and it needs its peers' words.
"""
DIAL_SECONDS = 3.0
"""From connecting to the operator's first answer."""
DIAL_SETTLE_SECONDS = 0.3
"""After the first Welcome, other addresses have so long to say whether they lead to the same operator."""
REDIAL_FIRST_SECONDS = 0.25
REDIAL_MOST_SECONDS = 2.0
STEADY_STREAM_SECONDS = 5.0
"""A stream that lived for so long is dialled anew at once."""
WRITE_SECONDS = 5.0
RESOLVE_SECONDS = 3.0
LEAVING_MS = 30_000

ENROL_SECONDS = 10.0
ENROL_AGAIN_SECONDS = 2.0
"""With a certificate at hand, dialling does not wait longer than this for a new one."""
ENROL_RETRY_FIRST_SECONDS = 0.5
ENROL_RETRY_MOST_SECONDS = 30.0
ENROL_AGAIN_AFTER_FAILED_DIALS = 4
"""A certificate that no operator accepts (its authority was replaced) is renewed after so many rounds."""

BIND_SECONDS = 0.25
VERIFY_SECONDS = 5.0
PREPARE_RETRY_SECONDS = 10.0
STEP_RETRY_SECONDS = 1.0
DEVICES_SECONDS = 0.15
SOURCES_SECONDS = 5.0
POD_RESOURCES_SECONDS = 1.0
"""How often kubelet is asked which pods hold devices."""
POD_RESOURCES_ANSWER_SECONDS = 2.0
POD_RESOURCES_RETRY_MOST_SECONDS = 8.0
PROBE_EVERY_SECONDS = 1.0
STAND_SECONDS = 0.1
ENGINE_WATCH_SECONDS = 0.2
ENGINE_LEASE_SECONDS = 1.0
REGISTER_SECONDS = 5.0
CONTENTS_LOST_SHOWN_SECONDS = 600.0

MOST_WITNESSES = 8
"""Peers of other boards that one node watches while it holds its lease."""
MOST_ENGINES = 64
MOST_UNPLANNED_SEATS = 32
"""Seats outside the plan that engines may say they serve: all are kept and reported until they ended."""
MOST_UNSENT = 64
MOST_RELEASED_SEATS = 256
MOST_FINDINGS = 8
MOST_EVIDENCE_WAITING = 256

LOCAL_API_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 1 << 20),
)
"""Of the server that engines register at; the channel to the operator has those of kvpool.wire.keepalive."""
