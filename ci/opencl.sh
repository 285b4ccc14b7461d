#!/usr/bin/env bash
# Arrays on an OpenCL device, PoCL's on the CPU: the example of a waiter for a runtime that the crate does not know.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=ci/sanitize.sh
. ci/sanitize.sh
group opencl

EXAMPLE=(-p arrow-device-abi-opencl-example)

# opencl3 loads the library when it is used: neither program may name it.
not_linked() {
    cargo build "${EXAMPLE[@]}" || return
    local needed
    needed=$(readelf -d target/debug/opencl) || return
    ! grep OpenCL <<<"$needed"
}

# Without a device every test says that it is skipped, and what needs none still runs.
no_device() {
    local out tests said
    out=$(OCL_ICD_VENDORS=/nowhere REQUIRE_ALL=0 cargo test "${EXAMPLE[@]}" --test opencl 2>&1) || { echo "$out"; return 1; }
    tests=$(sed -nE 's/^running ([0-9]+) tests$/\1/p' <<<"$out")
    said=$(grep -c 'skipped: .*, no OpenCL device' <<<"$out")
    echo "$said of $tests skipped"
    [ "$said" = "$tests" ]
}

# PoCL's threads end with a signal stack of their own, which AddressSanitizer would take for its.
address_opencl() { ASAN_OPTIONS=$ASAN_OPTIONS:use_sigaltstack=0 address "${EXAMPLE[@]}"; }

step "nothing of OpenCL is linked" not_linked
step "the tests, where there is no device" no_device
step --needs opencl "cargo test" cargo test "${EXAMPLE[@]}"
step --needs opencl "AddressSanitizer" address_opencl

finish
