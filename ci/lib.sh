# shellcheck shell=bash
# The step runner that every script of this folder uses, and the table that closes a run.
#
#   group NAME                  first: names the script's part of the table
#   step [options] TITLE CMD…   runs CMD with its output in a log; result, seconds and a note go into the table
#     --needs "TOOL …"            tools of ci/install.sh; without one of them the step is skipped, and says so
#     --allow REGEX               warnings that are expected; any other warning in the log fails the step
#     --limit SECONDS             instead of 900
#     --or-skip WHY               a failure is a skip: for installations, which the network decides
#   finish                      last: the table, when the script runs on its own
#
# A command that finds out by itself that it cannot run prints `skipped: what, why` and exits with 77. Lines of that
# form in any log, from tests too, are shown and counted under the table. REQUIRE_ALL=1 makes each skip an error.

set -u
set -o pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit 1

CI_DIR=$ROOT/target/ci
LOGS=$CI_DIR/logs
RESULTS=$CI_DIR/results
# Names one run, so that a tool whose installation failed is not tried again before the next.
export CI_RUN=${CI_RUN:-$$}
mkdir -p "$LOGS" "$RESULTS"

# Lines are all that a backtrace or a checker's report shows, and whole debug information takes a third of the time.
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
# Incremental files would only be written: each CI compilation of a unit is its only one.
export CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never CARGO_NET_RETRY=5
# Set from outside these would replace what a step says, or share its cache with other flags.
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET CARGO_ENCODED_RUSTFLAGS RUSTFLAGS RUSTDOCFLAGS RUSTC RUSTDOC RUSTC_WRAPPER
unset RUSTC_BOOTSTRAP CC CXX CFLAGS CXXFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
unset ARROW_DEVICE_ABI_HEADER ARROW_DEVICE_ABI_INCLUDE_PATHS
# Steps that enable every feature need a CUDA version from somewhere; the tests of CUDA have the same one by a feature.
export CUDARC_CUDA_VERSION=12000

# The package, where a bare cargo command would take the benches along and build what they are measured against.
CRATE=(-p arrow-device-abi)

STEP_LIMIT=900
GROUP=
STEP_CHILD=

group() {
    GROUP=$1
    : >"$RESULTS/$GROUP.tsv"
    rm -f "$LOGS/$GROUP."* "$RESULTS/$GROUP.done"
}

# One line a step, also while scripts run side by side.
say() { flock "$CI_DIR/say.lock" printf '%s\n' "$*"; }

record() { # TITLE RESULT SECONDS NOTE
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4//[$'\t\n']/ }" >>"$RESULTS/$GROUP.tsv"
    say "$(printf '%-7s %4ss  %s: %s%s' "$2" "$3" "$GROUP" "$1" "${4:+  ($4)}")"
}

skip() { record "$1" skipped 0 "$2"; }

# A step's command runs in a process group of its own: a limit or a signal must end its children too.
stop_child() {
    [ -n "$STEP_CHILD" ] || return 0
    kill -TERM -- "-$STEP_CHILD" 2>/dev/null
    sleep 1
    kill -KILL -- "-$STEP_CHILD" 2>/dev/null
    STEP_CHILD=
}
trap 'stop_child; exit 143' TERM
trap 'stop_child; exit 130' INT

# rustc's and cargo's form, and a C compiler's. Lines that a step quotes from elsewhere begin with "| ".
warnings_of() { # LOG ALLOWED
    grep -nE '^warning(\[[^]]*\])?: |^[^|].*: warning: ' "$1" | grep -vE "${2:-^$}"
}

step() {
    local needs='' allow='' limit=$STEP_LIMIT or_skip=''
    while :; do
        case $1 in
            --needs) needs=$2 ;;
            --allow) allow=$2 ;;
            --limit) limit=$2 ;;
            --or-skip) or_skip=$2 ;;
            *) break ;;
        esac
        shift 2
    done
    local title=$1
    shift

    local tool
    for tool in $needs; do
        if ! need "$tool"; then
            skip "$title" "$tool could not be installed"
            return 0
        fi
    done

    local log began=$SECONDS rc=0 note=''
    log=$LOGS/$GROUP.$(tr -cs 'A-Za-z0-9.+-' '_' <<<"$title" | sed 's/_*$//').log
    set -m
    ("$@") </dev/null >"$log" 2>&1 &
    STEP_CHILD=$!
    set +m
    while kill -0 "$STEP_CHILD" 2>/dev/null; do
        if ((SECONDS - began > limit)); then
            note="stopped after $limit s; "
            stop_child
            break
        fi
        sleep 0.1
    done
    wait "${STEP_CHILD:-$!}" 2>/dev/null
    rc=$?
    STEP_CHILD=

    local seconds=$((SECONDS - began)) warnings
    if [ -z "$note" ] && ((rc == 77)); then
        record "$title" skipped "$seconds" "$(skips_in "$log" | tail -1 | sed 's/^skipped: //')"
        # Its reason is in the table: as a log it would be counted a second time.
        mv "$log" "${log%.log}.skipped"
    elif ((rc == 0)) && [ -z "$or_skip" ] && warnings=$(warnings_of "$log" "$allow"); then
        record "$title" FAILED "$seconds" "warns: ${warnings%%$'\n'*}"
        show "warnings, by line, in" "$log" <<<"$warnings"
    elif ((rc == 0)); then
        # A step that has something to say beside its success ends with a line `note: …`.
        note="$(tests_in "$log") $(sed -n '$s/^note: //p' "$log")"
        note=${note# }
        record "$title" ran "$seconds" "${note% }"
    elif [ -n "$or_skip" ]; then
        record "$title" skipped "$seconds" "$or_skip: exit status $rc"
        show "the end of" "$log" < <(tail -n 80 "$log")
    else
        record "$title" FAILED "$seconds" "${note}exit status $rc"
        show "the end of" "$log" < <(tail -n 80 "$log")
    fi
}

show() { # WHAT LOG, text on stdin
    local text
    text=$(sed 's/^/    /')
    say "--- $1 ${2#"$ROOT"/}:"$'\n'"$text"$'\n---'
}

# libtest on one thread prints a test's name first, on the same line.
skips_in() { grep -hoE '(^|\.\.\. )skipped: .*' "$@" | sed -E 's/^\.\.\. //'; }

# "12 tests" of the summaries that libtest prints, or nothing.
tests_in() {
    local n
    n=$(sed -nE 's/^test result: [a-zA-Z]+\. ([0-9]+) passed.*/\1/p' "$1" | awk '{ n += $1 } END { print n + 0 }')
    ((n == 0)) || printf '%s tests' "$n"
}

# Prints the table of the groups named; false if something failed, or was skipped under REQUIRE_ALL=1.
table() {
    local g title result seconds note ran=0 failed=0 skipped=0 logs=()
    printf '\n%-58s %-8s %7s  %s\n' step result seconds note
    for g in "$@"; do
        [ -e "$RESULTS/$g.tsv" ] || continue
        while IFS=$'\t' read -r title result seconds note; do
            printf '%-58s %-8s %7s  %s\n' "$g: $title" "$result" "$seconds" "$note"
            case $result in
                ran) ran=$((ran + 1)) ;;
                skipped) skipped=$((skipped + 1)) ;;
                *) failed=$((failed + 1)) ;;
            esac
        done <"$RESULTS/$g.tsv"
        for title in "$LOGS/$g."*.log; do [ -e "$title" ] && logs+=("$title"); done
    done

    local inside=''
    if ((${#logs[@]})); then
        inside=$(skips_in "${logs[@]}" | sort | uniq -c)
    fi
    if [ -n "$inside" ]; then
        printf '\nskipped inside steps (times, what, why):\n%s\n' "$inside"
    fi

    local passed=0 broken=0 ignored=0
    if ((${#logs[@]})); then
        read -r passed broken ignored < <(
            sed -nE 's/^test result: [a-zA-Z]+\. ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored.*/\1 \2 \3/p' \
                "${logs[@]}" | awk '{ p += $1; f += $2; i += $3 } END { print p + 0, f + 0, i + 0 }'
        )
    fi
    local inner=0
    [ -z "$inside" ] || inner=$(awk '{ n += $1 } END { print n }' <<<"$inside")

    printf '\ntests: %s passed, %s failed, %s skipped\n' "$passed" "$broken" "$((ignored + inner))"
    printf 'steps: %s passed, %s failed, %s skipped\n' "$ran" "$failed" "$skipped"
    printf 'time: %s s\n' "$SECONDS"
    ((failed == 0)) || return 1
    if [ "${REQUIRE_ALL:-0}" = 1 ] && ((skipped + inner > 0)); then
        printf 'REQUIRE_ALL=1: a skip is an error\n'
        return 1
    fi
}

finish() {
    local failed=0
    if [ -n "${CI_TABLE_BY_CALLER:-}" ]; then
        # The caller adds up; it must only learn that this script came to its end.
        : >"$RESULTS/$GROUP.done"
        exit 0
    fi
    table "$GROUP" || failed=1
    exit "$failed"
}

# A copy of the working tree in DIR, for steps that change a requirement in Cargo.toml: a lock file alone cannot hold the
# tests' own requirements down.
copy_of_the_tree() { # DIR
    rm -rf "$1"
    mkdir -p "$1"
    # Less what is deleted and not committed yet, which git lists all the same.
    git ls-files --cached --others --exclude-standard | while read -r file; do
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done | xargs -0 cp --parents -t "$1"
}

# Arguments of `cargo test` for what is worth running under a checker: the library and the tests in tests/, less those
# whose text matches REGEX.
tests_without() { # REGEX
    local file
    printf '%s\n' --lib
    for file in tests/*.rs; do
        grep -qE "$1" "$file" || printf '%s\n' --test "$(basename "$file" .rs)"
    done
}
# They run compilers and look at what these say: nothing that a checker could see.
COMPILES='arrow_device_abi_support::compile|std::process'

# ---- exchanges with peers: programs that print `peer: ROUTE: WHAT`

# Ends with a note for the table: the peers that named themselves.
with_note() {
    local said=$CI_DIR/$GROUP.said.txt peers
    "$@" | tee "$said" || return
    peers=$(sed -nE 's/^peer: ([^:]*).*/\1/p' "$said" | grep -oE '(Arrow C\+\+|pyarrow|nanoarrow|polars|duckdb|arro3) [0-9.]+' |
        sort -u | paste -sd, | sed 's/,/, /g')
    [ -n "$peers" ] || { echo "no peer named itself"; return 1; }
    echo "note: $peers"
}

fails_with() { # TEXT COMMAND…
    local text=$1 wrong=$CI_DIR/$GROUP.wrong.txt rc
    shift
    "$@" >"$wrong" 2>&1
    rc=$?
    sed 's/^/| /' "$wrong"
    [ "$rc" = 1 ] || { echo "exit status $rc, not 1: $*"; return 1; }
    grep -qaF -- "$text" "$wrong" || { echo "failed, but not with \"$text\": $*"; return 1; }
}

# Runs the command with each of the faults, which stand on standard input with the text that has to come of it.
finds() { # COMMAND…
    local fault text
    while read -r fault text; do
        fails_with "$text" "$@" "$fault" || return
    done
}

# What was exchanged. Each program says it again under valgrind.
exchanged() {
    local lines
    lines=$(cat "$LOGS/$GROUP".*.log | sed -nE 's/^peer: ([^:]*): /\1\t/p' | awk '!seen[$0]++' |
        awk -F'\t' '{ printf "%-66s %s\n", $1, $2 }')
    [ -z "$lines" ] || say "exchanged:"$'\n'"$lines"
}

# shellcheck source=ci/install.sh
. "$ROOT/ci/install.sh"
