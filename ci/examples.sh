#!/usr/bin/env bash
# The C and C++ examples: compiled without a warning, linked with the Rust example as a shared and as a static library,
# and run under valgrind.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group examples

export CARGO_TARGET_DIR=$CI_DIR/build-examples
LIBRARIES=$CARGO_TARGET_DIR/debug/examples
OUT=$CI_DIR/examples
STRICT=(-g -Wall -Wextra -Wpedantic -Werror -I include -I examples/c)
mkdir -p "$OUT"

libraries() { cargo build "${CRATE[@]}" --example rust_side; }

# With each library: PROGRAM COMPILER…
link() {
    local program=$OUT/$1
    shift
    "$@" "${STRICT[@]}" -L"$LIBRARIES" -lrust_side "-Wl,-rpath,$LIBRARIES" -pthread -o "$program-shared" &&
        "$@" "${STRICT[@]}" "$LIBRARIES/librust_side.a" -pthread -ldl -lm -o "$program-static"
}
run() { # PROGRAM
    local program
    for program in "$OUT/$1-shared" "$OUT/$1-static"; do
        "$program" || return
    done
}
grind() { # PROGRAM
    local program
    for program in "$OUT/$1-shared" "$OUT/$1-static"; do
        valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$program" || return
    done
}

step "the Rust side" libraries
step "C: compiled and linked" link c gcc -std=c99 examples/c/exchange.c
step "C: run" run c
step --needs valgrind "C: under valgrind" grind c
step "C++: compiled and linked" link cpp g++ -std=c++17 examples/cpp/exchange.cc
step "C++: run" run cpp
step --needs valgrind "C++: under valgrind" grind cpp

finish
