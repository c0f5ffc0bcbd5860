#!/usr/bin/env bash
# Writes again everything that is generated from something else; `make lint` fails when it differs.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/protobuf.sh .
python -m tools.crdgen
python -m tools.docs
cp alerts/alerts.yaml charts/kvpool/files/alerts.yaml
