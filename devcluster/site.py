"""A control plane that real kubelets join: where it runs, and what its API server needs to serve them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devcluster.certificates import Authority

KUBELET_CLIENT = "kube-apiserver-kubelet-client"


@dataclass(frozen=True, slots=True)
class Site:
    """`address` is where the API server is served and reached.

    Every program's command line begins with `enter`, which leads into other namespaces. `eviction_seconds` is
    how long pods stay bound to a node that is silent or not ready.
    """

    address: str
    enter: Sequence[str]
    eviction_seconds: int = 300

    def apiserver_arguments(self, authority: Authority, admins: str) -> list[str]:
        """Nodes are authorised as such, and kubelets asked for logs, exec and port-forward by certificate."""
        certificate, key = authority.client(KUBELET_CLIENT, [admins])
        return [
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--kubelet-client-certificate={certificate}",
            f"--kubelet-client-key={key}",
            f"--kubelet-certificate-authority={authority.certificate}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--default-not-ready-toleration-seconds={self.eviction_seconds}",
            f"--default-unreachable-toleration-seconds={self.eviction_seconds}",
        ]
