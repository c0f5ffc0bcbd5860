#!/usr/bin/env bash
# Every check that runs no product code. Each line says what it is; the first failure ends it.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\033[1m== %s\033[0m\n' "$*"; "$@"; }

step ruff check .
step ruff format --check .
step mypy
step mypy devcluster demo tools tests benchmarks
step lint-imports --no-cache
step codespell
step yamllint --strict .
step shellcheck tools/*.sh .ci/run
step python -m tools.crdgen --check
step python -m tools.docs --check
step tools/check-wire.sh
step diff alerts/alerts.yaml charts/kvpool/files/alerts.yaml
python -m devcluster.build helm
step "$(python -c 'from devcluster import recipe; print(recipe.binary("helm"))')" lint --strict charts/kvpool
