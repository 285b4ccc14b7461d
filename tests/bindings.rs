//! `src/raw/bindings.rs` is what bindgen makes of `include/arrow_device_abi.h`, to the letter.
#![cfg(feature = "bindgen")]

use std::path::Path;
use std::{env, fs};

/// What to do when this fails because the header was meant to change.
const BLESS: &str = "ARROW_DEVICE_ABI_BLESS=1 cargo test --features bindgen --test bindings";

#[test]
fn checked_in_bindings_are_those_of_the_header() {
    let made = include_str!(concat!(env!("OUT_DIR"), "/portable.rs"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/raw/bindings.rs");
    if env::var_os("ARROW_DEVICE_ABI_BLESS").is_some_and(|bless| bless == "1") {
        fs::write(&path, made).expect("src/raw/bindings.rs");
    }
    let checked_in = fs::read_to_string(&path).expect("src/raw/bindings.rs");
    let differs = checked_in.lines().zip(made.lines()).position(|(a, b)| a != b);
    assert!(
        checked_in == made,
        "src/raw/bindings.rs is not what bindgen makes of include/arrow_device_abi.h, from line {} on; if the header \
         was meant to change: {BLESS}",
        differs.unwrap_or_else(|| checked_in.lines().count().min(made.lines().count())) + 1,
    );
}

/// Numbers of one target must not be in a file for all targets.
#[test]
fn checked_in_bindings_have_no_numbers_of_this_target() {
    let made = include_str!(concat!(env!("OUT_DIR"), "/portable.rs"));
    for number in ["size_of", "align_of", "offset_of"] {
        assert!(!made.contains(number), "{number}");
    }
    let fresh = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    assert!(
        fresh.contains("size_of::<ArrowDeviceArray>"),
        "the bindings of this build prove nothing of its target"
    );
}
