"""Named points before and after each deciding write, at which a test may kill this process.

Without `KVPOOL_FAULT_POINT` in the environment every point is a no-op. With `before:BindSlot`, say, the
process kills itself with SIGKILL the first time it gets there: no clean-up runs, as in a real crash.
"""

import os
import signal
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "KVPOOL_FAULT_POINT"


@dataclass(frozen=True, slots=True)
class FaultPoints:
    """At most one armed point, such as `after:ClaimDevices`."""

    armed: str = ""

    @classmethod
    def from_environment(cls) -> "FaultPoints":
        """Read the armed point."""
        return cls(os.environ.get(VARIABLE, ""))

    def reach(self, moment: str, action: str) -> None:
        """Pass the point `<moment>:<action>`, or die there."""
        if self.armed and self.armed == f"{moment}:{action}":
            os.kill(os.getpid(), signal.SIGKILL)
