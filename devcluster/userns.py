"""What a person can do where no sandbox can be made: which settings of the kernel stand in the way."""

from __future__ import annotations

from pathlib import Path

SYSCTL = Path("/proc/sys")
FORBIDDING = {
    "user.max_user_namespaces": ("0", "65536"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""By setting: the value that forbids user namespaces to all but root, and one that allows them."""


def advice(sysctl: Path = SYSCTL) -> str:
    """Which settings to change, as a sentence; kernels differ in which of them they have."""
    wanted = [f"{name}={good}" for name, (bad, good) in FORBIDDING.items() if _value(sysctl, name) == bad]
    if wanted:
        return f"run as root, or allow user namespaces: `sysctl -w {' '.join(wanted)}`"
    return "run as root; in a container, in one that may make namespaces (docker and podman: --privileged)"


def _value(sysctl: Path, name: str) -> str | None:
    try:
        return sysctl.joinpath(*name.split(".")).read_text().strip()
    except OSError:
        return None
