"""The files of a simulated host: where its paths lie, and a mount namespace in which they are its own.

With mounts of its own, the host's processes see `<folder>/mnt` as /mnt, and a boot id of the host; what they
mount there nobody else sees. Without, paths of the host are folders below `<folder>/root` for everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from devcluster.cache import CHECKOUT
from devcluster.process import ManagedProcess

MOUNTS = "/mnt"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
OPEN_SECONDS = 10.0
_SET_UP = 'mount --bind "$1" "$3" && mount --bind "$2" "$4" && echo ready && exec sleep infinity'


class HostFiles:
    """Paths of one host below `folder`; `own_mounts` needs the right to mount (a sandbox gives it)."""

    def __init__(self, folder: Path, *, own_mounts: bool) -> None:
        self._folder = folder.absolute()
        self._own_mounts = own_mounts
        boot_id = self._folder / "boot_id"
        arguments = [str(self._folder / "mnt"), str(boot_id), MOUNTS, BOOT_ID]
        self._boot_id = boot_id
        self._holder = ManagedProcess(
            "mounts",
            ["unshare", "--mount", "--propagation=private", "sh", "-c", _SET_UP, "sh", *arguments],
            self._folder / "mounts.log",
        )

    def open(self, boot_id: str) -> None:
        """Make the host's mounts, empty of what an earlier boot had mounted. Raises ProcessError."""
        if not self._own_mounts:
            return
        (self._folder / "mnt").mkdir(parents=True, exist_ok=True)
        self._boot_id.write_text(f"{boot_id}\n")
        self._holder.start()
        self._holder.wait_for_line("^ready", OPEN_SECONDS)

    def close(self) -> None:
        """Forget the mounts; they end with the last process that sees them."""
        self._holder.kill()

    def inner(self, path: str) -> str:
        """How the host's processes have to spell a path of the host."""
        return path if self._is_mounted(path) else str(self.outer(path))

    def outer(self, path: str) -> Path:
        """Where a path of the host lies for everybody, but for what the host mounted there."""
        if self._is_mounted(path):
            return self._folder / path.lstrip("/")
        return self._folder / "root" / path.lstrip("/")

    def seen(self, path: str) -> Path:
        """The path as the host's processes see it, mounts included, for others to read."""
        if self._own_mounts and self._holder.running:
            return Path(f"/proc/{self._holder.pid}/root") / self.inner(path).lstrip("/")
        return self.outer(path)

    def mounts(self) -> str:
        """Return the host's /proc/mounts. Raises OSError."""
        pid = str(self._holder.pid) if self._own_mounts and self._holder.running else "self"
        return Path(f"/proc/{pid}/mounts").read_text()

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        """Return what runs `argv` among the host's mounts, in the checkout's folder."""
        words = [str(word) for word in argv]
        if not self._own_mounts:
            return words
        entered = f"--mount=/proc/{self._holder.pid}/ns/mnt"
        return ["nsenter", entered, "--", "env", f"--chdir={CHECKOUT}", *words]

    def _is_mounted(self, path: str) -> bool:
        return self._own_mounts and Path(path).is_relative_to(MOUNTS)
