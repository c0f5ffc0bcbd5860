"""The agent's command line; every flag can be given as an environment variable too."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """The command line, checked."""

    node_name: str
    pod_uid: str
    host_address: str
    state_dir: Path
    operator: str
    enroll: str
    token_file: Path
    ca_file: Path
    server_name: str
    local_socket: Path
    peer_port: int
    metrics_port: int
    kubelet_port: int
    devices: Path | None
    pod_name: str
    pod_resources: Path | None
    device_resources: tuple[str, ...]
    file_path: tuple[Path, ...]
    sysroot: Path
    tmpfs: Literal["auto", "privileged", "shm"]
    shared_memory: Path
    keeper_uid: int
    keeper_gid: int


def parse_arguments(arguments: list[str] | None = None) -> Settings:
    """Read flags, else the environment (`--node-name` is KVPOOL_NODE_NAME); ends with a message."""
    parser = argparse.ArgumentParser(prog="kvpool-agent", description="Binds, verifies and reports capacity.")
    _add(parser, "--node-name", required=True, help="name of the Kubernetes node")
    _add(parser, "--pod-uid", default="", help="UID of this agent's pod")
    _add(parser, "--host-address", default="127.0.0.1", help="address to listen on for peers and metrics")
    _add(parser, "--state-dir", type=Path, default=Path("/var/lib/kvpool"), help="what outlives the agent")
    _add(
        parser,
        "--operator",
        required=True,
        help="HOST:PORT of the operators; all addresses of HOST are dialled",
    )
    _add(parser, "--enroll", required=True, help="HOST:PORT of the enrolment service")
    _add(parser, "--token-file", type=Path, required=True, help="projected token, audience kvpool")
    _add(parser, "--ca-file", type=Path, required=True, help="authority of the enrolment service; waited for")
    _add(parser, "--server-name", default="", help="name in the operators' certificates; default is HOST")
    _add(parser, "--local-socket", type=Path, required=True, help="Unix socket where engines register")
    _add(parser, "--peer-port", type=int, default=9631, help="port where peers ask about this node's lease")
    _add(parser, "--metrics-port", type=int, default=9632, help="port of /metrics, /healthz and /readyz")
    _add(parser, "--kubelet-port", type=int, default=10250, help="port of the last probe of a peer's host")
    _add_devices(parser)
    _add(parser, "--file-path", type=_folders, default=(), help="folders for SSD units, separated by commas")
    _add(parser, "--sysroot", type=Path, default=Path("/sys"), help="where the kernel's /sys is mounted")
    _add(
        parser,
        "--tmpfs",
        choices=("auto", "privileged", "shm"),
        default="auto",
        help="mount a tmpfs for each unit, or use files on the shared-memory mount",
    )
    _add(
        parser,
        "--shared-memory",
        type=Path,
        default=Path("/dev/shm"),  # noqa: S108 - the machine's shared-memory mount is the point
        help="folder on a tmpfs, of this node alone, for --tmpfs shm",
    )
    _add(parser, "--keeper-uid", type=int, default=os.getuid(), help="user that keepers run as")
    _add(parser, "--keeper-gid", type=int, default=os.getgid(), help="group that keepers run as")
    options = Settings(**vars(parser.parse_args(arguments)))
    for flag, address in (("--operator", options.operator), ("--enroll", options.enroll)):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            parser.error(f"{flag} {address!r}: not HOST:PORT")
    _check_devices(parser, options)
    return options


def _add_devices(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--devices", type=_devices, default=None, help="accelerators: simulated:/path/of/file.json")
    _add(parser, "--pod-name", default="", help="namespace/name of this agent's pod")
    _add(
        parser,
        "--pod-resources",
        type=_socket,
        default=None,
        help="kubelet's socket that tells which pods hold devices",
    )
    _add(
        parser,
        "--device-resources",
        type=_names,
        default=(),
        help="extended resources whose device ids are those of --devices, separated by commas",
    )


def _check_devices(parser: argparse.ArgumentParser, options: Settings) -> None:
    """End with a message when kubelet is to be asked about devices and something for it is missing."""
    if options.pod_resources is not None:
        needed = {
            "--devices": options.devices,
            "--device-resources": options.device_resources,
            "--pod-name": options.pod_name,
        }
        missing = [flag for flag, value in needed.items() if not value]
        if missing:
            parser.error(f"--pod-resources {options.pod_resources} without {', '.join(missing)}")


def _add(parser: argparse.ArgumentParser, flag: str, **how: object) -> None:
    variable = "KVPOOL_" + flag.removeprefix("--").replace("-", "_").upper()
    if variable in os.environ:
        how["default"] = os.environ[variable]  # argparse converts a default that is a string
        how["required"] = False
    how["help"] = f"{how['help']} [{variable}]"
    parser.add_argument(flag, **how)  # type: ignore[arg-type] # the pairs above are argparse's own


def _devices(text: str) -> Path:
    kind, _, path = text.partition(":")
    if kind != "simulated" or not path:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not simulated:/path/of/file.json, the only provider yet"
        )
    return Path(path)


def _socket(text: str) -> Path | None:
    """Read a path; an empty one (of an environment variable) is none."""
    return Path(text) if text else None


def _names(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def _folders(text: str) -> tuple[Path, ...]:
    folders = tuple(Path(part) for part in text.split(",") if part)
    for folder in folders:
        if not folder.is_absolute():
            raise argparse.ArgumentTypeError(f"{folder} is not an absolute path")
    return folders
