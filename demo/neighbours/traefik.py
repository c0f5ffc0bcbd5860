"""Traefik as a Gateway API data plane: its rights, its class and gateway, and the process itself."""

from __future__ import annotations

from pathlib import Path

import yaml

from devcluster.process import ManagedProcess
from devcluster.recipe import binary
from devcluster.rest import Api, JsonObject

CONTROLLER_NAME = "traefik.io/gateway-controller"
GATEWAY_API = "gateway.networking.k8s.io/v1"
ACCOUNT = "traefik"
CLASS = "traefik"
FIELD_MANAGER = "existing-deployment"
TOKEN_SECONDS = 24 * 3600
DIAL_SECONDS = 2
"""How long Traefik tries to reach an engine; its default of 30 s would hold requests for a dead host."""


class TraefikGateway:
    """One Gateway, `namespace`/`name`, served on `address`:`port`.

    `api` speaks as an administrator; Traefik itself gets a token of a ServiceAccount with its documented
    rights. `folder` takes its configuration (with the token, mode 0600) and log. `binary_path` None means
    the one that devcluster built.
    """

    def __init__(
        self,
        api: Api,
        folder: Path,
        *,
        address: str,
        port: int,
        namespace: str = "gateway",
        name: str = "edge",
        binary_path: Path | None = None,
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.url = f"http://{address}:{port}"
        self._api = api
        self._folder = folder
        self._address = address
        self._port = port
        self.process = ManagedProcess(
            "traefik",
            [binary_path or binary("traefik"), f"--configFile={folder / 'traefik.yaml'}"],
            folder / "traefik.log",
        )

    @property
    def parent_ref(self) -> JsonObject:
        """What an HTTPRoute names to be served by this gateway."""
        return {"name": self.name, "namespace": self.namespace}

    def start(self, *, deadline_seconds: float = 20.0) -> None:
        """Create the objects, start Traefik and wait until the Gateway is Programmed and the port open.

        Needs Gateway API's CRDs. Raises ApiError, ProcessError or TimeoutError.
        """
        for manifest in gateway_objects(self.namespace, self.name, self._port):
            self._api.apply(manifest, field_manager=FIELD_MANAGER)
        self._write_configuration()
        self.process.start()
        self.process.wait_for_port(self._port, self._address, deadline_seconds)
        self.process.wait_for(self._programmed, deadline_seconds, "to program the Gateway")

    def stop(self) -> None:
        """End Traefik; the objects stay."""
        self.process.terminate(3)

    def _programmed(self) -> bool:
        return is_programmed(self._api.get(GATEWAY_API, "Gateway", self.name, self.namespace))

    def _write_configuration(self) -> None:
        """Traefik's static configuration; a change of weights waits for no more than 100 ms."""
        credentials = self._api.credentials
        provider = {
            "endpoint": credentials.server,
            "token": self._token(),
            "certAuthFilePath": str(credentials.ca_file),
            "statusAddress": {"ip": self._address},
        }
        configuration = {
            "global": {"checkNewVersion": False, "sendAnonymousUsage": False},
            "log": {"level": "INFO"},
            "entryPoints": {"web": {"address": f"{self._address}:{self._port}"}},
            "serversTransport": {"forwardingTimeouts": {"dialTimeout": f"{DIAL_SECONDS}s"}},
            "providers": {"providersThrottleDuration": "100ms", "kubernetesGateway": provider},
        }
        path = self._folder / "traefik.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(configuration, sort_keys=False))

    def _token(self) -> str:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{ACCOUNT}/token"
        return str(self._api.call("POST", path, request)["status"]["token"])


def gateway_objects(namespace: str, name: str, port: int) -> tuple[JsonObject, ...]:
    """Traefik's rights, its class, and the Gateway `namespace`/`name` that listens on `port`."""
    gateway_class = {
        "apiVersion": GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": CLASS},
        "spec": {"controllerName": CONTROLLER_NAME},
    }
    listener = {
        "name": "web",
        "port": port,
        "protocol": "HTTP",
        "allowedRoutes": {"namespaces": {"from": "All"}},
    }
    gateway = {
        "apiVersion": GATEWAY_API,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gatewayClassName": CLASS, "listeners": [listener]},
    }
    return *_rights(namespace), gateway_class, gateway


def is_programmed(gateway: JsonObject) -> bool:
    """Whether the data plane says Accepted and Programmed for the Gateway's present generation."""
    conditions = gateway.get("status", {}).get("conditions", [])
    return _holds(gateway, conditions, "Accepted") and _holds(gateway, conditions, "Programmed")


def _holds(owner: JsonObject, conditions: list[JsonObject], kind: str) -> bool:
    """Whether the condition is True for the generation that `owner` has now."""
    generation = owner["metadata"]["generation"]
    return any(
        condition["type"] == kind
        and condition["status"] == "True"
        and condition.get("observedGeneration") == generation
        for condition in conditions
    )


def route_accepted(route: JsonObject) -> bool:
    """Whether every parent says Accepted and ResolvedRefs for the route's present generation.

    Traefik says so *before* its data plane follows: up to 0.2 s earlier with a throttle of 100 ms (measured).
    """
    parents = route.get("status", {}).get("parents", [])
    return bool(parents) and all(
        _holds(route, parent["conditions"], "Accepted")
        and _holds(route, parent["conditions"], "ResolvedRefs")
        for parent in parents
    )


def _rights(namespace: str) -> tuple[JsonObject, ...]:
    """Namespace, account and rights as Traefik's documentation lists them for Gateway API."""
    kinds = [
        "gatewayclasses",
        "gateways",
        "httproutes",
        "grpcroutes",
        "tcproutes",
        "tlsroutes",
        "referencegrants",
        "backendtlspolicies",
    ]
    group = "gateway.networking.k8s.io"
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["services", "secrets", "configmaps"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        {"apiGroups": [group], "resources": kinds, "verbs": read},
        {"apiGroups": [group], "resources": [f"{kind}/status" for kind in kinds], "verbs": ["update"]},
    ]
    rbac = "rbac.authorization.k8s.io/v1"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    named: JsonObject = {"name": ACCOUNT}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**named, "namespace": namespace}},
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": named, "rules": rules},
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "roleRef": role,
            "subjects": [subject],
        },
    )
