#!/usr/bin/env bash
# The proof of src/raw/layout.rs against headers that others wrote. What feature `bindgen` says of a header that cannot be
# used, or without libclang, is tested in tests/foreign_header.rs.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group bindgen

export CARGO_TARGET_DIR=$CI_DIR/build-bindgen

# Cargo's words are quoted, for a warning is what one of these steps looks for.
cargo_check() {
    local out rc
    out=$(cargo check "${CRATE[@]}" --lib --features bindgen 2>&1)
    rc=$?
    sed 's/^/| /' <<<"$out"
    return "$rc"
}

# It has everything, so there is nothing to warn of.
arrow_header() {
    local out
    out=$(ARROW_DEVICE_ABI_HEADER=$(pyarrow_include)/arrow/c/abi.h cargo_check) || { echo "$out"; return 1; }
    echo "$out"
    ! grep -q '^| warning: arrow-device-abi@' <<<"$out" || { echo "a warning, and none was expected"; return 1; }
}
# The structs that nanoarrow has are proved, and each that it lacks is named once.
nanoarrow_header() {
    local out name lacks=(ArrowAsyncTask ArrowAsyncProducer ArrowAsyncDeviceStreamHandler)
    out=$(ARROW_DEVICE_ABI_HEADER=$NANOARROW/nanoarrow/nanoarrow_device.h ARROW_DEVICE_ABI_INCLUDE_PATHS=$NANOARROW \
        cargo_check) || { echo "$out"; return 1; }
    echo "$out"
    for name in "${lacks[@]}"; do
        grep -qE "^\| warning: .*\b$name\b" <<<"$out" || { echo "no warning names $name"; return 1; }
    done
    for name in ArrowSchema ArrowArray ArrowArrayStream ArrowDeviceArray ArrowDeviceArrayStream; do
        ! grep -qE "^\| warning: .*\b$name\b" <<<"$out" || { echo "says that $name is lacking"; return 1; }
    done
    echo "note: lacks ${lacks[*]}, and the build says so"
}

# The proof is really made against that file: each of these changes to it must fail the proof, not the generation.
altered_arrow_header() {
    local change dir=$CI_DIR/altered header out count=0
    rm -rf "$dir" && mkdir -p "$dir" || return
    header=$dir/abi.h
    while IFS= read -r change; do
        sed -E "$change" "$(pyarrow_include)/arrow/c/abi.h" >"$header" || return
        ! cmp -s "$header" "$(pyarrow_include)/arrow/c/abi.h" || { echo "changes nothing: $change"; return 1; }
        out=$(ARROW_DEVICE_ABI_HEADER=$header cargo_check) && { echo "accepted: $change"; return 1; }
        grep -qE '^\| error(\[E[0-9]+\])?: ' <<<"$out" && grep -q 'src/raw/layout.rs' <<<"$out" ||
            { echo "$out"; echo "fails elsewhere: $change"; return 1; }
        count=$((count + 1))
    done <<'SED'
s/int64_t reserved\[3\]/int64_t reserved[2]/
s/typedef int32_t ArrowDeviceType/typedef uint32_t ArrowDeviceType/
s/(define ARROW_DEVICE_CUDA_HOST) 3/\1 5/
s/(void \(\*request\)\(struct ArrowAsyncProducer\* self, )int64_t/\1uint64_t/
SED
    echo "note: $count alterations, each refused"
}

step --needs "libclang python" "Arrow C++'s abi.h, from the pyarrow wheel" arrow_header
step --needs "libclang python" "an altered abi.h is refused" altered_arrow_header
step --needs "libclang python nanoarrow_c" "nanoarrow's device header" nanoarrow_header

finish
