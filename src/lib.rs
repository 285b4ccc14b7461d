#![doc = include_str!("../README.md")]
//! # Where things are
//!
//! | | |
//! |---|---|
//! | the structs, constants and flags | [`raw`] |
//! | owning, moving, releasing them | [`Owned`], [`OwnedSchema`], [`OwnedArray`], [`OwnedArrayStream`], [`OwnedDeviceArray`], [`OwnedDeviceArrayStream`] |
//! | reading them | [`SchemaView`], [`ArrayView`], [`Metadata`], [`format`] |
//! | devices and events | [`Device`], [`SyncEvent`], [`EventWaiter`], [`ReadyDeviceArray`] |
//! | CUDA's events, with feature `cuda` | `cuda` |
//! | checking them | [`OwnedSchema::validate`], [`OwnedArray::validate`], [`OwnedArray::validate_contents`], [`StreamReader::checked`], [`Invalid`] |
//! | sizes and copies | [`ReadyDeviceArray::to_host`], [`ReadyDeviceArray::buffer_sizes`], [`DeviceMemory`], [`HostMemory`] |
//! | draining a stream | [`StreamReader`], [`StreamError`] |
//! | making them | [`ArrayNode`], [`SchemaNode`], [`OwnedArrayStream::from_iter`], [`OwnedDeviceArrayStream::from_iter`], [`StreamFailure`] |
//! | asynchronous streams (feature `async`) | `AsyncReceiver`, `AsyncTask`, `AsyncHandler::drive`, `Blocking` |
//! | DLPack's devices | [`Device::from_dlpack`], [`Device::to_dlpack`] |
//! | error codes | [`errno`] |
//! | other crates' types | `interop::arrow` and `interop::pyo3`, each with a feature of its name |
//! | the C header | [`INCLUDE_DIR`], [`HEADER`] |
//!
//! Letters with numbers, such as D5, name the rules of the specification in the table of `tests/README.md`, where each
//! has its tests beside it; those with a C are faults that other projects had.
#![no_std]
#![deny(
    missing_docs,
    missing_debug_implementations,
    unsafe_op_in_unsafe_fn,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::missing_safety_doc,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::todo,
    clippy::unimplemented,
    clippy::indexing_slicing,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects,
    clippy::must_use_candidate,
    clippy::doc_markdown
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "async")]
mod async_handler;
mod bits;
#[cfg(feature = "async")]
mod blocking;
mod consumer;
mod copy;
#[cfg(feature = "cuda")]
pub mod cuda;
mod device;
pub mod errno;
pub mod format;
#[cfg(any(feature = "arrow", feature = "pyo3"))]
pub mod interop;
mod owned;
mod panics;
mod producer;
pub mod raw;
mod stream_error;
#[cfg(feature = "async")]
mod sync;
mod view;
mod walk;
#[cfg(feature = "async")]
mod watched;

#[cfg(feature = "async")]
pub use async_handler::AsyncHandler;
#[cfg(feature = "async")]
pub use blocking::Blocking;
pub use consumer::*;
pub use copy::{
    BufferSizes, CopyError, CopyOptions, DeviceMemory, HostMemory, NotForTheHost, Offsets, Transfer,
};
pub use device::{Device, EventPtr, NotInDlpack, SyncEvent, UnexpectedEvent};
pub use owned::{
    Owned, OwnedArray, OwnedArrayStream, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema, Release,
    TakeError,
};
pub use producer::{ArrayNode, ExportError, ExportErrorKind, ExportEvent, SchemaNode, StreamFailure};
#[cfg(feature = "async")]
pub use producer::{AsyncBatch, Drive, Driven, IterStream};
pub use stream_error::StreamError;
pub use view::{ArrayView, BinaryViewBuffers, Metadata, MetadataBuf, MetadataPairs, SchemaView, ViewError};

/// Folder of the crate's C header, for build scripts of crates that compile C against it.
///
/// A build-dependency on this crate is enough, and links nothing:
///
/// ```no_run
/// # #[cfg(any())]
/// cc::Build::new().include(arrow_device_abi::INCLUDE_DIR).file("src/glue.c").compile("glue");
/// ```
pub const INCLUDE_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// The crate's C header, text and all: `arrow_device_abi.h` in [`INCLUDE_DIR`].
pub const HEADER: &str = include_str!("../include/arrow_device_abi.h");
