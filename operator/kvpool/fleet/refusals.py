"""Why an agent is refused: a reason for metrics, a gRPC status for the agent, a sentence for people."""

from __future__ import annotations

from enum import Enum

import grpc


class Reason(Enum):
    """Every refusal: its name in metrics and the status the agent gets."""

    BAD_REQUEST = ("BadRequest", grpc.StatusCode.INVALID_ARGUMENT)
    TOKEN_REFUSED = ("TokenRefused", grpc.StatusCode.UNAUTHENTICATED)
    WRONG_AUDIENCE = ("WrongAudience", grpc.StatusCode.UNAUTHENTICATED)
    WRONG_SERVICE_ACCOUNT = ("WrongServiceAccount", grpc.StatusCode.PERMISSION_DENIED)
    NOT_BOUND_TO_POD = ("NotBoundToPod", grpc.StatusCode.PERMISSION_DENIED)
    POD_GONE = ("PodGone", grpc.StatusCode.PERMISSION_DENIED)
    WRONG_NODE = ("WrongNode", grpc.StatusCode.PERMISSION_DENIED)
    TOO_MANY = ("TooMany", grpc.StatusCode.RESOURCE_EXHAUSTED)
    API_UNAVAILABLE = ("ApiUnavailable", grpc.StatusCode.UNAVAILABLE)

    NO_CERTIFICATE = ("NoCertificate", grpc.StatusCode.UNAUTHENTICATED)
    MALFORMED = ("Malformed", grpc.StatusCode.INVALID_ARGUMENT)
    OLD_INCARNATION = ("OldIncarnation", grpc.StatusCode.FAILED_PRECONDITION)
    REPLACED = ("Replaced", grpc.StatusCode.ABORTED)
    SILENT = ("Silent", grpc.StatusCode.DEADLINE_EXCEEDED)
    FORGOTTEN = ("Forgotten", grpc.StatusCode.ABORTED)

    def __init__(self, label: str, status: grpc.StatusCode) -> None:
        self.label = label
        self.status = status


class RefusedError(Exception):
    """An agent is refused; `str()` is for the people who read the agent's log."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
