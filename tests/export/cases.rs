//! How many cases the property tests try.

use std::env;

use proptest::prelude::ProptestConfig;

/// `PROPTEST_CASES` if it is set, else `cases`, of which Miri tries a few. Nothing is written to disk.
pub fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let chosen = if env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else if cfg!(miri) {
        cases.div_ceil(50)
    } else {
        cases
    };
    ProptestConfig { cases: chosen, failure_persistence: None, ..default }
}
