"""From a pod's token to a node's certificate: who asks, from which pod, on which node."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kvpool.fleet.access import ClusterAccess, TokenVerdict, UnavailableError
from kvpool.fleet.ca import Authority, BadRequestError, NodeCertificate, requested_key
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.fleet.settings import EnrolmentRules
from kvpool.fleet.token_reviews import TokenReviews
from kvpool.model.ids import ObjectKey

MAX_TOKEN_BYTES: Final = 16 << 10
NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_USER_PREFIX: Final = "system:serviceaccount:"
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"


@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """What an agent asks: a PEM signing request, its token, and the node it believes to be on."""

    csr_pem: bytes
    token: str
    node_name: str


class Enrolment:
    """Decides on enrolments. `clock` gives monotonic seconds, `wall` the time that goes into certificates."""

    def __init__(
        self,
        access: ClusterAccess,
        authority: Authority,
        rules: EnrolmentRules,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self._access = access
        self._authority = authority
        self._rules = rules
        self._reviews = TokenReviews(access, rules)
        self._clock = clock
        self._wall = wall

    @property
    def bundle_pem(self) -> bytes:
        """The authorities that agents shall trust."""
        return self._authority.certificate_pem

    async def enrol(self, request: EnrolmentRequest) -> NodeCertificate:
        """A certificate for the node of the token's pod. Raises RefusedError."""
        # Cheap checks come first: what is malformed costs the API server nothing.
        _check_shape(request)
        verdict = await self._reviews.verdict(request.token, self._clock())
        pod, uid = self._pod_of(verdict)
        await self._check_node(request.node_name, pod, uid, verdict)
        return self._authority.issue_node(request.csr_pem, request.node_name, self._wall())

    def _pod_of(self, verdict: TokenVerdict) -> tuple[ObjectKey, str]:
        """The pod a good token is bound to, and its UID."""
        if not verdict.authenticated:
            text = verdict.error or "it is expired, or was not issued by this cluster"
            raise RefusedError(Reason.TOKEN_REFUSED, f"the API server does not accept the token: {text}")
        if self._rules.audience not in verdict.audiences:
            text = f"the token is for audience {list(verdict.audiences)}, not {self._rules.audience!r}"
            raise RefusedError(Reason.WRONG_AUDIENCE, text)
        wanted = f"{_USER_PREFIX}{self._rules.service_account.namespace}:{self._rules.service_account.name}"
        if verdict.username != wanted:
            text = f"the token belongs to {verdict.username!r}, agents run as {wanted!r}"
            raise RefusedError(Reason.WRONG_SERVICE_ACCOUNT, text)
        name, uid = _claim(verdict, _POD_NAME), _claim(verdict, _POD_UID)
        if not name or not uid:
            text = "the token is not bound to a pod; use a projected serviceAccountToken volume"
            raise RefusedError(Reason.NOT_BOUND_TO_POD, text)
        return ObjectKey(self._rules.service_account.namespace, name), uid

    async def _check_node(self, node: str, pod: ObjectKey, uid: str, verdict: TokenVerdict) -> None:
        try:
            place = await self._access.find_pod(pod, uid)
        except UnavailableError as error:
            text = f"pod {pod} could not be looked up, try again later: {error}"
            raise RefusedError(Reason.API_UNAVAILABLE, text) from error
        if place is None:
            raise RefusedError(Reason.POD_GONE, f"pod {pod} with UID {uid} does not exist any more")
        # Tokens of older API servers, and those asked for before the pod was scheduled, do not name a node.
        claimed = _claim(verdict, _NODE_NAME) or place.node
        if not node == claimed == place.node:
            text = f"the request is for node {node!r}, but pod {pod} runs on {place.node!r}"
            if claimed != place.node:
                text += f" and its token names {claimed!r}"
            raise RefusedError(Reason.WRONG_NODE, text)


def _check_shape(request: EnrolmentRequest) -> None:
    if not NODE_NAME.fullmatch(request.node_name):
        text = f"node_name {request.node_name[:64]!r} is not a node name (lower-case DNS subdomain)"
        raise RefusedError(Reason.BAD_REQUEST, text)
    if not request.token:
        raise RefusedError(Reason.BAD_REQUEST, "token is empty; is the projected volume mounted?")
    if len(request.token) > MAX_TOKEN_BYTES:
        text = f"token has {len(request.token)} characters, at most {MAX_TOKEN_BYTES} are read"
        raise RefusedError(Reason.BAD_REQUEST, text)
    try:
        requested_key(request.csr_pem)
    except BadRequestError as error:
        raise RefusedError(Reason.BAD_REQUEST, f"csr_pem: {error}") from error


def _claim(verdict: TokenVerdict, key: str) -> str:
    values = verdict.extra.get(key, ())
    return values[0] if len(values) == 1 else ""
