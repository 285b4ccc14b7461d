//! Structs out of the fuzzer's bytes: any shape, any numbers, and memory that is real.
//!
//! What a consumer has to believe holds: a pointer that is not null points to a struct, or to as many bytes as the
//! numbers beside it say. Everything else is the fuzzer's. Each buffer is an allocation of its own with not a byte
//! more, so that AddressSanitizer sees a read beyond what the structs promise.

mod arena;
mod input;
mod tree;

pub use arena::Arena;
pub use input::Input;
pub use tree::Pair;
