#!/bin/sh
# Writes src/cri/gen from src/cri/*.proto. Needs Debian's protobuf-compiler; protoc-gen-es comes from node_modules.
set -eu
cd "$(dirname "$0")/.."
command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler" >&2; exit 1; }
rm -rf src/cri/gen
mkdir -p src/cri/gen
protoc --plugin=node_modules/.bin/protoc-gen-es --es_out=src/cri/gen --es_opt=target=ts,import_extension=ts \
  --proto_path=src/cri src/cri/cri.proto src/cri/containerd.proto src/cri/containerd_content.proto src/cri/containerd_images.proto
