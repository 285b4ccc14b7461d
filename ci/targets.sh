#!/usr/bin/env bash
# The oldest compiler that Cargo.toml promises, and the proof of src/raw/layout.rs on other targets than this machine's.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group targets

msrv() { CARGO_TARGET_DIR=$CI_DIR/build-msrv RUSTC=$RUST_MSRV/rustc RUSTDOC=$RUST_MSRV/rustdoc cargo "$@"; }

msrv_is_promised() {
    grep -x "rust-version = \"$MSRV\"" Cargo.toml && "$RUST_MSRV/rustc" -V | grep -F "rustc $MSRV."
}

# With the standard library built for the target, so that any target the compiler knows can be checked.
build_std_check() { # CRATES TARGET…
    local crates=$1 target
    shift
    local targets=()
    for target in "$@"; do targets+=(--target "$target"); done
    CARGO_TARGET_DIR=$CI_DIR/build-std RUSTC=$RUST_STD/rustc RUSTC_BOOTSTRAP=1 \
        cargo check "${CRATE[@]}" --lib "-Zbuild-std=$crates" --no-default-features "${targets[@]}" || return
    echo "note: $*"
}
# A target whose data model layout.rs does not know: 16-bit pointers.
unknown_model_refused() {
    local out
    out=$(build_std_check core,alloc msp430-none-elf 2>&1) && { echo "accepted"; return 1; }
    echo "$out" | sed 's/^/| /'
    grep -q 'unknown data model' <<<"$out"
}

step --needs rust_msrv "rust-version is the compiler's" msrv_is_promised
step --needs rust_msrv "$MSRV: cargo check" msrv check "${CRATE[@]}" --lib
step --needs rust_msrv "$MSRV: cargo check --no-default-features" msrv check "${CRATE[@]}" --lib --no-default-features
step --needs "rust_msrv python" "$MSRV: cargo check, pyo3" msrv check "${CRATE[@]}" --lib --features pyo3
# Not only checked but run, and on the one data model here in which an int64_t is not aligned to its size: what a newer
# compiler has run on 64 bits need not be run there again.
step --needs "rust_msrv multilib" "$MSRV: cargo test, i686-unknown-linux-gnu" \
    msrv test "${CRATE[@]}" --no-fail-fast --target i686-unknown-linux-gnu
step --needs rust_msrv "$MSRV: cargo check, aarch64-unknown-linux-gnu" msrv check "${CRATE[@]}" --lib --target aarch64-unknown-linux-gnu
step --needs rust_std "no_std, 64-bit targets" build_std_check core,alloc \
    x86_64-pc-windows-msvc aarch64-unknown-linux-gnu s390x-unknown-linux-gnu
step --needs rust_std "no_std, 32-bit targets" build_std_check core,alloc \
    i686-unknown-linux-gnu wasm32-unknown-unknown i686-pc-windows-msvc armv7-unknown-linux-gnueabihf powerpc-unknown-linux-gnu
step --needs rust_std "an unknown data model is refused" unknown_model_refused

finish
