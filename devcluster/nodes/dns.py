"""CoreDNS beside the control plane: names of Services and pods."""

from __future__ import annotations

from devcluster import recipe
from devcluster.controlplane import ADMINS, ControlPlane
from devcluster.kubeconfig import CONTEXT, write_kubeconfig
from devcluster.nodes.layout import CLUSTER_DOMAIN, CONTROL_PLANE_ADDRESS
from devcluster.nodes.member import Member
from devcluster.process import ManagedProcess

_COREFILE = """\
.:53 {{
    bind {address}
    ready 127.0.0.1:8181
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
{domain}:53 in-addr.arpa:53 {{
    bind {address}
    errors
    kubernetes {domain} in-addr.arpa {{
        kubeconfig {kubeconfig} {context}
        pods insecure
    }}
}}
"""
"""Other names do not exist. To refuse them would be taken for a broken server by gRPC's resolver."""


def start(member: Member, plane: ControlPlane) -> ManagedProcess:
    """Start CoreDNS; it answers when it has read the Services, which nobody needs to wait for."""
    user = plane.as_user("coredns", [ADMINS])
    kubeconfig = write_kubeconfig(member.folder / "coredns.kubeconfig", user.credentials)
    corefile = member.folder / "Corefile"
    corefile.write_text(
        _COREFILE.format(
            address=CONTROL_PLANE_ADDRESS, domain=CLUSTER_DOMAIN, kubeconfig=kubeconfig, context=CONTEXT
        )
    )
    return member.spawn("coredns", [recipe.binary("coredns"), f"-conf={corefile}"], processes=False)
