"""Build the images into the cache and print the archive's path: `python -m devcluster.images`."""

from __future__ import annotations

import sys

from devcluster.build import STOPPED
from devcluster.images.archive import archive
from devcluster.toolchain import BuildError


def main() -> int:
    """Exit status 1 with one message when something cannot be built."""
    try:
        print(archive())
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; layers that are built already stay in the cache", file=sys.stderr)
        return STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
