//! `INCLUDE_DIR` and `HEADER` in the build script of another crate: `tests/dependent/`.

use std::path::Path;

use arrow_device_abi::raw::ArrowDeviceArray;
use arrow_device_abi_support::compile::cargo;

#[test]
fn another_crate_compiles_c_against_the_header() {
    let output = cargo(Path::new(env!("CARGO_MANIFEST_DIR")), "run")
        .args(["--quiet", "--package", "arrow-device-abi-dependent", "--target-dir"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dependent"))
        .output()
        .expect("cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let size = size_of::<ArrowDeviceArray>();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).lines().collect::<Vec<_>>(),
        ["by folder", "by text"].map(|way| format!("{way}: {size} bytes, 5 rows on CUDA:7, released 1 time")),
        "{errors}"
    );
}
