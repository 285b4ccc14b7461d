#!/usr/bin/env bash
# Asynchronous device streams: every interleaving of their hand-overs, and the example. Their tests run with `cargo test`,
# and under checkers in ci/sanitizers.sh and ci/valgrind.sh; Arrow C++ is their peer in ci/peers.sh.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group async

# Optimised: loom runs each test some hundred thousand times.
model() { cargo test -p arrow-device-abi-model-tests --release; }

# The model must find what it is there for, or its silence says nothing. Each fault is put into a copy, by perl.
model_finds() {
    local dir=$CI_DIR/async-altered log=$CI_DIR/async-altered.txt fault file expression
    while IFS='|' read -r fault file expression; do
        copy_of_the_tree "$dir" || return
        perl -0pi -e "$expression" "$dir/$file" || return
        ! cmp -s "$file" "$dir/$file" || { echo "$file has no place for \"$fault\""; return 1; }
        if (cd "$dir" && CARGO_TARGET_DIR=$ROOT/target cargo test -p arrow-device-abi-model-tests --release) >"$log" 2>&1; then
            echo "not found: $fault"
            return 1
        fi
        sed 's/^/| /' "$log"
        # A compiler's error is no finding. Where nobody wakes anybody, loom's own panic is.
        grep -qE '^running [0-9]+ tests' "$log" || { echo "not compiled: $fault"; return 1; }
        echo "found: $fault"
    done <<'FAULTS'
release does not wait|src/consumer/async_stream/inbox.rs|s/while elsewhere\(.*?\) \{/while false {/
requests overlap|src/consumer/async_stream/inbox.rs|s/if state.requesting.is_some\(\)/if false/
a late change is not looked for|src/watched.rs|s/woken nobody\.\n\K.*?\n        \}\n//s
FAULTS
}

example() {
    local out
    out=$(cargo run --example async_exchange) || return
    printf '%s\n' "$out"
    grep -qE '^requested [0-9]+, made [0-9]+, delivered 10, discarded [0-9]+, released [0-9]+$' <<<"$out" ||
        { echo "no line of what was requested, delivered and discarded"; return 1; }
}

step "every interleaving of the hand-overs" model
step "every interleaving: a fault is found" model_finds
step "cargo run --example async_exchange" example

finish
