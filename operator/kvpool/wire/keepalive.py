"""gRPC channel options that node and operator must agree on, or the server ends live connections.

A server that is pinged more often than it allows answers GOAWAY (`too_many_pings`), so both ends take their
numbers from here.
"""

from typing import Final

AGENT_PING_SECONDS: Final = 30
SERVER_PING_SECONDS: Final = 20
PING_TIMEOUT_SECONDS: Final = 10
LEAST_PING_INTERVAL_SECONDS: Final = 5
"""The server's tolerance for pings; well below what agents send."""

MAX_MESSAGE_BYTES: Final = 1 << 20
"""Largest Report or NodePlan; both are bounded far below by the list limits of the conversion."""
MAX_ENROLMENT_MESSAGE_BYTES: Final = 64 << 10

CONNECTION_AGE_SECONDS: Final = 6 * 3600
"""A connection ends after this (gRPC spreads it by a tenth), so that renewed certificates come into use."""
CONNECTION_AGE_GRACE_SECONDS: Final = 30

HANDSHAKE_SECONDS: Final = 10
"""How long a new connection may take to finish its TLS handshake."""
ENROLMENT_CONNECTION_SECONDS: Final = 10
ENROLMENT_GRACE_SECONDS: Final = 10
"""An enrolment takes seconds. Calls of clients that are not known yet and send nothing hold a place, and no
deadline of the service counts before the message is there: they end with their connection."""

_Options = tuple[tuple[str, int], ...]


def agent_channel_options() -> _Options:
    """Options of the agent's channel to an operator."""
    return (
        ("grpc.keepalive_time_ms", AGENT_PING_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    )


def agent_server_options() -> _Options:
    """Options of the operator's port for agent streams."""
    return (
        ("grpc.keepalive_time_ms", SERVER_PING_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
        ("grpc.http2.min_ping_interval_without_data_ms", LEAST_PING_INTERVAL_SECONDS * 1000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_connection_age_ms", CONNECTION_AGE_SECONDS * 1000),
        ("grpc.max_connection_age_grace_ms", CONNECTION_AGE_GRACE_SECONDS * 1000),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
        ("grpc.max_concurrent_streams", 8),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.so_reuseport", 0),
    )


def enrolment_server_options() -> _Options:
    """Options of the operator's port for enrolment: short calls from clients that are not known yet."""
    return (
        ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
        ("grpc.max_connection_idle_ms", ENROLMENT_CONNECTION_SECONDS * 1000),
        ("grpc.max_connection_age_ms", ENROLMENT_CONNECTION_SECONDS * 1000),
        ("grpc.max_connection_age_grace_ms", ENROLMENT_GRACE_SECONDS * 1000),
        ("grpc.max_concurrent_streams", 2),
        ("grpc.max_receive_message_length", MAX_ENROLMENT_MESSAGE_BYTES),
        ("grpc.so_reuseport", 0),
    )
