#!/usr/bin/env bash
# The chart on three real nodes, inside namespaces of their own; arguments go to pytest.
#
# Images are built before: inside there is no way to the network.
set -euo pipefail
cd "$(dirname "$0")/.."

python -m devcluster.images >/dev/null || [ "${KVPOOL_STRICT:-}" != 1 ]
python -m devcluster.sandbox --optional -- python -m pytest -p no:randomly --durations=10 "${@:-tests/e2e}"
