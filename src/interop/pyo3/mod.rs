//! Python: the Arrow PyCapsule protocol, device methods included, with pyo3.
//!
//! Structs travel between Python libraries in capsules, one kind of struct a name (P1). [`to_capsule`] and
//! [`from_capsule`] make and take them, [`to_capsules`] and [`from_capsules`] the pairs of schema and array;
//! [`import_schema`], [`import_device_array`] and [`import_device_stream`] ask any object for what it has, its device
//! methods first. A class of one's own has the methods in a few lines each:
//!
//! ```
//! use arrow_device_abi::interop::pyo3::{check_request, import_device_array, to_capsules};
//! use arrow_device_abi::{ArrayNode, Device, ExportEvent, SchemaNode};
//! use pyo3::prelude::*;
//! use pyo3::types::PyDict;
//! use std::sync::Arc;
//!
//! /// An array of `int64`. On a GPU it would own device memory, and the event of the work that writes it.
//! struct Numbers(Arc<Vec<i64>>);
//!
//! // In a `#[pyclass]`: a `#[pymethods]` with #[pyo3(signature = (requested_schema=None, **kwargs))].
//! impl Numbers {
//!     fn __arrow_c_device_array__<'py>(
//!         &self,
//!         py: Python<'py>,
//!         requested_schema: Option<Bound<'py, PyAny>>,
//!         kwargs: Option<Bound<'py, PyDict>>,
//!     ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
//!         let schema = SchemaNode { format: "l", ..Default::default() }.export()?;
//!         // SAFETY: consumers pass capsules that keep to the protocol.
//!         unsafe { check_request(&schema, requested_schema.as_ref(), kwargs.as_ref()) }?;
//!         let buffers = [std::ptr::null(), self.0.as_ptr().cast()];
//!         let node = ArrayNode { length: self.0.len().try_into()?, buffers: &buffers, ..Default::default() };
//!         // SAFETY: the values are written and of the schema's type, and the `Arc` that is kept keeps them.
//!         let array = unsafe { node.export_on(Device::CPU, ExportEvent::Synchronized, Arc::clone(&self.0)) }?;
//!         // SAFETY: the array is one of this schema.
//!         unsafe { to_capsules(py, schema, array) }
//!     }
//! }
//!
//! /// Takes an array of any library.
//! fn device_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
//!     // SAFETY: whoever has the methods keeps to the protocol.
//!     let (_schema, array) = unsafe { import_device_array(object, None) }?;
//!     Ok(array.device().to_string())
//! }
//! ```
//!
//! The host's methods are made likewise: `to_capsules` of an [`OwnedArray`](crate::OwnedArray) is what
//! `__arrow_c_array__` returns, [`to_capsule`] of a schema or stream what the others do. A producer whose data is not in
//! host memory has the device methods only (P6). Nothing is copied on the way, from device to device least of all (P5).
//!
//! # The GIL, and threads
//!
//! Python's objects need the GIL, structs do not: they can be used and released on any thread, with or without it. So
//! what a struct of yours keeps alive must take the GIL itself if its end needs it (a [`Py`](pyo3::Py) sees to that), and
//! whoever calls a struct's callbacks should not hold it, because they may wait for a thread that needs it: read and drop
//! foreign streams within [`Python::detach`](pyo3::Python::detach). The capsules of this module end that way.
//!
//! # Why so much of this is unsafe
//!
//! A capsule's name is all that says what it points to, and safe Rust can put any pointer behind any name.

mod capsule;
mod compat;
mod errors;
mod import;
mod request;

pub use capsule::{CapsuleArray, CapsuleStruct, from_capsule, from_capsules, to_capsule, to_capsules};
pub use import::{import_device_array, import_device_stream, import_schema};
pub use request::check_request;
