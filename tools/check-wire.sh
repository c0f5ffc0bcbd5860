#!/usr/bin/env bash
# Fails when the committed protobuf code is not what the .proto files give.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
python -m grpc_tools.protoc -Iproto --python_out="$fresh" --grpc_python_out="$fresh" \
  --mypy_out="quiet:$fresh" --mypy_grpc_out="quiet:$fresh" proto/kvpool/wire/v1alpha1/*.proto
diff --recursive --exclude=__init__.py --exclude=__pycache__ "$fresh/kvpool/wire/v1alpha1" operator/kvpool/wire/v1alpha1 \
  || { echo "run: make generate" >&2; exit 1; }
