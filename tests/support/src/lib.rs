//! What the tests of arrow-device-abi share: the C side, compiled against the crate's header, and helpers.

use std::io::{self, Write};

pub mod c_layout;
pub mod compile;

/// Says that something was not tested, and why: past the test harness, which would keep it to itself.
///
/// # Panics
///
/// If the environment has `REQUIRE_ALL=1`: then there is no reason not to test.
pub fn skip(what: &str, why: &str) {
    let line = format!("skipped: {what}, {why}\n");
    // Unlike `eprintln!`, this is not captured. One write, so that lines of several tests do not mix.
    io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    assert!(std::env::var_os("REQUIRE_ALL").is_none_or(|all| all != "1"), "REQUIRE_ALL=1, but {line}");
}
