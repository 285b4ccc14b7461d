//! The CUDA driver for tests, from Rust.
#![cfg(feature = "cuda")]

mod driver;
mod foreign;
mod values;

pub use driver::{
    CONTEXTS, DEINITIALIZED, Driver, EVENTS, INVALID_CONTEXT, INVALID_HANDLE, MEMORY, STREAMS, load_stub,
};
pub use foreign::{Foreign, ForeignEvent, array_of};
pub use values::{bytes, copy_out, current_context, in_no_context, on_a_thread, pointer, read};
