#!/usr/bin/env bash
# Feature `pyo3`: its tests in a Python of their own, with the highest and the lowest pyo3 that Cargo.toml allows, and the
# extension module of examples/python-extension beside the libraries that it exchanges data with.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group pyo3

TESTS=(-p arrow-device-abi-pyo3-tests)
EXTENSION=$ROOT/examples/python-extension
OUT=$CI_DIR/pyo3
export CARGO_TARGET_DIR=$CI_DIR/build-pyo3
export ARROW_DEFAULT_MEMORY_POOL=system
mkdir -p "$OUT"

# With the whole of Python's interface, and with the stable part of it.
alone() {
    cargo check "${CRATE[@]}" --lib --no-default-features --features pyo3 &&
        cargo check "${CRATE[@]}" --lib --no-default-features --features pyo3,pyo3/abi3-py310
}

# Ends with a note: the versions.
tests_of() { # FOLDER-OF-THE-WORKSPACE
    cd "$1" && with_python cargo test "${TESTS[@]}" || return
    echo "note: $(cargo tree "${TESTS[@]}" -e dev --depth 1 --prefix none | sed -nE 's/^pyo3 v([0-9.]+).*/pyo3 \1/p'), $("$PYTHON" -V)"
}
highest() { tests_of .; }
# The boxes of capsules have no release to be counted: valgrind counts them.
grind() {
    local programs program
    programs=$(with_python cargo test "${TESTS[@]}" --no-run 2>&1 | sed -nE 's/^ *Executable .*\((.*)\)$/\1/p')
    [ -n "$programs" ] || { echo "no test programs"; return 1; }
    for program in $programs; do
        PYTHONMALLOC=malloc with_python valgrind -q --suppressions=ci/python.supp --error-exitcode=9 --leak-check=full \
            --errors-for-leak-kinds=definite --show-leak-kinds=definite "$program" --test-threads=1 || return
    done
}
documentation() { with_python cargo test "${CRATE[@]}" --doc --features pyo3 pyo3; }
# As in arrow.sh: a lock file alone cannot hold the tests' own requirement down.
lowest() {
    local dir=$CI_DIR/pyo3-lowest low out
    low=$(sed -nE 's/^pyo3 = .*">=([0-9.]+), <[0-9.]+".*/\1/p' Cargo.toml)
    [ -n "$low" ] || { echo "Cargo.toml has no range of pyo3"; return 1; }
    copy_of_the_tree "$dir" || return
    sed -i -E "s/^(pyo3 = .*)\">=[0-9.]+, <[0-9.]+\"/\1\"=$low.0\"/" "$dir/Cargo.toml"
    sed -i -E "s/^(pyo3 = .*version = )\"[0-9.]+\"/\1\"=$low.0\"/" "$dir/tests/pyo3/Cargo.toml"
    export CARGO_TARGET_DIR=$CI_DIR/build-pyo3-lowest
    out=$(tests_of "$dir")
    local rc=$?
    printf '%s\n' "$out"
    ((rc == 0)) || return "$rc"
    grep -qF "note: pyo3 $low.0, " <<<"$out" || { echo "another version was tested"; return 1; }
}

# ---- the extension module

lints() { cargo fmt --check && cargo clippy --locked -- -D warnings; }
lint_extension() { (cd "$EXTENSION" && CARGO_TARGET_DIR=$CI_DIR/build-python-extension lints); }

wheel_for() { # PYTHON FOLDER
    rm -rf "${2:?}"
    CARGO_TARGET_DIR=$CI_DIR/build-python-extension "$VENV/bin/maturin" build --locked --interpreter "$1" \
        --manifest-path "$EXTENSION/Cargo.toml" --out "$2"
}
module() {
    wheel_for "$PYTHON" "$OUT/wheel" || return
    compgen -G "$OUT/wheel/*-abi3-*.whl" || { echo "the wheel is for one Python only"; return 1; }
    rm -rf "$OUT/module"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$OUT/module" "$OUT"/wheel/*.whl
}
with_module() { PYTHONPATH=$OUT/module "$@"; }
alone_in() { with_module "$1" -X faulthandler "$EXTENSION/tests/alone.py"; }

# The one wheel, in each other Python that is there.
other_pythons() {
    local python ours said=()
    ours=$("$PYTHON" -c 'import sys; print(tuple(sys.version_info[:2]))') || return
    for python in python3.{10..19} "$(pyenv root 2>/dev/null)"/versions/3.*/bin/python3; do
        "$python" -c "import sys; sys.exit(sys.version_info < (3, 10) or sys.version_info[:2] == $ours)" 2>/dev/null || continue
        alone_in "$python" >"$OUT/said.txt" || return
        cat "$OUT/said.txt"
        said+=("$(sed -n 's/^note: Python //p' "$OUT/said.txt")")
    done
    if ((${#said[@]} == 0)); then
        echo "skipped: the module in other Pythons, none is installed"
        return 77
    fi
    echo "note: $(printf '%s\n' "${said[@]}" | sort -uV | paste -sd, | sed 's/,/, /g')"
}

# The stable ABI does not go without the GIL, so that the module is built for this Python alone.
free_threaded() {
    local python pythons=(python3.{13..19}t)
    # shellcheck disable=SC2068 # names without blanks
    for python in ${FREE_THREADED_PYTHON:-${pythons[@]}}; do
        "$python" -c 'import sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null || continue
        wheel_for "$python" "$OUT/free-threaded" || return
        # A wheel is an archive of what is to be installed, and the venv's pip is for another Python.
        "$python" -m zipfile -e "$OUT"/free-threaded/*.whl "$OUT/free-threaded" || return
        PYTHONPATH=$OUT/free-threaded "$python" -X faulthandler "$EXTENSION/tests/alone.py"
        return
    done
    echo "skipped: Python without GIL, none is installed"
    return 77
}

arrow_cpp_streams() {
    local arrow library
    arrow=$("$PYTHON" -c 'import pyarrow; print(pyarrow.get_library_dirs()[0])') || return
    library=$(cd "$arrow" && echo libarrow.so.*)
    g++ -std=c++20 -Wall -Wextra -Werror -fPIC -shared "$EXTENSION/tests/arrow_cpp.cc" -o "$OUT/libarrow_cpp_streams.so" \
        -isystem "$(pyarrow_include)" -L"$arrow" "-l:$library" "-Wl,-rpath,$arrow"
}
peers() { with_module "$PYTHON" -X faulthandler "$EXTENSION/tests/peers.py" "$OUT/libarrow_cpp_streams.so" "$@"; }
exchange() { arrow_cpp_streams && with_note peers; }
exchange_finds() {
    finds peers --spoil <<'FAULTS'
values rows of pyarrow with pyarrow
method what pyarrow was asked
leak bytes of Arrow's that are held
FAULTS
}

step --needs python "cargo check, the feature alone, and abi3" alone
step --needs "python libpython" "cargo test, highest pyo3" highest
step --needs "python libpython" "cargo test, lowest pyo3" lowest
step --needs "python libpython valgrind" "the tests, under valgrind" grind
step --needs "python libpython" "the example of its documentation" documentation
step --needs python "the extension: fmt, clippy" lint_extension
step --needs python "the extension: maturin build" module
step --needs python "the extension by itself" alone_in "$PYTHON"
step --needs python "the same build in other Pythons" other_pythons
step --needs python "a build for Python without GIL" free_threaded
step --needs python "the extension and its peers" exchange
step --needs python "the extension and its peers: a difference is found" exchange_finds

exchanged

finish
