#!/usr/bin/env bash
# Feature `cuda` on the CUDA driver for tests: the highest and the lowest cudarc, without unwinding, linked in place of
# loaded, and under the sanitizers.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/sanitize.sh
. ci/sanitize.sh
group cuda

TESTS=(-p arrow-device-abi-cuda-tests --features cuda)
# Here as a user has it: the version comes from a feature of cudarc.
unset CUDARC_CUDA_VERSION
# As ci/cuda_peer.sh leaves it; without it the tests that need it say that they are skipped.
NANOARROW_CUDA=$CI_DIR/cuda_peer/libnanoarrow_cuda.so
[ ! -e "$NANOARROW_CUDA" ] || export NANOARROW_CUDA

highest() {
    cargo test "${TESTS[@]}" --no-fail-fast || return
    echo "note: $(cargo tree "${TESTS[@]}" -e normal --depth 1 --prefix none | sed -nE 's/^(cudarc) v([0-9.]+).*/\1 \2/p')"
}

# What a user types, without a package: the tests are found. One program of them, since the others are those of above
# and those of the crate itself.
from_the_root() { cargo test --features cuda --test wait; }

lowest() {
    local dir=$CI_DIR/cuda-lowest low
    low=$(sed -nE 's/^cudarc = .*version = "([0-9.]+)".*/\1/p' Cargo.toml)
    [ -n "$low" ] || { echo "Cargo.toml has no version of cudarc"; return 1; }
    copy_of_the_tree "$dir" && cd "$dir" || return
    sed -i -E "s/^(cudarc = .*version = )\"[0-9.]+\"/\1\"=$low\"/" Cargo.toml tests/cuda/Cargo.toml
    CARGO_TARGET_DIR=$CI_DIR/build-cuda-lowest cargo test "${TESTS[@]}" --no-fail-fast || return
    cargo tree "${TESTS[@]}" -e normal --depth 1 --prefix none | tee "$CI_DIR/cuda-tree.txt" || return
    grep -q "^cudarc v$low" "$CI_DIR/cuda-tree.txt" || { echo "another version was tested"; return 1; }
    echo "note: cudarc $low"
}

# C8: catching a panic is no way out here.
without_unwinding() {
    local out
    CARGO_PROFILE_DEV_PANIC=abort CARGO_TARGET_DIR=$CI_DIR/build-cuda-abort \
        cargo build "${TESTS[@]}" --bin absent || return
    out=$("$CI_DIR/build-cuda-abort/debug/absent" 2>"$CI_DIR/cuda-absent.txt")
    local rc=$?
    if [ "$rc" = 77 ]; then
        echo "skipped: a machine without a CUDA driver, this one has one"
        exit 77
    fi
    printf '%s\n' "$out"
    [ "$rc" = 0 ] && [ ! -s "$CI_DIR/cuda-absent.txt" ] && grep -qx 'an event: there is no CUDA driver on this machine' <<<"$out"
}

# cudarc lacks the functions that ask for the driver then.
linked() {
    CUDARC_CUDA_VERSION=12000 cargo check "${CRATE[@]}" --features cuda,cudarc/dynamic-linking
}

# Without a CUDA version it is cudarc that asks for one; and without the feature there is no cudarc.
only_with_the_feature() {
    local out
    ! cargo tree "${CRATE[@]}" -e normal | grep cudarc || return
    out=$(CARGO_TARGET_DIR=$CI_DIR/build-cuda-none cargo check "${CRATE[@]}" --features cuda 2>&1) &&
        { echo "built without a CUDA version"; return 1; }
    grep -F 'Must specify one of the following features' <<<"$out" | sed 's/^/| /'
}

# The control: a consumer that does not wait.
RACE=without_waiting_the_bytes_are_wrong
thread_finds_no_wait() {
    local out
    thread_runtime || return
    out=$(thread "${TESTS[@]}" --test wait -- "$RACE" 2>&1) && { echo "$out"; echo "not found"; return 1; }
    sed 's/^/| /' <<<"$out"
    grep -q 'WARNING: ThreadSanitizer: data race' <<<"$out"
}
thread_tests() { thread_runtime && thread "${TESTS[@]}" --tests -- --skip "$RACE"; }

step "cargo test, highest cudarc" highest
step "cargo test --features cuda, in the root" from_the_root
step "cargo test, lowest cudarc" lowest
step "no driver, panic = abort" without_unwinding
step "linked in place of loaded" linked
step "no cudarc without the feature, no version of ours" only_with_the_feature
step "the GPU's program, on the driver for tests" bash ci/gpu.sh twin
step "AddressSanitizer" address "${TESTS[@]}"
step --needs rust_std "ThreadSanitizer: a missing wait is found" thread_finds_no_wait
step --needs rust_std "ThreadSanitizer" thread_tests
step "on a GPU" bash ci/gpu.sh

finish
