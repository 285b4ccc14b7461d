//! Compiles nanoarrow's C library for the bench that is measured against it, if the environment says where it is.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=nanoarrow.c");
    println!("cargo::rerun-if-env-changed=NANOARROW_C");
    println!("cargo::rustc-check-cfg=cfg(nanoarrow)");
    // The folder that has nanoarrow/nanoarrow.h and nanoarrow/common/.
    let Some(root) = env::var_os("NANOARROW_C").map(PathBuf::from) else {
        return;
    };
    let common = root.join("nanoarrow/common");
    let files = fs::read_dir(&common).expect("the folder of nanoarrow's C files");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("its files").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "c"));
    files.sort();
    cc::Build::new()
        .opt_level(2)
        .define("NDEBUG", None)
        .include(&root)
        .files(files)
        .file("nanoarrow.c")
        .std("c99")
        .warnings(false)
        .compile("bench_nanoarrow");
    println!("cargo::rustc-cfg=nanoarrow");
}
