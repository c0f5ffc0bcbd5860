#!/usr/bin/env bash
# Every test this machine can run, inside namespaces of its own; arguments go to pytest.
#
# Many of them watch real programs against deadlines. One that fails beside others is run once more alone: a fault
# fails again, a busy machine does not. What was run again is named in the output.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
said=build/test-first.log

run() { python -m devcluster.sandbox --optional -- python -m pytest --ignore=tests/e2e "$@"; }

run -n "${KVPOOL_TEST_WORKERS:-2}" --dist loadfile --max-worker-restart=0 --durations=15 "$@" 2>&1 | tee "$said" && exit 0
[ -s .pytest_cache/v/cache/lastfailed ] || exit 1
most=10
failed=$(python -c 'import json; print(len(json.load(open(".pytest_cache/v/cache/lastfailed"))))')
if [ "$failed" -gt "$most" ]; then
  echo "$failed tests failed, more than $most: not run again" >&2
  exit 1
fi
echo "== $failed failed beside others; once more, alone"
again=0
run --last-failed --last-failed-no-failures none -p no:randomly "$@" || again=$?
echo "== beside others:"
grep -aE '^(FAILED|ERROR) ' "$said" || true
exit "$again"
