//! Streams that somebody else made.

use std::mem;
use std::sync::{Mutex, PoisonError};

use arrow_device_abi::interop::pyo3::{check_request, to_capsule};
use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{
    DeviceArrayStreamReader, NoWait, OwnedArrayStream, OwnedDeviceArrayStream, OwnedSchema, StreamFailure,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{arrays, describe};

/// A stream of arrays on any type of device: an iterator over them, that can be passed on once, as far as it is not read.
#[pyclass(subclass)]
pub struct DeviceStream {
    schema: OwnedSchema,
    device_type: ArrowDeviceType,
    /// Of a released stream once it is passed on. Streams are not `Sync`; the lock is never taken, since all that use it
    /// have `&mut`.
    reader: Mutex<DeviceArrayStreamReader>,
}

/// A stream on the CPU, that has the host's method too.
#[pyclass(extends = DeviceStream)]
pub struct HostStream;

/// The stream's callbacks may wait for threads that need the GIL, so none of them is called with it: not here, where it
/// is asked for its schema, not in `__next__`, and not in `drop`.
pub fn wrap(py: Python<'_>, stream: OwnedDeviceArrayStream) -> PyResult<Bound<'_, PyAny>> {
    let (schema, reader) = py.detach(move || {
        let mut reader = DeviceArrayStreamReader::new(stream);
        reader.schema().map(|schema| (schema, reader))
    })?;
    let device_type = reader.device_type();
    let base = DeviceStream { schema, device_type, reader: Mutex::new(reader) };
    if device_type == ArrowDeviceType::CPU {
        Ok(Bound::new(py, PyClassInitializer::from(base).add_subclass(HostStream))?.into_any())
    } else {
        Ok(Bound::new(py, base)?.into_any())
    }
}

impl Drop for DeviceStream {
    fn drop(&mut self) {
        let stream = self.take();
        // Where the interpreter is gone there is no GIL to let go of either.
        Python::try_attach(|py| py.detach(move || drop(stream)));
    }
}

impl DeviceStream {
    fn reader(&mut self) -> &mut DeviceArrayStreamReader {
        self.reader.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self) -> OwnedDeviceArrayStream {
        mem::replace(self.reader(), DeviceArrayStreamReader::new(Default::default())).into_inner()
    }
}

#[pymethods]
impl DeviceStream {
    /// Such as `CPU` or `CUDA`.
    #[getter]
    fn device_type(&self) -> String {
        self.device_type.to_string()
    }

    /// Types and names.
    #[getter]
    fn structure(&self) -> PyResult<String> {
        Ok(describe::tree(self.schema.view()?, None)?)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reader = self.reader();
        py.detach(|| reader.next_array())?
            .map(|array| arrays::wrap(py, self.schema.try_clone()?, array))
            .transpose()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_capsule(py, self.schema.try_clone()?)
    }

    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_stream__<'py>(
        &mut self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: callers pass capsules that keep to the protocol.
        unsafe { check_request(&self.schema, requested_schema, kwargs) }?;
        to_capsule(py, self.take())
    }
}

#[pymethods]
impl HostStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        mut slf: PyRefMut<'py, Self>,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.as_super();
        // SAFETY: as above.
        unsafe { check_request(&this.schema, requested_schema, None) }?;
        let arrays = DeviceArrayStreamReader::new(this.take());
        let arrays =
            arrays.map(|array| Ok::<_, StreamFailure>(array?.synchronize(&NoWait)?.into_host_array()?));
        // SAFETY: the arrays are of this schema.
        to_capsule(py, unsafe { OwnedArrayStream::from_iter(this.schema.try_clone()?, arrays) })
    }
}
