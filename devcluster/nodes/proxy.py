"""kube-proxy in a member: Services reach their pods from there."""

from __future__ import annotations

import json
from pathlib import Path

from devcluster import recipe
from devcluster.controlplane import ControlPlane
from devcluster.kubeconfig import write_kubeconfig
from devcluster.nodes.layout import ALL_PODS, address
from devcluster.nodes.member import Member
from devcluster.process import ManagedProcess

USER = "system:kube-proxy"


def start(member: Member, plane: ControlPlane, node: str, processes: bool = True) -> ManagedProcess:
    """Start kube-proxy; endpoints on `node` count as local. `processes` is as `Member.enter` takes it."""
    kubeconfig = write_kubeconfig(
        member.folder / "kube-proxy.kubeconfig", plane.as_user(USER, []).credentials
    )
    config = member.folder / "kube-proxy.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "mode": "iptables",
                "clientConnection": {"kubeconfig": str(kubeconfig)},
                "hostnameOverride": node,
                "bindAddress": address(member.name),
                "clusterCIDR": ALL_PODS,
                "conntrack": {"maxPerCore": 0, "min": 0},
            }
        )
    )
    program: list[str | Path] = [recipe.binary("kube-proxy"), f"--config={config}"]
    return member.spawn("kube-proxy", program, processes=processes)
