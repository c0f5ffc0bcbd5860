"""The bridge in the sandbox, the cables from it to the members, and cutting them."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from devcluster.nodes.layout import (
    BRIDGE,
    CONTROL_PLANE_ADDRESS,
    NETWORK_BITS,
    SERVICE_ADDRESSES,
    SWITCH_ADDRESS,
    address,
    hardware_address,
    pod_addresses,
    pod_routes,
)
from devcluster.nodes.member import Member

COMMAND_SECONDS = 10
MEMBER_END = "eth0"
FORWARDING = {"net.ipv4.ip_forward": "1"}


class CablingError(Exception):
    """A link, address or rule cannot be set; the message has the program's own words."""


def bridge_exists() -> bool:
    """True when a cluster runs in this sandbox, or is being started or stopped."""
    return BRIDGE in (name for _, name in socket.if_nameindex())


def build_bridge() -> None:
    """Make the bridge and the routes that let clients reach pods and Services. Raises CablingError."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    _ip(
        [
            f"link add {BRIDGE} type bridge",
            f"address add {SWITCH_ADDRESS}/{NETWORK_BITS} dev {BRIDGE}",
            f"link set {BRIDGE} up",
            *pod_routes(),
            # Clients reach Services through the control plane's kube-proxy.
            f"route add {SERVICE_ADDRESSES} via {CONTROL_PLANE_ADDRESS}",
        ]
    )


def remove_bridge(members: Iterable[str]) -> None:
    """Remove the bridge with its routes and every cable; what is not there is fine. Raises CablingError."""
    for link in (*members, BRIDGE):
        _quietly(["ip", "link", "delete", link])


def plug(member: Member) -> None:
    """Lay a new cable to a member and give it its address and routes. Raises CablingError."""
    name = member.name
    _quietly(["ip", "link", "delete", name])  # of a former life: the kernel takes it away some time later
    hardware = hardware_address(name)
    _ip(
        [
            f"link add {name} type veth peer name {MEMBER_END} address {hardware} netns {member.pid}",
            f"link set {name} master {BRIDGE} up",
        ]
    )
    _ip(
        [
            f"address add {address(name)}/{NETWORK_BITS} dev {MEMBER_END}",
            f"link set {MEMBER_END} up",
            f"route add default via {SWITCH_ADDRESS}",
            *pod_routes(but=name),
        ],
        member.enter(processes=False),
    )


def cut(name: str) -> None:
    """Pull a member's cable: nothing goes in or out, and nobody is told. Raises CablingError."""
    _ip([f"link set {name} down"])


def mend(name: str) -> None:
    """Put the cable in again. Raises CablingError."""
    _ip([f"link set {name} up"])


def drop_at(member: Member, name: str) -> None:
    """Let `member` drop all that comes from a node and its pods. Raises CablingError."""
    for rule in _drop_rules(name):
        _checked([*member.enter(), "iptables", "--wait", "--insert", *rule])


def admit_at(member: Member, name: str) -> None:
    """Undo `drop_at`, however often it was done. Raises CablingError."""
    for rule in _drop_rules(name):
        while _quietly([*member.enter(), "iptables", "--wait", "--delete", *rule]):
            pass


def _drop_rules(name: str) -> list[list[str]]:
    sources = (address(name), pod_addresses(name))
    return [["INPUT", "--source", source, "--jump", "DROP"] for source in sources]


def _ip(lines: Sequence[str], enter: Sequence[str] = ()) -> None:
    _checked([*enter, "ip", "-batch", "-"], "\n".join(lines) + "\n")


def _checked(command: Sequence[str], input_text: str = "") -> None:
    result = _ended(command, input_text)
    if result.returncode != 0:
        raise CablingError(f"`{' '.join(command)}`: {result.stderr.strip()}\n{input_text}".rstrip())


def _quietly(command: Sequence[str]) -> bool:
    return _ended(command).returncode == 0


def _ended(command: Sequence[str], input_text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises CablingError when it has none in time."""
    try:
        return subprocess.run(
            command, input=input_text, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CablingError(f"`{' '.join(command)}`: no end after {COMMAND_SECONDS} s") from error
