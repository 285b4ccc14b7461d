#!/usr/bin/env bash
# Real exchanges with implementations that are not ours: pyarrow and nanoarrow in Python, Arrow C++, nanoarrow in C.
#
# Each program prints a line `peer: ROUTE: WHAT` for each exchange, and these are the table at the end. Each is also run
# with one thing after the other done wrong on purpose, and must then fail for just that.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group peers

OUT=$CI_DIR/peers
EXAMPLES=$ROOT/target/debug/examples
# The system's allocator, so that valgrind sees what Arrow allocates and who forgets it.
export ARROW_DEFAULT_MEMORY_POOL=system
mkdir -p "$OUT"

libraries() { cargo build --example python_exchange --example cpp_peer --example async_peer; }

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
    finds exchange --spoil <<'FAULTS'
row rows: 99, not 100
leak Rust holds batches still
buffer not equal: int64
offset not equal: int64
nulls null_count value (0) doesn't match
children 1 children, expected 2
order Expected 2 buffers for imported type int32
dictionary dictionary field in ArrowArray struct is null
flags schema:
metadata schema:
FAULTS
}

# ---- Arrow C++, as the pyarrow wheel carries it

arrow_cpp() { # PROGRAM, and the Rust library that it calls
    local arrow library
    arrow=$("$PYTHON" -c 'import pyarrow; print(pyarrow.get_library_dirs()[0])') || return
    library=$(cd "$arrow" && echo libarrow.so.*)
    rm -f "$OUT/$1"
    # -isystem: warnings are about our own code. The crate's header stands beside Arrow's on purpose.
    g++ -std=c++20 -g -Wall -Wextra -Werror "tests/peers/$1.cc" -o "$OUT/$1" -I include \
        -isystem "$(pyarrow_include)" -L"$arrow" "-l:$library" "-Wl,-rpath,$arrow" -L"$EXAMPLES" "-l$2" \
        "-Wl,-rpath,$EXAMPLES"
}
arrow_cpp_finds() {
    finds "$OUT/arrow_cpp" <<'FAULTS'
row batch
leak bytes in Arrow's pool
event fake CUDA device
buffer batch given back: int64
buffers Offset invariant failure
offset batch given back: int64
nulls doesn't match actual number of nulls
bitmap null bitmap buffer but non-zero null_count
children 1 children, expected 2
order batch given back: int8
dictionary Import type is dictionary
flags schema changed
metadata schema changed
name schema changed
FAULTS
}

# Its asynchronous streams. The program ends itself after five minutes: that something waits for ever is a fault.
async_cpp_finds() {
    finds "$OUT/async_cpp" <<'FAULTS'
row batch received
producer no producer (A1)
leak bytes in Arrow's pool
FAULTS
}

# ---- nanoarrow's C library with its device extension

nanoarrow_c() {
    rm -f "$OUT/nanoarrow_c"
    gcc -std=c99 -g -O1 -Wall -Wextra -Werror tests/peers/nanoarrow_c.c "$NANOARROW"/nanoarrow/common/*.c \
        "$NANOARROW/nanoarrow/device/device.c" -o "$OUT/nanoarrow_c" -I include -isystem "$NANOARROW" -L"$EXAMPLES" \
        -lcpp_peer "-Wl,-rpath,$EXAMPLES"
}
nanoarrow_c_finds() {
    finds "$OUT/nanoarrow_c" <<'FAULTS'
expected root.children[1]: actual->null_count
buffer root.children[8].buffers[1]
buffers Expected element size >= 0
offset root.children[8]: actual->offset
nulls root.children[8]: actual->null_count
bitmap int64 array buffer 0
children Expected 2 children
order root.children[2].buffers[1]
dictionary Expected dictionary
flags SameSchema
metadata SameSchema
FAULTS
}

# The whole process under valgrind: libarrow, the Rust library and the program between them.
grind() { valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite "$@"; }

step "the Rust libraries" libraries
step --needs python "pyarrow and nanoarrow, in Python" in_python
step --needs python "pyarrow and nanoarrow: a difference is found" in_python_finds
step --needs python "build the Arrow C++ peer" arrow_cpp arrow_cpp cpp_peer
step --needs python "Arrow C++" with_note "$OUT/arrow_cpp"
step --needs python "Arrow C++: a difference is found" arrow_cpp_finds
step --needs "python valgrind" "Arrow C++, under valgrind" grind "$OUT/arrow_cpp"
step --needs python "build the Arrow C++ peer, asynchronous" arrow_cpp async_cpp async_peer
step --needs python "Arrow C++, asynchronous" with_note "$OUT/async_cpp"
step --needs python "Arrow C++, asynchronous: a difference is found" async_cpp_finds
step --needs "python valgrind" "Arrow C++, asynchronous, under valgrind" grind "$OUT/async_cpp"
step --needs "python nanoarrow_c" "build the nanoarrow peer" nanoarrow_c
step --needs "python nanoarrow_c" "nanoarrow in C" with_note "$OUT/nanoarrow_c"
step --needs "python nanoarrow_c" "nanoarrow in C: a difference is found" nanoarrow_c_finds
step --needs "python nanoarrow_c valgrind" "nanoarrow in C, under valgrind" grind "$OUT/nanoarrow_c"

exchanged
finish
