#!/usr/bin/env bash
# Real exchanges with implementations that are not ours: pyarrow and nanoarrow in Python, Arrow C++, nanoarrow in C.
#
# Each program prints one line `peer: …` a peer and direction, which are repeated at the end. Each is also run with
# something done wrong on purpose, and must then fail.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group peers

OUT=$CI_DIR/peers
EXAMPLES=$ROOT/target/debug/examples
# The system's allocator, so that valgrind sees what Arrow allocates and who forgets it.
export ARROW_DEFAULT_MEMORY_POOL=system
mkdir -p "$OUT"

libraries() { cargo build --example python_exchange --example cpp_peer; }

# Ends with a note for the table: the peers that named themselves.
with_note() {
    "$@" | tee "$OUT/said.txt" || return
    local peers
    peers=$(sed -nE 's/^peer: ([A-Za-z+ ]+ [0-9.]+).*/\1/p' "$OUT/said.txt" | sort -u | paste -sd, | sed 's/,/, /g')
    [ -n "$peers" ] || { echo "no peer named itself"; return 1; }
    echo "note: $peers"
}

fails_with() { # TEXT COMMAND…
    local text=$1 rc
    shift
    "$@" >"$OUT/wrong.txt" 2>&1
    rc=$?
    sed 's/^/| /' "$OUT/wrong.txt"
    [ "$rc" = 1 ] || { echo "exit status $rc, not 1: $*"; return 1; }
    grep -qF -- "$text" "$OUT/wrong.txt" || { echo "failed, but not with \"$text\": $*"; return 1; }
}

# ---- Python

# palmerpenguins asks for pandas, and only its data file is wanted: hence --no-deps.
python_packages() {
    local line
    grep -E '^(pyarrow|nanoarrow)==' examples/python/requirements.txt >"$OUT/pins.txt"
    while read -r line; do
        grep -qxF "$line" ci/requirements.txt || { echo "ci/requirements.txt has another version than $line"; return 1; }
    done <"$OUT/pins.txt"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --retries 5 --no-deps --only-binary :all: \
        -r examples/python/requirements.txt && return
    "$PYTHON" -c 'from importlib.metadata import version; version("palmerpenguins")' && return
    echo "skipped: the exchange in Python, the data file's package could not be installed"
    return 77
}
exchange() { "$PYTHON" -X faulthandler examples/python/exchange.py "$EXAMPLES/libpython_exchange.so" "$@"; }
in_python() { python_packages && with_note exchange; }
in_python_finds() {
    python_packages || return
    fails_with "rows: 99, not 100" exchange --spoil row || return
    fails_with "Rust holds batches still" exchange --spoil leak
}

# ---- Arrow C++, as the pyarrow wheel carries it

arrow_cpp() {
    local arrow library
    arrow=$("$PYTHON" -c 'import pyarrow; print(pyarrow.get_library_dirs()[0])') || return
    library=$(cd "$arrow" && echo libarrow.so.*)
    rm -f "$OUT/arrow_cpp"
    # -isystem: warnings are about our own code. The crate's header stands beside Arrow's on purpose.
    g++ -std=c++20 -g -Wall -Wextra -Werror tests/peers/arrow_cpp.cc -o "$OUT/arrow_cpp" -I include \
        -isystem "$(pyarrow_include)" -L"$arrow" "-l:$library" "-Wl,-rpath,$arrow" -L"$EXAMPLES" -lcpp_peer \
        "-Wl,-rpath,$EXAMPLES"
}
arrow_cpp_finds() {
    fails_with "batch" "$OUT/arrow_cpp" row || return
    fails_with "bytes in Arrow's pool" "$OUT/arrow_cpp" leak || return
    fails_with "fake CUDA device" "$OUT/arrow_cpp" event
}

# ---- nanoarrow's C library with its device extension

nanoarrow_c() {
    rm -f "$OUT/nanoarrow_c"
    gcc -std=c99 -g -O1 -Wall -Wextra -Werror tests/peers/nanoarrow_c.c "$NANOARROW"/nanoarrow/common/*.c \
        "$NANOARROW/nanoarrow/device/device.c" -o "$OUT/nanoarrow_c" -I include -isystem "$NANOARROW" -L"$EXAMPLES" \
        -lcpp_peer "-Wl,-rpath,$EXAMPLES"
}

# The whole process under valgrind: libarrow, the Rust library and the program between them.
grind() { valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite "$@"; }

step "the Rust libraries" libraries
step --needs python "pyarrow and nanoarrow, in Python" in_python
step --needs python "pyarrow and nanoarrow: a difference is found" in_python_finds
step --needs python "build the Arrow C++ peer" arrow_cpp
step --needs python "Arrow C++" with_note "$OUT/arrow_cpp"
step --needs python "Arrow C++: a difference is found" arrow_cpp_finds
step --needs "python valgrind" "Arrow C++, under valgrind" grind "$OUT/arrow_cpp"
step --needs "python nanoarrow_c" "build the nanoarrow peer" nanoarrow_c
step --needs "python nanoarrow_c" "nanoarrow in C" with_note "$OUT/nanoarrow_c"
step --needs "python nanoarrow_c" "nanoarrow in C: a difference is found" fails_with "equal" "$OUT/nanoarrow_c" wrong
step --needs "python nanoarrow_c valgrind" "nanoarrow in C, under valgrind" grind "$OUT/nanoarrow_c"

# What was exchanged. Each program says it again under valgrind.
exchanged=$(cat "$LOGS/$GROUP".*.log | grep '^peer: ' | awk '!seen[$0]++')
[ -z "$exchanged" ] || say "$exchanged"

finish
