//! Arrays that somebody else made.

use std::mem;

use arrow_device_abi::interop::pyo3::{check_request, to_capsule, to_capsules};
use arrow_device_abi::{ArrayView, NoWait, OwnedDeviceArray, OwnedSchema};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{Pair, describe};

/// An array on any device. It can be passed on once.
#[pyclass(subclass)]
pub struct DeviceArray {
    schema: OwnedSchema,
    /// Released once it is passed on.
    array: OwnedDeviceArray,
}

/// An array that the host may read now, so that it has the host's method too.
#[pyclass(extends = DeviceArray)]
pub struct HostArray;

/// A class of Python has its methods or has them not: hence two, of which only one has those for host data.
pub fn wrap(py: Python<'_>, schema: OwnedSchema, array: OwnedDeviceArray) -> PyResult<Bound<'_, PyAny>> {
    let for_the_host = array.device().is_host_readable() && array.sync_event()?.is_none();
    let base = DeviceArray { schema, array };
    if for_the_host {
        Ok(Bound::new(py, PyClassInitializer::from(base).add_subclass(HostArray))?.into_any())
    } else {
        Ok(Bound::new(py, base)?.into_any())
    }
}

#[pymethods]
impl DeviceArray {
    /// Such as `CPU` or `CUDA:0`.
    #[getter]
    fn device(&self) -> String {
        self.array.device().to_string()
    }

    /// The event to wait for before the buffers are touched, if there is one: its kind, and its address.
    #[getter]
    fn event(&self) -> PyResult<Option<String>> {
        Ok(self.array.sync_event()?.map(|event| format!("{event:?}")))
    }

    /// Types, names, lengths.
    #[getter]
    fn structure(&self) -> PyResult<String> {
        // SAFETY: what was imported obeys the interface; nothing but the structs is read, and these are in host memory
        // whatever the device.
        let array = unsafe { ArrayView::from_raw(&self.array.as_raw().array) }?;
        Ok(describe::tree(self.schema.view()?, Some(array))?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_capsule(py, self.schema.try_clone()?)
    }

    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &mut self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Pair<'py>> {
        // SAFETY: callers pass capsules that keep to the protocol.
        unsafe { check_request(&self.schema, requested_schema, kwargs) }?;
        // SAFETY: the array is one of this schema.
        unsafe { to_capsules(py, self.schema.try_clone()?, mem::take(&mut self.array)) }
    }
}

#[pymethods]
impl HostArray {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        mut slf: PyRefMut<'py, Self>,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Pair<'py>> {
        let this = slf.as_super();
        // SAFETY: as above.
        unsafe { check_request(&this.schema, requested_schema, None) }?;
        let array = mem::take(&mut this.array).synchronize(&NoWait)?.into_host_array()?;
        // SAFETY: the array is one of this schema.
        unsafe { to_capsules(py, this.schema.try_clone()?, array) }
    }
}
