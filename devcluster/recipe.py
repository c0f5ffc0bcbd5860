"""What is built, by which commands, and where each result lives in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster.cache import MODULES, keyed_folder

KUBERNETES_VERSION = "v1.37.2"
GO_FLAGS = "-modcacherw -mod=readonly -buildvcs=false"
_VERSION = "k8s.io/component-base/version."
_KUBERNETES_LDFLAGS = (
    f"-s -w -X {_VERSION}gitVersion={KUBERNETES_VERSION} -X {_VERSION}gitMajor=1 -X {_VERSION}gitMinor=37"
)


class NotBuiltError(Exception):
    """A part is not in the cache; the message says which command puts it there."""


@dataclass(frozen=True, slots=True)
class GoCommand:
    """One `go build`: packages compiled into the bin folder, or a single one under another name."""

    packages: Sequence[str]
    ldflags: str
    output: str = ""

    @property
    def binaries(self) -> list[str]:
        """File names this command makes."""
        return [self.output] if self.output else [package.rsplit("/", 1)[1] for package in self.packages]


@dataclass(frozen=True, slots=True)
class Part:
    """A separately built and separately keyed piece; `lock_files` are what its key is made of."""

    name: str
    module: Path
    lock_files: Sequence[Path]
    commands: Sequence[GoCommand]
    binaries: Sequence[str]
    folders: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        """The keyed folder; it exists only when the part was built completely."""
        recipe = [GO_FLAGS]
        for command in self.commands:
            recipe += [*command.packages, command.ldflags, command.output]
        return keyed_folder(self.name, self.lock_files, recipe)

    @property
    def built(self) -> bool:
        """True when every binary and every folder of it is there."""
        wanted = [*(f"bin/{binary}" for binary in self.binaries), *self.folders]
        return all((self.folder / path).exists() for path in wanted)


def _go_part(name: str, module: Path, commands: Sequence[GoCommand], folders: Sequence[str] = ()) -> Part:
    binaries = [binary for command in commands for binary in command.binaries]
    return Part(name, module, [module / "go.mod", module / "go.sum"], commands, binaries, folders)


CONTROL_PLANE = _go_part(
    "control-plane",
    MODULES,
    [
        GoCommand(
            [
                "k8s.io/kubernetes/cmd/kube-apiserver",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-scheduler",
                "k8s.io/kubernetes/cmd/kubectl",
            ],
            _KUBERNETES_LDFLAGS,
        ),
        GoCommand(["go.etcd.io/etcd/server/v3"], "-s -w", output="etcd"),
    ],
)
# A module of its own, with the versions of the control plane's: one build cache serves both.
NODE = _go_part(
    "node",
    MODULES / "kubelet",
    [
        GoCommand(
            ["k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"],
            _KUBERNETES_LDFLAGS,
        )
    ],
)
COREDNS = Part(
    "coredns",
    MODULES / "coredns",
    [MODULES / "coredns" / name for name in ("go.mod", "go.sum", "main.go")],
    [GoCommand(["."], "-s -w", output="coredns")],
    ["coredns"],
)
PAUSE = Part(
    "pause",
    MODULES / "images" / "pause",
    [MODULES / "images" / "pause" / name for name in ("go.mod", "main.go")],
    [GoCommand(["."], "-s -w", output="pause")],
    ["pause"],
)
TRAEFIK = _go_part(
    "traefik",
    MODULES / "traefik",
    [GoCommand(["github.com/traefik/traefik/v3/cmd/traefik"], "-s -w", output="traefik")],
)
GATEWAY_API_MODULE = "sigs.k8s.io/gateway-api"
GATEWAY_API = _go_part("gateway-api", MODULES, [], folders=["crds"])
HELM = Part("helm", MODULES, [MODULES / "helm.lock"], [], ["helm"])
PARTS = {part.name: part for part in (HELM, GATEWAY_API, CONTROL_PLANE, NODE, COREDNS, PAUSE, TRAEFIK)}


def binary(name: str) -> Path:
    """Path of a built program. Raises NotBuiltError."""
    for part in PARTS.values():
        if name in part.binaries:
            if not part.built:
                raise NotBuiltError(f"{name} is not built yet: run `python -m devcluster.build {part.name}`")
            return part.folder / "bin" / name
    raise NotBuiltError(f"{name} is none of the programs devcluster builds")


def gateway_api_crds() -> Path:
    """Folder with Gateway API's standard CRDs. Raises NotBuiltError."""
    if not GATEWAY_API.built:
        raise NotBuiltError("Gateway API's CRDs are missing: run `python -m devcluster.build gateway-api`")
    return GATEWAY_API.folder / "crds"
