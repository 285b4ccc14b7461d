#!/usr/bin/env bash
# The checks and figures of a machine with an NVIDIA GPU.
#
#   ci/gpu.sh          builds the program and runs it; `skipped: …` and exit status 77 where there is no GPU
#   ci/gpu.sh build    builds it only, to be carried to a machine that has no Rust: target/gpu/
#   ci/gpu.sh run      runs what was built, which needs the NVIDIA driver and a C library, and takes under four minutes
#   ci/gpu.sh twin     runs it on the CUDA driver for tests
#
# The last lines are `name value`.

set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build() {
    cargo build --release -p arrow-device-abi-cuda-tests --features cuda --bin gpu
    mkdir -p target/gpu
    cp "${CARGO_TARGET_DIR:-target}/release/gpu" target/gpu/gpu
}
run() {
    # How far the driver and the kernel's module agree is the first question of anybody who reads a failure.
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    fi
    exec target/gpu/gpu "$@"
}

case ${1:-} in
    build) build ;;
    run) run ;;
    twin) build && run --test-driver ;;
    '') build && run ;;
    *) echo "usage: $0 [build | run | twin]" >&2 && exit 2 ;;
esac
