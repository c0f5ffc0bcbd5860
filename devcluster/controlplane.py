"""etcd and kube-apiserver (and, on demand, controller-manager and scheduler), on loopback by default."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import yaml

from devcluster import manifests, recipe
from devcluster.audit import POLICY, AuditLog
from devcluster.certificates import Authority, service_account_keys
from devcluster.kubeconfig import write_kubeconfig
from devcluster.ports import free_ports
from devcluster.process import ManagedProcess, ProcessError
from devcluster.rest import Api, Credentials, JsonObject
from devcluster.site import Site

LOOPBACK = "127.0.0.1"
ISSUER = "https://kubernetes.default.svc"
SERVICE_ADDRESSES = "10.96.0.0/16"
ETCD_QUOTA_BYTES = 512 * 1024 * 1024
START_SECONDS = 60.0
STOP_SECONDS = 5.0
ADMINS = "system:masters"
QUICK_GRACE_SECONDS = 20  # a shorter grace is watched every second
ALONE = ["--authorization-mode=RBAC", "--endpoint-reconciler-type=none"]  # without kubelets
T = TypeVar("T")


class ControlPlane:
    """A throw-away control plane whose whole state lies in `folder`.

    `audit` writes every change, and what Pods read, to `audit.log` before it is answered. `controllers`
    and `scheduler` run those programs too; without controllers nothing creates the default ServiceAccount
    of a namespace (`create_namespace` does), collects garbage, or ends a namespace. `node_grace_seconds`
    is how long the controller-manager waits for a silent node. `port` fixes the API server's port, `hosts`
    are further names and addresses its certificate is good for. `start` after `stop` goes on with the data.
    With a `site` everything runs there instead of on loopback, and real kubelets may join.
    """

    def __init__(
        self,
        folder: Path,
        *,
        audit: bool = True,
        controllers: bool = False,
        scheduler: bool = False,
        node_grace_seconds: int = 40,
        port: int | None = None,
        hosts: Sequence[str] = (),
        site: Site | None = None,
    ) -> None:
        self.folder = folder
        self.kubeconfig = folder / "admin.kubeconfig"
        self.audit = AuditLog(folder / "audit.log")
        self._audited = audit
        self._with_controllers = controllers
        self._with_scheduler = scheduler
        self._node_grace_seconds = node_grace_seconds
        self._wanted_port = port
        self._hosts = hosts
        self._site = site
        self._address = site.address if site else LOOPBACK
        self._etcd: ManagedProcess | None = None
        self._apiserver: ManagedProcess | None = None
        self._others: list[ManagedProcess] = []
        self._authority: Authority | None = None
        self._credentials: Credentials | None = None
        self._clients: dict[str, Api] = {}

    # Life

    def start(self) -> ControlPlane:
        """Start everything and return when the API server is ready. Raises NotBuiltError or ProcessError."""
        if self._authority is None:
            self._prepare()
        _started(self._etcd).start()
        try:
            self.start_apiserver()
            if self._with_controllers:
                self._start_beside("kube-controller-manager", self._controller_arguments())
            if self._with_scheduler:
                self._start_beside("kube-scheduler", ["--leader-elect=false"])
        except BaseException:  # also when interrupted, nothing half started may stay; raised on
            self.stop()
            raise
        return self

    def _prepare(self) -> None:
        """Choose ports and write keys, certificates and the administrator's kubeconfig."""
        etcd_port, peer_port, free = free_ports(3)
        api_port = self._wanted_port or free
        authority = self._authority = Authority(self.folder / "pki")
        certificate, key = authority.client("devcluster-admin", [ADMINS])
        self._credentials = Credentials(self._address, api_port, authority.certificate, certificate, key)
        write_kubeconfig(self.kubeconfig, self._credentials)
        self._etcd = self._process("etcd", _etcd_arguments(self.folder / "etcd", etcd_port, peer_port))
        self._apiserver = self._process("kube-apiserver", self._apiserver_arguments(etcd_port, api_port))

    def stop(self) -> None:
        """End everything at once, API server before etcd."""
        for process in [*self._others, self._apiserver, self._etcd]:
            if process is not None:
                process.kill()
        self._others = []

    def start_apiserver(self) -> None:
        """Start the API server (again), on the same port and data, and wait until it is ready."""
        apiserver = _started(self._apiserver)
        if not apiserver.running:
            apiserver.start()
        apiserver.wait_for(self.healthy, START_SECONDS, "to answer /readyz")

    def stop_apiserver(self) -> None:
        """Stop the API server alone; etcd keeps the data."""
        if self._apiserver is not None:
            self._apiserver.terminate(STOP_SECONDS)

    def restart_controllers(self) -> None:
        """Start controllers and scheduler anew.

        After an outage of the API server some of their watches come back only a minute later: until then no
        Pod is made in the place of another.
        """
        for process in self._others:
            process.kill()
            process.start()

    def healthy(self) -> bool:
        """True when the API server says it is ready."""
        if self._apiserver is None or not self._apiserver.running:
            return False
        try:
            return self.admin.request("GET", "/readyz", timeout_seconds=2).ok
        except OSError:
            return False

    @property
    def pids(self) -> list[int]:
        """Process ids of everything that runs, in stopping order."""
        running = [*self._others, self._apiserver, self._etcd]
        return [process.pid for process in running if process is not None and process.running]

    def __enter__(self) -> ControlPlane:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Users

    @property
    def authority(self) -> Authority:
        """Signs for everybody in this cluster. Raises ProcessError before the first start."""
        return _started(self._authority)

    @property
    def credentials(self) -> Credentials:
        """The administrator's. Raises ProcessError before the first start."""
        return _started(self._credentials)

    @property
    def server(self) -> str:
        """`https://host:port` of the API server."""
        return self.credentials.server

    @property
    def admin(self) -> Api:
        """A client that may do everything, known to the audit log as `devcluster-admin`."""
        if "" not in self._clients:
            self._clients[""] = Api(self.credentials)
        return self._clients[""]

    def as_user(self, user: str, groups: Sequence[str] = (ADMINS,)) -> Api:
        """A client with a certificate of its own, to tell writers apart in the audit log."""
        key = "\0".join([user, *groups])
        if key not in self._clients:
            certificate, private = self.authority.client(user, groups)
            mine = self.credentials
            self._clients[key] = Api(Credentials(mine.host, mine.port, mine.ca_file, certificate, private))
        return self._clients[key]

    def with_token(self, token: str) -> Api:
        """A client that shows this bearer token."""
        mine = self.credentials
        return Api(Credentials(mine.host, mine.port, mine.ca_file, token=token))

    def token(
        self,
        namespace: str,
        service_account: str,
        audience: str | None = None,
        pod: JsonObject | None = None,
        seconds: int = 3600,
    ) -> str:
        """A fresh token by TokenRequest; `audience` None means the API server itself.

        `pod` (the object, with its UID) binds the token to that Pod. Raises ApiError.
        """
        spec: JsonObject = {"expirationSeconds": seconds}
        if audience is not None:
            spec["audiences"] = [audience]
        if pod is not None:
            meta = pod["metadata"]
            bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            spec["boundObjectRef"] = bound
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        return str(self.admin.call("POST", path, request)["status"]["token"])

    def service_account_kubeconfig(
        self, namespace: str, service_account: str, path: Path, pod: JsonObject | None = None
    ) -> Path:
        """Write a kubeconfig that speaks as a ServiceAccount, with a token for this API server."""
        token = self.token(namespace, service_account, pod=pod, seconds=24 * 3600)
        mine = self.credentials
        credentials = Credentials(mine.host, mine.port, mine.ca_file, token=token)
        return write_kubeconfig(path, credentials, namespace=namespace)

    # Contents

    def create_namespace(self, name: str) -> None:
        """Create a namespace in which Pods can be made at once (it has its default ServiceAccount)."""
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name},
        }
        self.admin.apply(account, field_manager="devcluster")

    def install_crds(self) -> None:
        """Install kvpool's own CRDs and wait until they are Established."""
        manifests.install_crds(self.admin, manifests.CRDS_FOLDER)

    def install_gateway_api(self) -> None:
        """Install Gateway API's standard CRDs and wait until they are Established. Raises NotBuiltError."""
        manifests.install_crds(self.admin, recipe.gateway_api_crds())

    # Arguments

    def _process(self, name: str, arguments: Sequence[str]) -> ManagedProcess:
        command: list[str | Path] = [
            *(self._site.enter if self._site else ()),
            recipe.binary(name),
            *arguments,
        ]
        return ManagedProcess(name, command, self.folder / f"{name}.log")

    def _apiserver_arguments(self, etcd_port: int, api_port: int) -> list[str]:
        authority = self.authority
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        addresses = dict.fromkeys([LOOPBACK, self._address, "10.96.0.1"])
        certificate, key = authority.serving("apiserver", [*names, *addresses, *self._hosts])
        public, private = service_account_keys(self.folder / "pki")
        arguments = [
            f"--etcd-servers=http://{LOOPBACK}:{etcd_port}",
            f"--bind-address={self._address}",
            f"--advertise-address={self._address}",
            f"--secure-port={api_port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={authority.certificate}",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            f"--service-account-issuer={ISSUER}",
            f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
            "--allow-privileged=true",
            "--profiling=false",
            *(self._site.apiserver_arguments(authority, ADMINS) if self._site else ALONE),
        ]
        if self._audited:
            policy = self.folder / "audit-policy.yaml"
            policy.write_text(yaml.safe_dump(POLICY))
            arguments += [
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit.path}",
                "--audit-log-mode=blocking",
            ]
        return arguments

    def _controller_arguments(self) -> list[str]:
        return [
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={self.folder / 'pki' / 'service-account.key'}",
            f"--root-ca-file={self.credentials.ca_file}",
            f"--node-monitor-grace-period={self._node_grace_seconds}s",
            f"--node-monitor-period={1 if self._node_grace_seconds < QUICK_GRACE_SECONDS else 2}s",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    def _start_beside(self, name: str, arguments: Sequence[str]) -> None:
        """Start a client of the API server under its usual user name, with all rights."""
        client = self.as_user(f"system:{name}")
        kubeconfig = write_kubeconfig(self.folder / f"{name}.kubeconfig", client.credentials)
        common = [f"--kubeconfig={kubeconfig}", "--secure-port=0"]
        self._others.append(self._process(name, [*common, *arguments]).start())


def _etcd_arguments(folder: Path, port: int, peer_port: int) -> list[str]:
    """etcd for throw-away use: no fsync, a small quota, no elections to wait for."""
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer_port}"
    return [
        f"--data-dir={folder}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync=true",
        f"--quota-backend-bytes={ETCD_QUOTA_BYTES}",
        "--log-level=warn",
    ]


def _started(part: T | None) -> T:
    """The part, which exists from the first start on."""
    if part is None:
        raise ProcessError("the control plane was never started")
    return part
