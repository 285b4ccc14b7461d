//! Driving an asynchronous device stream into a handler.

mod block;
mod drive;
mod orders;

pub use drive::{AsyncBatch, Drive, Driven, IterStream};
