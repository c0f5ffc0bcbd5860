#!/usr/bin/env bash
# Fails when the committed protobuf code is not what the .proto files give.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/protobuf.sh "$fresh"
for folder in operator/kvpool/wire/v1alpha1 agents/kvpool_agent/kubelet demo/neighbours/kubelet; do
  diff --recursive --exclude=__init__.py --exclude=__pycache__ "$fresh/$folder" "$folder" \
    || { echo "run: make generate" >&2; exit 1; }
done
