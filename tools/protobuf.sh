#!/usr/bin/env bash
# Writes the code made from the .proto files below the folder $1, as it lies below the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

into=$1

# compile OUT FILE... [-I...]: protobuf and gRPC code with their types.
compile() {
  local out=$into/$1
  shift
  mkdir -p "$out"
  python -m grpc_tools.protoc --python_out="$out" --grpc_python_out="$out" \
    --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" "$@"
}

compile operator -Iproto proto/kvpool/wire/v1alpha1/*.proto
# The files of kubelet's APIs name no folder of ours, so they are given the place of their code.
compile agents -Ikvpool_agent/kubelet=proto/kubelet proto/kubelet/podresources.proto
compile . -Idemo/neighbours/kubelet=proto/kubelet proto/kubelet/deviceplugin.proto
