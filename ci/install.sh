# shellcheck shell=bash
# What CI needs beside Rust and gcc, and how to get it. Everything but Debian packages goes under target/ci/.
#
# `need NAME` brings a tool when a step asks for it. A stamp is written when an installation is complete, so what an
# interrupted one left is thrown away and a finished one is used again.

# In the order in which they are wanted.
TOOLS=(
    libclang
    multilib
    valgrind
    opencl
    python
    libpython
    nanoarrow_c
    cuda_header
    cargo_hack
    cargo_fuzz
    rust_msrv
    rust_std
)

# The compiler that `rust-version` in Cargo.toml promises; Debian bookworm has just this one.
MSRV=1.85
CARGO_HACK_VERSION=0.6.46
# Of PyPI's nvidia-cuda-runtime-cu12, which carries the driver's header.
CUDA_HEADER_VERSION=12.9.79
CARGO_FUZZ_VERSION=0.13.2

RUST_MSRV=$CI_DIR/rust-msrv
RUST_STD=$CI_DIR/rust-std
VENV=$CI_DIR/venv
PYTHON=$VENV/bin/python
# Has nanoarrow/nanoarrow.h, nanoarrow/nanoarrow_device.h and the C files beside them.
NANOARROW=$CI_DIR/nanoarrow
# Has cuda.h.
CUDA_HEADER=$CI_DIR/cuda-header
export PATH=$CI_DIR/cargo/bin:$PATH
export POCL_CACHE_DIR=$CI_DIR/pocl-cache
export ZIG_GLOBAL_CACHE_DIR=$CI_DIR/zig-cache ZIG_LOCAL_CACHE_DIR=$CI_DIR/zig-cache

# The folder of Arrow C++'s headers that the pyarrow wheel carries.
pyarrow_include() { "$PYTHON" -c 'import pyarrow; print(pyarrow.get_include())'; }

# For crates that use pyo3: the Python to build for. Programs with a Python of their own need more, `with_python`.
export PYO3_PYTHON=$PYTHON

# Runs a command whose programs load Python as a library, and find the venv's packages there.
with_python() {
    local lib home packages
    { read -r lib && read -r home && read -r packages; } < <("$PYTHON" -c 'import site, sys, sysconfig
print(sysconfig.get_config_var("LIBDIR"), sys.base_prefix, site.getsitepackages()[0], sep="\n")') || return
    LD_LIBRARY_PATH=$lib PYTHONHOME=$home PYTHONPATH=$packages "$@"
}

need() {
    local tool=$1 lock mark="$CI_DIR/not-installed/$1"
    "have_$tool" 2>/dev/null && return 0
    mkdir -p "$CI_DIR/not-installed"
    # Scripts that run side by side need the same tools.
    exec {lock}>"$CI_DIR/$tool.lock"
    flock "$lock"
    if ! "have_$tool" 2>/dev/null && [ "$(cat "$mark" 2>/dev/null)" != "$CI_RUN" ]; then
        step --or-skip "could not be installed" "install $tool" "install_$tool"
        "have_$tool" 2>/dev/null || printf '%s\n' "$CI_RUN" >"$mark"
    fi
    exec {lock}>&-
    "have_$tool" 2>/dev/null
}

stamped() { [ "$(cat "$CI_DIR/stamps/$1" 2>/dev/null)" = "$2" ]; }
stamp() { mkdir -p "$CI_DIR/stamps" && printf '%s\n' "$2" >"$CI_DIR/stamps/$1"; }
unstamp() { rm -f "$CI_DIR/stamps/$1"; }

# ---- Debian packages on the machine itself

apt_install() {
    local lock updated="$CI_DIR/apt-updated"
    [ "$(id -u)" = 0 ] || { echo "not root: install by hand: $*"; return 1; }
    exec {lock}>"$CI_DIR/apt.lock"
    flock "$lock"
    export DEBIAN_FRONTEND=noninteractive
    if [ "$(cat "$updated" 2>/dev/null)" != "$CI_RUN" ]; then
        # A source that cannot be read now may not be needed: the installation decides.
        apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update || true
        printf '%s\n' "$CI_RUN" >"$updated"
    fi
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install --no-install-recommends "$@" </dev/null
    local rc=$?
    exec {lock}>&-
    return "$rc"
}

have_libclang() { compgen -G '/usr/lib/llvm-*/lib/libclang[-.]*so*' | grep -qv cpp; }
install_libclang() { apt_install libclang-14-dev; }

have_multilib() {
    echo 'int main() { return 0; }' | gcc -m32 -x c - -o /dev/null && echo 'int main() {}' | g++ -m32 -x c++ - -o /dev/null
}
install_multilib() { apt_install gcc-multilib g++-multilib; }

have_valgrind() { valgrind --version >/dev/null; }
install_valgrind() { apt_install valgrind libc6-dbg; }

# An OpenCL device on the CPU, and the loader that finds it.
have_opencl() { compgen -G '/etc/OpenCL/vendors/pocl*.icd' >/dev/null && ldconfig -p | grep -q 'libOpenCL\.so\.1'; }
install_opencl() { apt_install pocl-opencl-icd ocl-icd-libopencl1; }

# ---- Python packages

python_stamp() { echo "$ROOT $(python3 -V) $(sha256sum <ci/requirements.txt)"; }
have_python() { stamped python "$(python_stamp)"; }
install_python() {
    unstamp python
    rm -rf "$VENV"
    python3 -m venv "$VENV" || { apt_install python3-venv && rm -rf "$VENV" && python3 -m venv "$VENV"; } || return
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --retries 5 --only-binary :all: \
        -r ci/requirements.txt || return
    "$PYTHON" -m pip freeze
    stamp python "$(python_stamp)"
}

# Python as a library, to link with: Debian has it in a package of its own.
have_libpython() {
    local flags
    have_python || return
    flags=$("$PYTHON" -c 'import sysconfig
v = sysconfig.get_config_vars()
print("-L" + v["LIBDIR"], "-lpython" + v["LDVERSION"])') || return
    # shellcheck disable=SC2086 # two flags
    echo 'int Py_IsInitialized(void); int main(void) { return Py_IsInitialized(); }' |
        gcc -x c - $flags -o /dev/null
}
install_libpython() {
    have_python || return
    have_libpython || apt_install "lib$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')-dev"
}

# The wheel has no C files; the source package has.
nanoarrow_version() { sed -n 's/^nanoarrow==//p' ci/requirements.txt; }
have_nanoarrow_c() { stamped nanoarrow_c "$(nanoarrow_version)"; }
install_nanoarrow_c() {
    local version part=$CI_DIR/nanoarrow.part
    version=$(nanoarrow_version)
    have_python || return
    unstamp nanoarrow_c
    rm -rf "$part" "$NANOARROW"
    mkdir -p "$part/backend" || return
    # pip asks the package's build backend for name and version even to download it, and the real one configures the
    # whole build for that, a minute long. PKG-INFO has the answer.
    cat >"$part/backend/mesonpy.py" <<BACKEND || return
import pathlib

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = pathlib.Path(folder, "nanoarrow-$version.dist-info")
    info.mkdir()
    (info / "METADATA").write_bytes(pathlib.Path("PKG-INFO").read_bytes())
    return info.name
BACKEND
    PYTHONPATH=$part/backend "$PYTHON" -m pip download --quiet --disable-pip-version-check --retries 5 --no-deps \
        --no-build-isolation --no-binary nanoarrow -d "$part" "nanoarrow==$version" || return
    tar -xzf "$part/nanoarrow-$version.tar.gz" -C "$part" || return
    mv "$part/nanoarrow-$version/subprojects/arrow-nanoarrow/src" "$NANOARROW" || return

    local major minor patch
    IFS=. read -r major minor patch <<<"$version"
    sed -e "s/@NANOARROW_VERSION_MAJOR@/$major/" -e "s/@NANOARROW_VERSION_MINOR@/$minor/" \
        -e "s/@NANOARROW_VERSION_PATCH@/$patch/" -e "s/@NANOARROW_VERSION@/$version/" \
        -e 's/@NANOARROW_NAMESPACE_DEFINE@//' \
        "$NANOARROW/nanoarrow/nanoarrow_config.h.in" >"$NANOARROW/nanoarrow/nanoarrow_config.h" || return
    ! grep -n @ "$NANOARROW/nanoarrow/nanoarrow_config.h" || return
    rm -rf "$part"
    stamp nanoarrow_c "$version"
}

# Not into the environment, where the libraries beside the header would be found too.
have_cuda_header() { stamped cuda_header "$CUDA_HEADER_VERSION"; }
install_cuda_header() {
    local part=$CI_DIR/cuda-header.part
    have_python || return
    unstamp cuda_header
    rm -rf "$part" "$CUDA_HEADER"
    "$PYTHON" -m pip download --quiet --disable-pip-version-check --retries 5 --no-deps --only-binary :all: -d "$part" \
        "nvidia-cuda-runtime-cu12==$CUDA_HEADER_VERSION" || return
    "$PYTHON" -m zipfile -e "$part"/*.whl "$part" || return
    mv "$part/nvidia/cuda_runtime/include" "$CUDA_HEADER" || return
    rm -rf "$part"
    stamp cuda_header "$CUDA_HEADER_VERSION"
}

# ---- cargo subcommands

have_cargo_hack() { [ "$(cargo hack --version)" = "cargo-hack $CARGO_HACK_VERSION" ]; }
install_cargo_hack() {
    # Unoptimised: it takes half the time to build, and only starts cargo.
    CARGO_TARGET_DIR=$CI_DIR/build-tools cargo install --debug --locked --version "=$CARGO_HACK_VERSION" \
        --root "$CI_DIR/cargo" --force cargo-hack
}

have_cargo_fuzz() { [ "$(cargo fuzz --version)" = "cargo-fuzz $CARGO_FUZZ_VERSION" ]; }
install_cargo_fuzz() {
    CARGO_TARGET_DIR=$CI_DIR/build-tools cargo install --debug --locked --version "=$CARGO_FUZZ_VERSION" \
        --root "$CI_DIR/cargo" --force cargo-fuzz
}

# ---- Debian's own Rust compilers, unpacked into a folder: other versions and targets than the machine's toolchain has

# The private list of packages of one architecture, which leaves the machine's own apt as it is. One list for each
# architecture: where one part of one fails to load, apt ignores that part for all of them.
apt_of() { # ARCH COMMAND…
    local arch=$1 dir=$APT_LISTS/$1
    shift
    if [ ! -e "$dir/apt.conf" ]; then
        mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" || return
        : >"$dir/state/status"
        cat >"$dir/apt.conf" <<CONF
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
Dir::State "$dir/state";
Dir::State::status "$dir/state/status";
Dir::Cache "$dir/cache";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "root";
CONF
        APT_CONFIG=$dir/apt.conf apt-get -q -q update || true
    fi
    APT_CONFIG=$dir/apt.conf "$@"
}

# Unpacks packages of one architecture into DIR.
unpack_debs() { # ARCH DIR PACKAGE…
    local arch=$1 dir=$2 deb
    shift 2
    mkdir -p "$dir/debs" || return
    (cd "$dir/debs" && apt_of "$arch" apt-get -q download "$@") || return
    for deb in "$dir"/debs/*.deb; do
        dpkg -x "$deb" "$dir" || return
    done
    rm -rf "${dir:?}/debs" "${dir:?}/usr/share"
}

# The compiler itself: rustc, its own libraries, LLVM, the standard library of the machine.
unpack_rustc() { # DIR VERSION
    local dir=$1 version=$2 std llvm
    std=$(apt_of amd64 apt-cache show "libstd-rust-web-dev=$version" |
        sed -nE 's/^Depends:.*(libstd-rust-web-[0-9.]+[0-9]).*/\1/p') || return
    llvm=$(apt_of amd64 apt-cache show "$std=$version" |
        sed -nE 's/^Depends:.*(libllvm[0-9]+).*/\1/p') || return
    unpack_debs amd64 "$dir" "rustc-web=$version" "$std=$version" "libstd-rust-web-dev=$version" "$llvm" libz3-4 || return

    local tool
    for tool in rustc rustdoc; do
        cat >"$dir/$tool" <<'WRAPPER' || return
#!/bin/sh
dir=$(dirname "$0")
LD_LIBRARY_PATH=$dir/usr/lib/x86_64-linux-gnu exec "$dir/usr/bin/TOOL" --sysroot "$dir/usr" "$@"
WRAPPER
        sed -i "s/TOOL/$tool/" "$dir/$tool" && chmod +x "$dir/$tool" || return
    done
    "$dir/rustc" -V || { apt_install libedit2 libxml2 libffi8 && "$dir/rustc" -V; }
}

debian_rust_version() { # PREFIX: the newest that begins with it
    apt_of amd64 apt-cache madison rustc-web | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' |
        grep "^${1//./\\.}" | sort -V | tail -1
}

fresh_apt_lists() {
    APT_LISTS=$CI_DIR/apt/$1
    rm -rf "$APT_LISTS"
}

have_rust_msrv() { stamped rust_msrv "$MSRV" && "$RUST_MSRV/rustc" -V >/dev/null; }
install_rust_msrv() {
    unstamp rust_msrv
    rm -rf "$RUST_MSRV"
    fresh_apt_lists rust_msrv
    local version
    version=$(debian_rust_version "$MSRV.")
    [ -n "$version" ] || { echo "Debian has no rustc-web $MSRV"; return 1; }
    unpack_rustc "$RUST_MSRV" "$version" || return
    unpack_debs i386 "$RUST_MSRV" "libstd-rust-web-dev=$version" || return
    unpack_debs arm64 "$RUST_MSRV" "libstd-rust-web-dev=$version" || return
    stamp rust_msrv "$MSRV"
}

# The newest compiler with the source of its standard library, for -Zbuild-std.
have_rust_std() { stamped rust_std yes && "$RUST_STD/rustc" -V >/dev/null; }
install_rust_std() {
    unstamp rust_std
    rm -rf "$RUST_STD"
    fresh_apt_lists rust_std
    local version
    version=$(debian_rust_version '')
    [ -n "$version" ] || { echo "Debian has no rustc-web"; return 1; }
    unpack_rustc "$RUST_STD" "$version" || return
    unpack_debs amd64 "$RUST_STD" "rust-web-src=$version" || return
    stamp rust_std yes
}
