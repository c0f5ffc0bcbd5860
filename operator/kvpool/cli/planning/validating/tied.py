"""A program that ends when the command that started it does, even when that is killed.

Linux sends a process the signal that it asked for (`PR_SET_PDEATHSIG` of prctl(2)) when its parent ends. To
ask is up to the process itself, and programs of others do not: a few lines ask, and become the program.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

_ASK_AND_BECOME: Final = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) or os.getppid() != int(sys.argv[1]):
    sys.exit("the command that wanted this has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


def tied(command: Sequence[str]) -> list[str]:
    """Return what to start for a command (a path and its arguments) that is to end with this process.

    It is to be started from a thread that stays: with its end the program's would come.
    """
    # -I, -S: nothing of this Python's surroundings is needed, and none is waited for.
    return [sys.executable, "-I", "-S", "-c", _ASK_AND_BECOME, str(os.getpid()), *command]
