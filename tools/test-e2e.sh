#!/usr/bin/env bash
# The chart on three real nodes, inside namespaces of their own; arguments go to pytest.
#
# Images are built before, unless KVPOOL_IMAGES names some: inside there is no way to the network. As with the other
# tests, what fails is run once more alone, on new nodes, and named in the output: a fault fails again, a busy machine
# does not. More than a few failures are no accident, and end it.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build

python -m devcluster.images >/dev/null || [ "${KVPOOL_STRICT:-}" != 1 ]

most_again=3
most_seconds=600
cache=build/e2e-cache
run() {
  python -m devcluster.sandbox --optional -- python -m pytest -p no:randomly -o cache_dir="$cache" --durations=10 "$@"
}
# shellcheck disable=SC2329  # the trap calls it
tell_time() {
  echo "== the tests on real nodes took $SECONDS s, what was run again included; on two cores: $most_seconds s at most"
  [ "$SECONDS" -le "$most_seconds" ] || echo "== SLOW: more than $most_seconds s" >&2
}
rm -rf "$cache"
SECONDS=0
trap tell_time EXIT
said=build/e2e-first.log
run -o testpaths=tests/e2e "$@" 2>&1 | tee "$said" && exit 0
[ -s "$cache/v/cache/lastfailed" ] || exit 1
failed=$(python -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$cache/v/cache/lastfailed")
if [ "$failed" -gt "$most_again" ]; then
  echo "$failed tests failed, more than $most_again: not run again" >&2
  exit 1
fi
echo "== $failed failed; once more, on new nodes"
again=0
run -o testpaths=tests/e2e --last-failed --last-failed-no-failures none "$@" || again=$?
echo "== at first:"
grep -aE '^(FAILED|ERROR) ' "$said" || true
exit "$again"
