#!/usr/bin/env bash
# The test programs under valgrind: the C code that they link is checked too, which no sanitizer of Rust's sees.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group valgrind

# Less those with arrays by the thousand, which link no C and are AddressSanitizer's.
mapfile -t RUNTIME_TESTS < <(tests_without "$COMPILES|^mod arrays;")
GRIND=(valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite)

build() {
    {
        cargo test "${CRATE[@]}" --no-run "${RUNTIME_TESTS[@]}" &&
            cargo test -p arrow-device-abi-async-tests --no-run --tests
    } 2>&1 | tee "$CI_DIR/valgrind.txt" || return
    grep -q '^ *Executable ' "$CI_DIR/valgrind.txt"
}
programs() { sed -nE 's/^ *Executable .*\((.*)\)$/\1/p' "$CI_DIR/valgrind.txt"; }
grind() {
    local program failed=0
    while read -r program; do
        echo "$program"
        # One thread, so that a finding is printed beside the test that caused it.
        "${GRIND[@]}" "$program" --test-threads=1 || failed=1
    done < <(programs)
    return "$failed"
}
# A leak that only valgrind can see, through the same options.
a_leak() {
    local rc
    printf '#include <stdlib.h>\nint main() { void* volatile p = malloc(9); p = 0; return p != 0; }\n' |
        gcc -x c - -o "$CI_DIR/leak" || return
    "${GRIND[@]}" "$CI_DIR/leak"
    rc=$?
    [ "$rc" = 9 ] || { echo "exit status $rc, not 9"; return 1; }
}

step --needs valgrind "a leak is found" a_leak
step --needs valgrind "build the tests" build
step --needs valgrind "the tests" grind

finish
