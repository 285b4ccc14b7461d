#!/usr/bin/env bash
# What C compilers say of include/arrow_device_abi.h against what Rust asserts: the table of numbers is taken out of
# src/raw/layout.rs and compiled as C, with gcc and with clang's backends for other systems.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group probe

PROBE=$CI_DIR/probe.c

# MODEL is a column of that table: 0 is 64-bit, 1 is ILP32 with int64_t on 4 bytes, 2 is ILP32 with int64_t on 8.
generate() {
    sed -n '/^numbers! {/,/^}/p' src/raw/layout.rs | tr '\n' ' ' |
        grep -oE '[A-Z][A-Za-z]+ \[[^]]*\], [A-Z]+|[a-z_]+ \[[^]]*\]' |
        sed -E 's/[],[]/ /g' | awk '
            BEGIN {
                print "#include <stddef.h>\n#include \"arrow_device_abi.h\"";
                print "#define NUMBER(a, b, c) (MODEL == 0 ? a : MODEL == 1 ? b : c)";
                print "#define WIDE NUMBER(8, 4, 8)\n#define POINTER NUMBER(8, 4, 4)";
            }
            function number() { return "NUMBER(" $2 ", " $3 ", " $4 ")" }
            /^[A-Z]/ {
                name = $1;
                printf "_Static_assert(sizeof(struct %s) == %s, \"size of %s\");\n", name, number(), name;
                printf "_Static_assert(_Alignof(struct %s) == %s, \"alignment of %s\");\n", name, $5, name;
            }
            /^[a-z]/ {
                printf "_Static_assert(offsetof(struct %s, %s) == %s, \"offset of %s::%s\");\n", \
                    name, $1, number(), name, $1;
            }
            END { print "_Static_assert(sizeof(ArrowDeviceType) == 4, \"size of ArrowDeviceType\");" }
        ' >"$PROBE" || return
    cat "$PROBE"
    # A table in a form that is not read here must not pass as an empty one.
    local sizes offsets
    sizes=$(grep -c 'sizeof(struct' "$PROBE")
    offsets=$(grep -c 'offsetof(' "$PROBE")
    [ "$sizes" = 8 ] && [ "$offsets" = "$(fields)" ] ||
        { echo "$sizes structs and $offsets fields in src/raw/layout.rs; 8 and $(fields) in the header"; return 1; }
    echo "note: 8 structs, $offsets fields"
}
# Declarations inside the header's structs.
fields() { gcc -E -P include/arrow_device_abi.h | awk '/^struct .*\{/ { s = 1 } s' | grep -cE '^ .*;$'; }

agrees() { # MODEL COMPILER…
    local model=$1
    shift
    "$@" -std=c11 -Wall -Wextra -Werror -DMODEL="$model" -I include -c "$PROBE" -o "$CI_DIR/probe.o"
}
refuses() { # MODEL TEXT COMPILER…
    local out
    out=$(agrees "$1" "${@:3}" 2>&1) && { echo "a wrong data model was accepted"; return 1; }
    grep -F "$2" <<<"$out"
}
zig_agrees() { # TARGET:MODEL…
    local target
    for target in "$@"; do
        agrees "${target#*:}" "$PYTHON" -m ziglang cc -target "${target%:*}" || { echo "on ${target%:*}"; return 1; }
    done
    echo "note: $(sed 's/:[0-9]//g' <<<"$*")"
}
zig_refuses() { refuses "$2" "$3" "$PYTHON" -m ziglang cc -target "$1"; }

step "the table of src/raw/layout.rs as C" generate
step "gcc -m64" agrees 0 gcc -m64
step --needs multilib "gcc -m32" agrees 1 gcc -m32
step --needs python "zig cc, 64-bit systems" zig_agrees x86_64-windows-gnu:0 x86_64-macos:0 aarch64-macos:0 \
    aarch64-linux-musl:0 riscv64-linux-musl:0 s390x-linux-musl:0
step --needs python "zig cc, 32-bit systems" zig_agrees x86-windows-gnu:2 wasm32-wasi:2 arm-linux-musleabihf:2 \
    powerpc-linux-musleabi:2 x86-linux-musl:1
step --needs multilib "a wrong data model is refused by gcc -m32" refuses 0 "size of ArrowDeviceArray" gcc -m32
step "a wrong data model is refused by gcc -m64" refuses 2 "size of ArrowSchema" gcc -m64
step --needs python "a wrong data model is refused by zig cc, wasm32" \
    zig_refuses wasm32-wasi 1 "alignment of ArrowDeviceArray"

finish
