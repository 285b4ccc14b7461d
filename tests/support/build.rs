//! Compiles the C side of the tests against the crate's header.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let target = env::var("TARGET").expect("cargo sets TARGET");
    println!("cargo::rustc-env=SUPPORT_TARGET={target}");

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../include/arrow_device_abi.h");
    println!("cargo::rerun-if-changed=c");
    let files =
        fs::read_dir("c").expect("the folder of the C files").map(|file| file.expect("its files").path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "c")).collect();
    files.sort();
    // What the benches compare with is C as most is compiled, whatever cargo's profile would say.
    let optimized = env::var("OPT_LEVEL").is_ok_and(|level| level != "0");
    cc::Build::new()
        .opt_level(if optimized { 2 } else { 0 })
        .include("../../include")
        .include("c")
        .files(files)
        .std("c99")
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Wpedantic")
        .warnings_into_errors(true)
        .compile("arrow_device_abi_support");
}
