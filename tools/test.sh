#!/usr/bin/env bash
# Every test this machine can run, inside namespaces of its own; arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
exec python -m devcluster.sandbox --optional -- python -m pytest -n "${KVPOOL_TEST_WORKERS:-2}" --dist loadfile --max-worker-restart=0 --durations=15 "$@"
