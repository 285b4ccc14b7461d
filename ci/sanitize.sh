# shellcheck shell=bash
# Cargo commands under AddressSanitizer and ThreadSanitizer, for the scripts of this folder.
#
#   address ARGUMENTS…   `cargo test ARGUMENTS…` under AddressSanitizer with leak detection
#   thread ARGUMENTS…    under ThreadSanitizer; needs rust_std, and thread_runtime called before

# A target is named, so that build scripts and macros are compiled without the sanitizer.
HOST=x86_64-unknown-linux-gnu

# The tests' C code is compiled with the same sanitizer; gcc's calls end in the run-time library that rustc links.
with_sanitizer() { # address|thread CARGO-ARGUMENTS…
    local name=$1
    shift
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$name" RUSTDOCFLAGS="-Zsanitizer=$name" \
        CFLAGS="-fsanitize=$name -fno-omit-frame-pointer" CARGO_TARGET_DIR=$CI_DIR/build-$name "$@"
}

address() { with_sanitizer address cargo test --no-fail-fast --target $HOST "$@"; }
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:halt_on_error=1

thread() { RUSTC=$RUST_STD/rustc with_sanitizer thread cargo test --no-fail-fast -Zbuild-std --target $HOST "$@"; }
export TSAN_OPTIONS=halt_on_error=1

# Debian's compiler comes without the sanitizers' run-time libraries; those of the machine's toolchain fit it where both
# stand on one major version of LLVM.
thread_runtime() {
    local lib=lib/rustlib/$HOST/lib theirs llvm_here llvm_there
    theirs=$(find "$(rustc --print sysroot)/$lib" -name 'librustc-*_rt.tsan.a' | head -1)
    llvm_here=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    llvm_there=$("$RUST_STD/rustc" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    if [ -z "$theirs" ] || [ "$llvm_here" != "$llvm_there" ]; then
        echo "skipped: ThreadSanitizer, no run-time library for LLVM $llvm_there in the toolchain (LLVM $llvm_here)"
        exit 77
    fi
    cp "$theirs" "$RUST_STD/usr/$lib/librustc-stable_rt.tsan.a"
}
