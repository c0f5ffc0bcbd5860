"""What the operator is told at start: flags, each with an environment variable of the same name."""

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvpool.api.common import Mode


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the composition root needs."""

    kubeconfig: Path | None
    namespace: str
    identity: str
    mode_cap: Mode
    lease_name: str
    listen_address: str
    agent_port: int
    enrolment_port: int
    metrics_port: int
    server_names: tuple[str, ...]
    agent_service_account: str
    keeper_image: str
    keeper_service_account: str
    keeper_user_id: int
    keeper_cpu: str
    keeper_priority_class: str
    host_units_folder: str
    shared_memory_folder: str


def parse_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read flags, then `KVPOOL_*` variables, then defaults. Exits with a message on nonsense."""
    parser = argparse.ArgumentParser(
        prog="kvpool-operator", description="Kubernetes operator for the KV-cache memory of AI supernodes."
    )

    def flag(name: str, default: str, text: str) -> None:
        variable = f"KVPOOL_{name.upper().replace('-', '_')}"
        parser.add_argument(
            f"--{name}", default=os.environ.get(variable, default), help=f"{text} ({variable})"
        )

    flag("kubeconfig", os.environ.get("KUBECONFIG", ""), "kubeconfig file; empty: the pod's ServiceAccount")
    flag("namespace", "kvpool-system", "namespace of the operator")
    flag("identity", f"{socket.gethostname()}-{os.getpid()}", "name of this process in the leader Lease")
    flag("mode", Mode.OBSERVE.value, "cap on every object's mode: Observe, Recommend or Enforce")
    flag("lease-name", "kvpool-operator", "name of the leader Lease")
    flag("listen-address", "0.0.0.0", "address to listen on")  # noqa: S104 - agents dial in from every node
    flag("agent-port", "8443", "port for agent streams")
    flag("enrolment-port", "8444", "port for enrolment")
    flag("metrics-port", "8080", "port for /metrics, /healthz and /readyz")
    flag("server-names", "kvpool-agents", "names and addresses in the server certificate, comma separated")
    flag("agent-service-account", "kvpool-agent", "ServiceAccount of the agents")
    flag("keeper-image", "kvpool-keeper", "image of keeper pods")
    flag("keeper-service-account", "kvpool-keeper", "ServiceAccount of keeper pods")
    flag("keeper-user-id", "65532", "user that keeper pods run as")
    flag("keeper-cpu", "500m", "processors that each keeper pod requests and is limited to")
    flag("keeper-priority-class", "", "priority class of keeper pods; empty: the cluster's default")
    flag("host-units-folder", "/var/lib/kvpool/units", "folder of the agents' units on the hosts")
    flag("shared-memory-folder", "", "folder of memory units on the hosts where agents may not mount")
    given = parser.parse_args(arguments)
    try:
        mode_cap = Mode(given.mode)
        ports = [int(given.agent_port), int(given.enrolment_port), int(given.metrics_port)]
        keeper_user_id = int(given.keeper_user_id)
    except ValueError as error:
        parser.error(str(error))
    return Settings(
        kubeconfig=Path(given.kubeconfig) if given.kubeconfig else None,
        namespace=given.namespace,
        identity=given.identity,
        mode_cap=mode_cap,
        lease_name=given.lease_name,
        listen_address=given.listen_address,
        agent_port=ports[0],
        enrolment_port=ports[1],
        metrics_port=ports[2],
        server_names=tuple(name.strip() for name in given.server_names.split(",") if name.strip()),
        agent_service_account=given.agent_service_account,
        keeper_image=given.keeper_image,
        keeper_service_account=given.keeper_service_account,
        keeper_user_id=keeper_user_id,
        keeper_cpu=given.keeper_cpu,
        keeper_priority_class=given.keeper_priority_class,
        host_units_folder=given.host_units_folder,
        shared_memory_folder=given.shared_memory_folder,
    )
