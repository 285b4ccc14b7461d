//! The giving wing: arrays, schemas and streams out of Rust.

mod array;
#[cfg(feature = "async")]
mod async_stream;
mod error;
mod fits;
mod schema;
mod stream;
mod tree;

pub use array::{ArrayNode, ExportEvent};
#[cfg(feature = "async")]
pub use async_stream::{AsyncBatch, Drive, Driven, IterStream};
pub use error::{ExportError, ExportErrorKind};
pub use schema::SchemaNode;
pub use stream::StreamFailure;
