#!/usr/bin/env bash
# The benches in their short form: that they run and say all they should. Their figures judge nothing here, on a machine
# that is busy with other steps.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group bench

EXPORT=(
    export_array_{1,10,100,1000,nested}_vs_arrow_rs
    export_schema_{1,10,100,1000}_vs_arrow_rs
    drain_vs_arrow_rs drain_vs_c drain_by_iterator_vs_c move_vs_c move_through_owner_vs_c
)

VALIDATE=(
    validate_{flat,nested}_ns_per_node validate_{flat,nested}_vs_nanoarrow
    validate_{flat,nested}_vs_nanoarrow_with_schema to_host_{one_large_column,many_small_columns}_vs_memcpy
)

ASYNC=(
    async_stream_{sync,{one_thread,two_threads}_{1,16,256}}_batches_per_second
    async_stream_{one_thread,two_threads}_{1,16,256}_vs_sync
)

short_bench() { # BENCH FIGURE…
    local bench=$1 out name
    shift
    # Where it is there for one it is there for all, which are built together.
    [ ! -e "$NANOARROW" ] || export NANOARROW_C=$NANOARROW
    out=$(BENCH_SHORT=1 cargo bench --bench "$bench" 2>&1)
    local rc=$?
    printf '%s\n' "$out"
    ((rc == 0)) || return "$rc"
    for name in "$@"; do
        grep -qE "^$name [0-9]+(\.[0-9]+)?$" <<<"$out" || { echo "no figure for $name"; return 1; }
    done
    echo "note: $# figures"
}

step --needs valgrind "cargo bench --bench export, short" short_bench export "${EXPORT[@]}"
step "cargo bench --bench async_stream, short" short_bench async_stream "${ASYNC[@]}"
step --needs "python nanoarrow_c" "cargo bench --bench validate, short" short_bench validate "${VALIDATE[@]}"

finish
