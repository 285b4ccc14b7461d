#!/usr/bin/env bash
# include/arrow_device_abi.h beside the headers that others wrote: alone, before them and after them, in C and in C++.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group headers

STRICT=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)
C99=(gcc -std=c99 -x c "${STRICT[@]}")
CPP11=(g++ -std=c++11 -x c++ "${STRICT[@]}")

OURS=arrow_device_abi.h
ARROW=arrow/c/abi.h
NANO=nanoarrow/nanoarrow_device.h

# Uses something of each part, so that a guard which hid one is seen; with STATISTICS=1 the statistics keys too, with
# ASYNC=1 the async part.
translation_unit() { # HEADER…
    local header
    for header in "$@"; do
        printf '#include "%s"\n' "$header"
    done
    cat <<'C'
int use(struct ArrowSchema* schema, struct ArrowArray* array, struct ArrowArrayStream* stream,
        struct ArrowDeviceArray* device_array, struct ArrowDeviceArrayStream* device_stream);
int use(struct ArrowSchema* schema, struct ArrowArray* array, struct ArrowArrayStream* stream,
        struct ArrowDeviceArray* device_array, struct ArrowDeviceArrayStream* device_stream) {
  ArrowDeviceType type = ARROW_DEVICE_CUDA_MANAGED;
  schema->flags |= ARROW_FLAG_NULLABLE | ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_MAP_KEYS_SORTED;
  device_array->array = *array;
  device_array->device_type = type;
  device_array->device_id = -1;
  device_array->reserved[2] = 0;
  device_stream->device_type = type;
  return stream->get_next(stream, array) + device_stream->get_next(device_stream, device_array);
}
#if !defined(ARROW_C_DATA_INTERFACE) || !defined(ARROW_C_DEVICE_DATA_INTERFACE) || \
    !defined(ARROW_C_STREAM_INTERFACE) || !defined(ARROW_C_DEVICE_STREAM_INTERFACE)
#error a guard has another name
#endif
C
    if [ -n "${ASYNC:-}" ]; then
        cat <<'C'
void use_async(struct ArrowAsyncDeviceStreamHandler* handler, struct ArrowAsyncTask* task);
void use_async(struct ArrowAsyncDeviceStreamHandler* handler, struct ArrowAsyncTask* task) {
  struct ArrowAsyncProducer* producer = handler->producer;
  producer->request(producer, 1);
  task->extract_data(task, 0);
}
#ifndef ARROW_C_ASYNC_STREAM_INTERFACE
#error a guard has another name
#endif
C
    fi
    if [ -n "${STATISTICS:-}" ]; then
        local what
        echo 'const char* key(int i);'
        echo 'const char* key(int i) { static const char* const keys[] = {'
        for what in AVERAGE_BYTE_WIDTH DISTINCT_COUNT MAX_BYTE_WIDTH MAX_VALUE MIN_VALUE NULL_COUNT ROW_COUNT; do
            echo "ARROW_STATISTICS_KEY_${what}_EXACT, ARROW_STATISTICS_KEY_${what}_APPROXIMATE,"
        done
        # Joined to a literal: they are macros, not variables.
        echo 'ARROW_STATISTICS_KEY_ROW_COUNT_EXACT "!"}; return keys[i]; }'
    fi
}

# Foreign headers are not ours to keep free of warnings; in ours none is accepted.
compile() { # in each language: HEADER…
    local flags=(-I "$ROOT/include")
    [[ " $* " != *" $ARROW "* ]] || flags+=(-isystem "$(pyarrow_include)")
    [[ " $* " != *" $NANO "* ]] || flags+=(-isystem "$NANOARROW")
    translation_unit "$@" | "${C99[@]}" "${flags[@]}" - || { echo "in C99: $*"; return 1; }
    translation_unit "$@" | "${CPP11[@]}" "${flags[@]}" - || { echo "in C++11: $*"; return 1; }
    echo "compiled: $*"
}

alone() {
    "${C99[@]}" include/$OURS && "${CPP11[@]}" include/$OURS || return
    ASYNC=1 STATISTICS=1 compile $OURS && ASYNC=1 STATISTICS=1 compile $OURS $OURS
}
# A translation unit that includes it: clang compiles a header given as such to something else.
alone_with_clang() {
    local warnings=(-Wall -Wextra -Wpedantic -Werror -I include -c -o "$CI_DIR/headers.o")
    ASYNC=1 STATISTICS=1 translation_unit $OURS >"$CI_DIR/headers.c" || return
    "$PYTHON" -m ziglang cc -std=c99 "${warnings[@]}" -x c "$CI_DIR/headers.c" &&
        "$PYTHON" -m ziglang c++ -std=c++11 "${warnings[@]}" -x c++ "$CI_DIR/headers.c"
}
# A conflicting definition must be seen, or the two orders prove nothing.
a_conflict() {
    local out
    out=$(translation_unit $OURS $ARROW | sed '1a #undef ARROW_C_DEVICE_DATA_INTERFACE' |
        "${C99[@]}" -I include -isystem "$(pyarrow_include)" - 2>&1) && { echo "accepted"; return 1; }
    grep -o 'redefinition of .struct ArrowDeviceArray.' <<<"$out"
}
with_arrow() {
    ASYNC=1 STATISTICS=1 compile $OURS $ARROW && ASYNC=1 STATISTICS=1 compile $ARROW $OURS
}
# nanoarrow's has no async part: ours brings it, whichever comes first.
with_nanoarrow() {
    ASYNC=1 compile $OURS $NANO && ASYNC=1 compile $NANO $OURS
}
with_all() {
    local a b c
    for a in $OURS $ARROW $NANO; do
        for b in $OURS $ARROW $NANO; do
            for c in $OURS $ARROW $NANO; do
                [ "$a" = "$b" ] || [ "$a" = "$c" ] || [ "$b" = "$c" ] || ASYNC=1 compile "$a" "$b" "$c" || return
            done
        done
    done
}
# nanoarrow's has the guard but not the keys.
statistics_after_nanoarrow() {
    STATISTICS=1 compile $OURS $NANO && STATISTICS=1 compile $NANO $OURS && STATISTICS=1 compile $NANO $OURS $ARROW
}

step "alone, C99 and C++11" alone
step --needs python "alone, with clang (zig cc)" alone_with_clang
step --needs python "before and after Arrow's abi.h" with_arrow
step --needs python "two definitions are refused" a_conflict
step --needs "python nanoarrow_c" "before and after nanoarrow's header" with_nanoarrow
step --needs "python nanoarrow_c" "all three in every order" with_all
step --needs "python nanoarrow_c" "statistics keys beside nanoarrow's header" statistics_after_nanoarrow

finish
