"""Which pod a process is in, as its cgroup names it."""

from __future__ import annotations

import re
from pathlib import Path

_HEX = "[0-9a-f]"
_POD = re.compile(
    # kubelet's two drivers: kubepods/burstable/pod<uid> and kubepods-burstable-pod<uid with _>.slice
    rf"(?:kubepods-(?:[a-z]+-)?)?pod({_HEX}{{8}}(?:[-_]?{_HEX}{{4}}){{3}}[-_]?{_HEX}{{12}})(?:\.slice)?"
)


def pod_uid_in(cgroup: str) -> str:
    """Return the UID of the innermost pod that the content of /proc/PID/cgroup names; empty for none."""
    for line in cgroup.splitlines():
        for part in reversed(line.split(":", 2)[-1].split("/")):
            found = _POD.fullmatch(part)
            if found:
                return found[1].replace("_", "-")
    return ""


def pod_mismatch(pid: int, claimed_uid: str, proc: Path = Path("/proc")) -> str:
    """Say that a process is in another pod than it claims; empty when it is not, or in no pod that we see.

    Processes without pods, and those of the agent's own (which then is no proof of anything), may claim any.
    """
    try:
        found = pod_uid_in((proc / str(pid) / "cgroup").read_text(errors="replace"))
        own = pod_uid_in((proc / "self" / "cgroup").read_text(errors="replace"))
    except OSError:
        return ""  # gone, or of a pid namespace that cannot be seen
    if found in ("", own, claimed_uid):
        return ""
    return f"register.pod_uid is {claimed_uid!r}, but pid {pid} runs in pod {found!r}"
