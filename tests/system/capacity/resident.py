"""What a process occupies, as the kernel says."""

from __future__ import annotations

import re
from pathlib import Path

from devcluster.process import ManagedProcess

KILOBYTE = 1024


def resident_bytes(process: ManagedProcess, *, without_shared: bool = False) -> int:
    """RSS of a process in bytes; without the pages of tmpfs that it maps, when asked."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    fields = dict(re.findall(r"^(VmRSS|RssShmem):\s+(\d+) kB$", text, re.MULTILINE))
    shared = int(fields["RssShmem"]) if without_shared else 0
    return (int(fields["VmRSS"]) - shared) * KILOBYTE
