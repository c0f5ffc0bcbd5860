#!/usr/bin/env bash
# Writes again everything that is generated from something else; `make lint` fails when it differs.
set -euo pipefail
cd "$(dirname "$0")/.."

python -m grpc_tools.protoc -Iproto --python_out=operator --grpc_python_out=operator \
  --mypy_out=operator --mypy_grpc_out=operator proto/kvpool/wire/v1alpha1/*.proto
python -m tools.crdgen
python -m tools.docs
cp alerts/alerts.yaml charts/kvpool/files/alerts.yaml
