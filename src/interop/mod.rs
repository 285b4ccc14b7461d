//! Other crates' types, one file and one feature a crate.

#[cfg(feature = "arrow")]
pub mod arrow;
#[cfg(feature = "pyo3")]
pub mod pyo3;
