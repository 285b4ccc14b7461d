#!/usr/bin/env bash
# Feature `arrow` with the highest and with the lowest version of arrow-rs that Cargo.toml allows.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group arrow

TESTS=(-p arrow-device-abi-arrow-tests)

# A copy whose every requirement on arrow-rs is the lower end of the range: a lock file alone cannot hold the tests'
# own requirement down.
lowest() {
    local dir=$CI_DIR/arrow-lowest low
    low=$(sed -nE 's/^arrow-array = .*">=([0-9]+), <[0-9]+".*/\1/p' Cargo.toml)
    [ -n "$low" ] || { echo "Cargo.toml has no range of arrow-array"; return 1; }
    copy_to "$dir" || return
    cd "$dir" || return
    sed -i -E "s/^(arrow-array = .*)\">=[0-9]+, <[0-9]+\"/\1\"=$low.0.0\"/" Cargo.toml
    sed -i -E "s/^(arrow-[a-z]+ = .*version = )\"[0-9]+\"/\1\"=$low.0.0\"/" tests/arrow/Cargo.toml
    ARROW_RS_IS_LOWEST=1 CARGO_TARGET_DIR=$CI_DIR/build-arrow-lowest cargo test "${TESTS[@]}" || return
    local tree
    tree=$(cargo tree "${TESTS[@]}" -e dev --depth 2 --prefix none | grep '^arrow-' | sort -u) || return
    echo "$tree"
    grep -q "^arrow-array v$low\.0\.0" <<<"$tree" || { echo "another version was tested"; return 1; }
    echo "note: arrow-rs $low.0.0"
}

highest() {
    cargo test "${TESTS[@]}" || return
    echo "note: $(cargo tree "${TESTS[@]}" -e dev --depth 1 --prefix none | sed -nE 's/^arrow-array v(.*)/arrow-rs \1/p')"
}

step "cargo test, highest arrow-rs" highest
step "cargo test, lowest arrow-rs" lowest

finish
