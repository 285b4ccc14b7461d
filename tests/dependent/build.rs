//! C code of one's own against the header of arrow-device-abi, in the two ways there are.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/glue.c");

    compile(Path::new(arrow_device_abi::INCLUDE_DIR), "by_folder");

    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("include");
    fs::create_dir_all(&copy).expect("a folder for the header");
    fs::write(copy.join("arrow_device_abi.h"), arrow_device_abi::HEADER).expect("a copy of the header");
    compile(&copy, "by_text");
}

fn compile(include: &Path, way: &str) {
    cc::Build::new()
        .include(include)
        .file("src/glue.c")
        .define("WAY", way)
        .warnings_into_errors(true)
        .compile(&format!("glue_{way}"));
}
