#!/usr/bin/env bash
# The tests under AddressSanitizer with leak detection, ThreadSanitizer, and Miri where it is installed.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/sanitize.sh
. ci/sanitize.sh
group sanitizers

mapfile -t RUNTIME_TESTS < <(tests_without "$COMPILES")
RUNTIME_TESTS=("${CRATE[@]}" "${RUNTIME_TESTS[@]}")
# The asynchronous streams, with an executor and with C.
ASYNC_TESTS=(-p arrow-device-abi-async-tests --tests)
thread_tests() { thread_runtime && thread "$@"; }

# Each checker must find what it is there for, or its silence says nothing.
finds() { # TEXT RUSTC SANITIZER TEST
    local program=$CI_DIR/control-$3 out
    RUSTC_BOOTSTRAP=1 "$2" --edition 2024 -g --test "-Zsanitizer=$3" -Cunsafe-allow-abi-mismatch=sanitizer \
        ci/control.rs -o "$program" || return
    out=$("$program" "$4" 2>&1) && { echo "$out"; echo "not found"; return 1; }
    sed 's/^/| /' <<<"$out"
    grep -qE "$1" <<<"$out"
}
address_finds() { finds "LeakSanitizer: detected memory leaks" rustc address leak; }
# The standard library here is the compiler's own, without the sanitizer, so that there are false races beside the true.
thread_finds() {
    thread_runtime && TSAN_OPTIONS=halt_on_error=0 \
        finds "SUMMARY: .*data race .* in control::race" "$RUST_STD/rustc" thread race
}

# Miri runs no C and reads no files.
miri() {
    if ! cargo +nightly miri --version; then
        echo "skipped: Miri, not installed in the nightly toolchain"
        exit 77
    fi
    local tests file
    mapfile -t tests < <(tests_without "$COMPILES|arrow_device_abi_support|peer|std::\{?.*\bfs\b")
    CARGO_TARGET_DIR=$CI_DIR/build-miri cargo +nightly miri test "${CRATE[@]}" --no-fail-fast "${tests[@]}" || return
    tests=()
    for file in tests/async/tests/*.rs; do
        [ "$(basename "$file")" = c_peer.rs ] || tests+=(--test "$(basename "$file" .rs)")
    done
    CARGO_TARGET_DIR=$CI_DIR/build-miri cargo +nightly miri test -p arrow-device-abi-async-tests --no-fail-fast "${tests[@]}"
}

step "AddressSanitizer: a leak is found" address_finds
step "AddressSanitizer: the tests" address "${RUNTIME_TESTS[@]}"
step "AddressSanitizer: the tests of async" address "${ASYNC_TESTS[@]}"
step --needs rust_std "ThreadSanitizer: a race is found" thread_finds
step --needs rust_std "ThreadSanitizer: the tests" thread_tests "${RUNTIME_TESTS[@]}"
step --needs rust_std "ThreadSanitizer: the tests of async" thread_tests "${ASYNC_TESTS[@]}"
step "Miri: the tests" miri

finish
