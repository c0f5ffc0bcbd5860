"""A shell inside a demonstration that KEEP=1 left running: `python -m demo.shell [--stop]`."""

from __future__ import annotations

import argparse
import os
import sys

from demo import commands, places, stopping
from devcluster import sandbox
from devcluster.nodes.cgroups import CgroupError


def main() -> int:
    """Enter, with kubectl, helm and the kvpool plugin ready; or end the demonstration."""
    parser = argparse.ArgumentParser(prog="python -m demo.shell", description=__doc__)
    parser.add_argument("--stop", action="store_true", help="end the demonstration")
    parser.add_argument("command", nargs="*", help="what to run instead of a shell")
    options = parser.parse_args()
    try:
        if options.stop:
            stopping.stop()
            print("Nothing of a demonstration is left running here.")
            return 0
        os.environ.update(commands.environment())
        os.environ["PS1"] = "kvpool demo \\w $ "
        sandbox.enter(places.PIDFILE, options.command or ["bash", "--norc", "-i"])
    except sandbox.SandboxError as error:
        print(f"demo: {error}: start one with `make demo KEEP=1`", file=sys.stderr)
        return sandbox.IMPOSSIBLE
    except CgroupError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
