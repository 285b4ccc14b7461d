//! Other crates' types, one file and one feature a crate.

#[cfg(feature = "arrow")]
pub mod arrow;
