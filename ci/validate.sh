#!/usr/bin/env bash
# Who else says so: thousands of arrays, valid and with one thing broken, judged by nanoarrow and Arrow C++ too, and copies
# compared by pyarrow. A difference that tests/validation/explained.rs does not explain fails, and so does an
# explanation that nothing needs.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group validate

OUT=$CI_DIR/validate
EXAMPLES=$ROOT/target/debug/examples
mkdir -p "$OUT"

library() { cargo build "${CRATE[@]}" --example validate_peer; }

nanoarrow() {
    rm -f "$OUT/nanoarrow"
    gcc -std=gnu99 -g -O1 -Wall -Wextra -Werror tests/validation/nanoarrow.c "$NANOARROW"/nanoarrow/common/*.c \
        -o "$OUT/nanoarrow" -I include -isystem "$NANOARROW" -L"$EXAMPLES" -lvalidate_peer "-Wl,-rpath,$EXAMPLES"
}

arrow_cpp() {
    local arrow library
    arrow=$("$PYTHON" -c 'import pyarrow; print(pyarrow.get_library_dirs()[0])') || return
    library=$(cd "$arrow" && echo libarrow.so.*)
    rm -f "$OUT/arrow"
    g++ -std=c++20 -g -Wall -Wextra -Werror tests/validation/arrow.cc -o "$OUT/arrow" -I include \
        -isystem "$(pyarrow_include)" -L"$arrow" "-l:$library" "-Wl,-rpath,$arrow" -L"$EXAMPLES" -lvalidate_peer \
        "-Wl,-rpath,$EXAMPLES"
}

# Ends with a note for the table: how many were judged alike, and how many differences are explained.
judges() {
    "$@" | tee "$OUT/said.txt" || return
    sed -n 's/^peer: \(.*\)/note: \1/p' "$OUT/said.txt"
}

finds() { # COMMAND: one judgement turned round must be found
    local rc
    VALIDATION_SPOIL=1 "$@" >"$OUT/wrong.txt"
    rc=$?
    sed 's/^/| /' "$OUT/wrong.txt"
    [ "$rc" = 1 ] && grep -q '^unexplained: case 0, nothing$' "$OUT/wrong.txt"
}

step "the Rust library" library
step --needs "python nanoarrow_c" "build the nanoarrow judge" nanoarrow
step --needs "python nanoarrow_c" "nanoarrow judges" judges "$OUT/nanoarrow"
step --needs "python nanoarrow_c" "nanoarrow: a difference is found" finds "$OUT/nanoarrow"
step --needs python "build the Arrow C++ judge" arrow_cpp
step --needs python "Arrow C++ judges" judges "$OUT/arrow"
step --needs python "pyarrow compares copies" judges "$PYTHON" -X faulthandler tests/validation/copies.py \
    "$EXAMPLES/libvalidate_peer.so"

finish
