//! Links the CUDA driver for tests, and a library that only has its name.
//!
//! Both have the name that cudarc looks for as their soname: once a test has loaded one by its path, the loader gives
//! it to whoever asks for that name.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=driver");
    println!("cargo::rerun-if-changed=stub");
    println!("cargo::rerun-if-env-changed=CFLAGS");
    // sonames, threads and symbol maps as Linux has them; elsewhere the tests say that they are skipped.
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if !linux || env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    library("driver", &["-Wl,--version-script=driver/exports.map", "-lpthread"]);
    library("stub", &[]);
}

/// Links the C files of a folder to a `libcuda.so` of that folder's name, and tells the crate where it is.
fn library(folder: &str, arguments: &[&str]) {
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join(folder);
    fs::create_dir_all(&out).expect("a folder for the library");
    let library = out.join("libcuda.so");
    let mut sources: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of the C files")
        .map(|file| file.expect("its files").path())
        .filter(|file| file.extension().is_some_and(|end| end == "c"))
        .collect();
    sources.sort();

    let mut compiler = cc::Build::new()
        .std("gnu11")
        .pic(true)
        .debug(true)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .get_compiler()
        .to_command();
    // Not for a sanitizer, even if the tests are: a library that is loaded finds no run-time library in the executable.
    // What the driver allocates, locks and copies the sanitizers see all the same, by the C library's functions.
    compiler
        .args(["-fno-sanitize=all", "-shared", "-Wl,-soname,libcuda.so", "-o"])
        .arg(&library)
        .args(&sources)
        .args(arguments);
    let status = compiler.status().expect("the C compiler starts");
    assert!(status.success(), "{compiler:?}");
    println!("cargo::rustc-env=CUDA_{}={}", folder.to_uppercase(), library.display());
}
