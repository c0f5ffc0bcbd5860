"""Transport security of both ports, and who is at the other end of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import grpc

from kvpool.fleet.ca import SPIFFE_PREFIX, Authority, KeyAndCertificate
from kvpool.fleet.enrolment import NODE_NAME
from kvpool.fleet.refusals import Reason, RefusedError


class ServerIdentity:
    """The operator's serving certificate, made anew in time; new connections get the newest one."""

    def __init__(self, authority: Authority, names: tuple[str, ...], wall: Callable[[], datetime]) -> None:
        self._authority = authority
        self._names = names
        self._wall = wall
        self._newest = authority.issue_server(names, wall())

    @property
    def current(self) -> KeyAndCertificate:
        """The certificate for connections that begin now."""
        now = self._wall()
        if now >= self._newest.renew_at:
            self._newest = self._authority.issue_server(self._names, now)
        return self._newest

    def enrolment_credentials(self) -> grpc.ServerCredentials:
        """Server TLS only: the client has no certificate yet."""
        return self._credentials(mutual=False)

    def agent_credentials(self) -> grpc.ServerCredentials:
        """Mutual TLS: only clients with a certificate of our authority finish the handshake."""
        return self._credentials(mutual=True)

    def _credentials(self, *, mutual: bool) -> grpc.ServerCredentials:
        def fetch() -> grpc.ServerCertificateConfiguration:  # called by gRPC for every new connection
            return self._configuration(mutual=mutual)

        return grpc.dynamic_ssl_server_credentials(fetch(), fetch, require_client_authentication=mutual)

    def _configuration(self, *, mutual: bool) -> grpc.ServerCertificateConfiguration:
        current = self.current
        roots = self._authority.certificate_pem if mutual else None
        pair = (current.key_pem, current.certificate_pem)
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=roots)


def peer_node(auth_context: Mapping[str, Iterable[bytes]]) -> str:
    """The node that the client's certificate names. Raises RefusedError: NO_CERTIFICATE.

    A certificate of our authority without a node (the operator's own) is none for this purpose.
    """
    names = [name.decode(errors="replace") for name in auth_context.get("peer_spiffe_id") or ()]
    node = names[0].removeprefix(SPIFFE_PREFIX) if len(names) == 1 else ""
    if len(names) != 1 or not names[0].startswith(SPIFFE_PREFIX) or not NODE_NAME.fullmatch(node):
        text = f"the client's certificate names no node ({SPIFFE_PREFIX}<name>); enrol first"
        raise RefusedError(Reason.NO_CERTIFICATE, text)
    return node
