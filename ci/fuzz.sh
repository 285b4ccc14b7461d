#!/usr/bin/env bash
# Fuzzing, a minute for each target, under AddressSanitizer. FUZZ_SECONDS=3600 looks longer. What is found by it becomes a
# test in tests/.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group fuzz

SECONDS_EACH=${FUZZ_SECONDS:-60}
BUILT=$CI_DIR/build-fuzz
# The corpus is kept from one run to the next.
CORPUS=$CI_DIR/fuzz

# libFuzzer and sanitizers are unstable options of a compiler that has them all the same.
fuzz() { RUSTC_BOOTSTRAP=1 cargo fuzz "$@"; }

build() { fuzz build --target-dir "$BUILT"; }

# Ends with a note for the table: how many inputs were tried.
one() { # TARGET
    local corpus=$CORPUS/$1
    mkdir -p "$corpus" || return
    "$BUILT"/*/release/"$1" "$corpus" -max_total_time="$SECONDS_EACH" -max_len=4096 -len_control=0 -rss_limit_mb=4096 \
        -timeout=20 -artifact_prefix="$CORPUS/$1-" -print_final_stats=1 2>&1 | tee "$CORPUS/$1.txt" || return
    sed -n 's/^stat::number_of_executed_units: *\(.*\)/note: \1 inputs/p' "$CORPUS/$1.txt"
}

# Two at a time, for two cores.
two() { # TARGET TARGET
    local target rc=0 running=()
    for target in "$@"; do
        one "$target" >"$CORPUS/$target.log" 2>&1 &
        running+=($!)
    done
    for target in "$@"; do
        wait "${running[0]}" || rc=1
        running=("${running[@]:1}")
        sed "s/^note: /| $target: /" "$CORPUS/$target.log"
    done
    ((rc == 0)) || return 1
    echo "note: $(for target in "$@"; do sed -n "s/^note: \(.*\)/$target \1/p" "$CORPUS/$target.log"; done | paste -sd, | sed 's/,/, /g')"
}

# It must find what it is there for: a target that reads one byte too many, and one that panics.
finds() {
    local out
    out=$(FUZZ_SPOIL=1 "$BUILT"/*/release/format "$CORPUS/format" -runs=20000 -artifact_prefix="$CORPUS/spoilt-" 2>&1) && {
        echo "not found"
        return 1
    }
    sed 's/^/| /' <<<"$out"
    grep -q 'AddressSanitizer: heap-buffer-overflow' <<<"$out"
}

mkdir -p "$CORPUS"
step --needs cargo_fuzz --limit 1800 "build the fuzz targets" build
step --needs cargo_fuzz --limit $((2 * SECONDS_EACH + 300)) "format strings, metadata" two format metadata
step --needs cargo_fuzz --limit $((2 * SECONDS_EACH + 300)) "arrays, streams" two array stream
step --needs cargo_fuzz "a read beyond a buffer is found" finds

finish
