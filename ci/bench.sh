#!/usr/bin/env bash
# The bench in its short form: that it runs and says all it should. Its figures judge nothing here, on a machine that is
# busy with other steps.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group bench

NAMES=(
    export_array_{1,10,100,1000,nested}_vs_arrow_rs
    export_schema_{1,10,100,1000}_vs_arrow_rs
    drain_vs_arrow_rs drain_vs_c drain_by_iterator_vs_c move_vs_c move_through_owner_vs_c
)

short_bench() {
    local out name
    out=$(BENCH_SHORT=1 cargo bench --bench export 2>&1)
    local rc=$?
    printf '%s\n' "$out"
    ((rc == 0)) || return "$rc"
    for name in "${NAMES[@]}"; do
        grep -qE "^$name [0-9]+\.[0-9]+$" <<<"$out" || { echo "no figure for $name"; return 1; }
    done
    echo "note: ${#NAMES[@]} figures"
}

step --needs valgrind "cargo bench --bench export, short" short_bench

finish
