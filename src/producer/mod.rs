//! The giving wing: arrays, schemas and streams out of Rust.

mod array;
mod error;
mod fits;
mod schema;
mod stream;
mod tree;
mod walk;

pub use array::{ArrayNode, ExportEvent};
pub use error::{ExportError, ExportErrorKind};
pub use schema::SchemaNode;
pub use stream::StreamFailure;
