#!/usr/bin/env bash
# Writes requirements/*.lock again: exact versions with hashes and without addresses.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${KVPOOL_CACHE:-.cache}/uv"
[ -x "$cache/bin/uv" ] || { python3 -m venv "$cache" && "$cache/bin/pip" install --quiet uv; }
compile() { "$cache/bin/uv" pip compile --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet "$@"; }

compile pyproject.toml --all-extras --group dev -o requirements/dev.lock
for extra in operator agent keeper; do
  compile pyproject.toml --extra "$extra" -o "requirements/$extra.lock"
done
printf 'hatchling>=1.27\n' | compile --no-annotate -o requirements/build.lock -
