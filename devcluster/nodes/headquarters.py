"""The member `cp`: control plane, CoreDNS and a kube-proxy for the clients beside the cluster."""

from __future__ import annotations

from pathlib import Path

from devcluster.controlplane import ControlPlane
from devcluster.nodes import cabling, dns, proxy
from devcluster.nodes.layout import API_PORT, CONTROL_PLANE, CONTROL_PLANE_ADDRESS, RUN_FOLDER
from devcluster.nodes.member import Member
from devcluster.nodes.settings import ClusterSettings
from devcluster.site import Site

DEFAULT_GRACE_SECONDS = 40


class Headquarters:
    """The control plane in namespaces of its own; it is no Node."""

    def __init__(self, folder: Path, settings: ClusterSettings) -> None:
        self.member = Member(CONTROL_PLANE, folder)
        self._folder = folder
        self._settings = settings
        self._plane: ControlPlane | None = None

    @property
    def plane(self) -> ControlPlane:
        """The control plane. Raises RuntimeError before `start`."""
        if self._plane is None:
            raise RuntimeError("the control plane was never started")
        return self._plane

    def start(self) -> None:
        """Start everything and return when the API server is ready. Raises NotBuiltError or ProcessError."""
        self.member.start(memory={RUN_FOLDER: "mode=755"}, settings=cabling.FORWARDING)
        cabling.plug(self.member)
        self._plane = ControlPlane(
            self._folder / "plane",
            controllers=True,
            scheduler=True,
            node_grace_seconds=self._settings.node_grace_seconds or DEFAULT_GRACE_SECONDS,
            port=API_PORT,
            site=Site(
                CONTROL_PLANE_ADDRESS, self.member.enter(processes=False), self._settings.eviction_seconds
            ),
        ).start()
        dns.start(self.member, self._plane)
        # It waits for a Node object; as there is none for this member, it borrows the name of the first.
        proxy.start(self.member, self._plane, "node1", processes=False)

    def stop(self) -> None:
        """End everything."""
        try:
            if self._plane is not None:
                self._plane.stop()
        finally:
            self.member.kill()
