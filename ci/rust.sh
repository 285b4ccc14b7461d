#!/usr/bin/env bash
# The crate with the machine's own toolchain: format, tests, lints, documentation, package, and what a user waits for.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group rust

# A file that the package's `include` leaves out (a test, an example) is named by cargo each time.
NOT_PACKAGED='^[0-9]+:warning: ignoring (test|example|benchmark) '

package() {
    local list need part found=0
    list=$(cargo package "${CRATE[@]}" --list --allow-dirty) || return
    printf '%s\n' "$list"
    for need in Cargo.toml README.md CHANGELOG.md LICENSE build.rs src/lib.rs src/raw/bindings.rs include/arrow_device_abi.h; do
        grep -qxF "$need" <<<"$list" || { echo "the package lacks $need"; found=1; }
    done
    for part in ci/ .ci/ tests/ target/ fuzz/; do
        ! grep -F "$part" <<<"$list" | grep -q "^$part" || { echo "the package has files of $part"; found=1; }
    done
    ((found == 0)) || return
    # Builds what it packed, alone.
    CARGO_TARGET_DIR=$CI_DIR/build-package cargo package "${CRATE[@]}" --allow-dirty
}

# What the README promises of the default features: three crates, a few seconds.
clean_release_build() {
    local dir=$CI_DIR/build-release began crates
    rm -rf "$dir"
    cargo fetch || return
    began=$(date +%s%N)
    CARGO_TARGET_DIR=$dir cargo build "${CRATE[@]}" --release 2>&1 | tee "$CI_DIR/release-build.txt" || return
    local tenths=$((($(date +%s%N) - began) / 100000000))
    crates=$(grep -c '^ *Compiling ' "$CI_DIR/release-build.txt")
    [ "$crates" = 3 ] || { echo "$crates crates, not 3"; return 1; }
    ((tenths < 300)) || { echo "a clean release build takes $((tenths / 10)) s"; return 1; }
    echo "note: 3 crates in $((tenths / 10)).$((tenths % 10)) s"
}

step "cargo fmt" cargo fmt --all --check
step "cargo test" cargo test --no-fail-fast
step "cargo test --no-default-features" cargo test "${CRATE[@]}" --no-fail-fast --no-default-features
# Of the tests those that compare with fresh bindings; the others ran above, and each feature has tests of its own.
step --needs "libclang python libpython" "cargo test --all-features" \
    with_python cargo test "${CRATE[@]}" --no-fail-fast --all-features --lib --test bindings --test layout
step --needs "libclang python libpython" "doctests, all features" with_python cargo test "${CRATE[@]}" --all-features --doc
step --needs "cargo_hack libclang python" "clippy, each pair of features, library" \
    cargo hack "${CRATE[@]}" clippy --feature-powerset --depth 2 --exclude-features default --lib -- -D warnings
step "clippy, no features, all targets" cargo clippy "${CRATE[@]}" --no-default-features --all-targets -- -D warnings
step --needs "libclang python" "clippy, the crates beside it" cargo clippy --workspace --all-targets --all-features -- -D warnings
step --needs "libclang python" "cargo doc, warnings denied" env RUSTDOCFLAGS="-D warnings" cargo doc "${CRATE[@]}" --no-deps --all-features
step --allow "$NOT_PACKAGED" "cargo package" package
step "a clean release build" clean_release_build

finish
