#!/usr/bin/env bash
# nanoarrow's CUDA device as a peer, on the CUDA driver for tests.
#
# Leaves the library that NANOARROW_CUDA names for tests/cuda/tests/nanoarrow.rs: target/ci/cuda_peer/libnanoarrow_cuda.so

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group cuda_peer

OUT=$CI_DIR/cuda_peer
PEER=$OUT/libnanoarrow_cuda.so
TEST=(-p arrow-device-abi-cuda-tests --features cuda --test nanoarrow)
# The version comes from a feature of cudarc.
unset CUDARC_CUDA_VERSION

# It asks for libcuda.so, and gets its functions of whichever is loaded already: the one that it is linked with has none.
library() {
    rm -rf "$OUT"
    mkdir -p "$OUT" || return
    gcc -shared -Wl,-soname,libcuda.so tests/cuda/stub/empty.c -o "$OUT/libcuda.so" || return
    local file flags=(-std=gnu11 -g -O1 -fPIC -isystem "$NANOARROW" -isystem "$CUDA_HEADER" -DNANOARROW_DEVICE_WITH_CUDA)
    for file in "$NANOARROW"/nanoarrow/common/*.c "$NANOARROW"/nanoarrow/device/{device,cuda}.c; do
        gcc "${flags[@]}" -c "$file" -o "$OUT/$(basename "$file" .c).o" || return
    done
    gcc "${flags[@]}" -Wall -Wextra -Werror -c tests/cuda/peer/nanoarrow_cuda.c -o "$OUT/nanoarrow_cuda.o" || return
    # Bound when it is loaded: a function that the driver for tests lacks is told at once, by its name.
    gcc -shared -Wl,-z,now -Wl,--no-as-needed "$OUT"/*.o "$OUT/libcuda.so" -o "$PEER"
}

exchange() {
    NANOARROW_CUDA=$PEER cargo test "${TEST[@]}" || return
    echo "note: nanoarrow $(nanoarrow_version), cuda.h $CUDA_HEADER_VERSION"
}

under_valgrind() {
    local program
    program=$(cargo test "${TEST[@]}" --no-run 2>&1 | sed -nE 's/^ *Executable .*\((.*)\)$/\1/p')
    [ -n "$program" ] || { echo "no test program"; return 1; }
    NANOARROW_CUDA=$PEER valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite "$program" --test-threads=1
}

step --needs "python nanoarrow_c cuda_header" "build nanoarrow's CUDA device" library
step --needs "python nanoarrow_c cuda_header" "both ways" exchange
step --needs "python nanoarrow_c cuda_header valgrind" "both ways, under valgrind" under_valgrind

finish
