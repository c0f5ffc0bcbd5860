#!/usr/bin/env bash
# The chart on three real nodes, inside namespaces of their own; arguments go to pytest.
#
# Images are built before: inside there is no way to the network. As with the other tests, what fails is run once more
# alone, on new nodes, and named in the output: a fault fails again, a busy machine does not.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build

python -m devcluster.images >/dev/null || [ "${KVPOOL_STRICT:-}" != 1 ]

cache=build/e2e-cache
run() {
  python -m devcluster.sandbox --optional -- python -m pytest -p no:randomly -o cache_dir="$cache" --durations=10 "$@"
}
rm -rf "$cache"
run "${@:-tests/e2e}" && exit 0
[ -s "$cache/v/cache/lastfailed" ] || exit 1
failed=$(python -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$cache/v/cache/lastfailed")
echo "== $failed failed; once more, on new nodes"
run --last-failed --last-failed-no-failures none "${@:-tests/e2e}"
