//! Data of one's own.

use std::sync::Arc;

use arrow_device_abi::interop::pyo3::{check_request, to_capsule, to_capsules};
use arrow_device_abi::{
    ArrayNode, Device, ExportEvent, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema, SchemaNode,
    StreamFailure,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::Pair;

/// The numbers from 0 on as `int64`, in host memory. On a GPU this would own device memory and an event.
///
/// Every export shares the same memory, which lives until the last of them is released.
#[pyclass(frozen)]
pub struct Range(Arc<Vec<i64>>);

impl Range {
    fn schema() -> PyResult<OwnedSchema> {
        Ok(SchemaNode { format: "l", name: Some("range"), ..Default::default() }.export()?)
    }

    fn export(&self) -> PyResult<OwnedDeviceArray> {
        let buffers = [std::ptr::null(), self.0.as_ptr().cast()];
        let node = ArrayNode { length: self.0.len().try_into()?, buffers: &buffers, ..Default::default() };
        // SAFETY: the values are there, of the schema's type, and kept by the `Arc`.
        Ok(unsafe { node.export_on(Device::CPU, ExportEvent::Synchronized, Arc::clone(&self.0)) }?)
    }
}

#[pymethods]
impl Range {
    #[new]
    fn new(end: i64) -> Self {
        Self(Arc::new((0..end).collect()))
    }

    /// How many exports are alive.
    #[getter]
    fn exports(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_capsule(py, Self::schema()?)
    }

    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Pair<'py>> {
        let schema = Self::schema()?;
        // SAFETY: callers pass capsules that keep to the protocol.
        unsafe { check_request(&schema, requested_schema, kwargs) }?;
        // SAFETY: the array is one of this schema.
        unsafe { to_capsules(py, schema, self.export()?) }
    }

    /// The array twice.
    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let schema = Self::schema()?;
        // SAFETY: as above.
        unsafe { check_request(&schema, requested_schema, kwargs) }?;
        let arrays = [self.export()?, self.export()?].map(Ok::<_, StreamFailure>);
        let device_type = Device::CPU.device_type;
        // SAFETY: the arrays are of this schema.
        to_capsule(py, unsafe { OwnedDeviceArrayStream::from_iter(device_type, schema, arrays) })
    }
}
