//! A Python extension that takes Arrow data of any library and on any device, shows where it is, what it waits for and
//! how it is built, and passes it on. No Arrow library is linked, and no byte of data is copied.

use pyo3::prelude::*;

mod arrays;
mod describe;
mod range;
mod streams;

/// What the methods of the protocol that give arrays return: a pair of capsules, schema and array.
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymodule]
mod arrow_device_example {
    use arrow_device_abi::interop::pyo3::{import_device_array, import_device_stream, import_schema};

    use super::*;

    #[pymodule_export]
    use crate::arrays::{DeviceArray, HostArray};
    #[pymodule_export]
    use crate::range::Range;
    #[pymodule_export]
    use crate::streams::{DeviceStream, HostStream};

    /// The array of any object with `__arrow_c_device_array__` or `__arrow_c_array__`.
    #[pyfunction]
    fn array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: whoever has these methods returns capsules that keep to the protocol.
        let (schema, array) = unsafe { import_device_array(object, None) }?;
        arrays::wrap(object.py(), schema, array)
    }

    /// The stream of any object with `__arrow_c_device_stream__` or `__arrow_c_stream__`.
    #[pyfunction]
    fn stream<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as in `array`.
        let stream = unsafe { import_device_stream(object, None) }?;
        streams::wrap(object.py(), stream)
    }

    /// The structure of any object with `__arrow_c_schema__`.
    #[pyfunction]
    fn schema(object: &Bound<'_, PyAny>) -> PyResult<String> {
        // SAFETY: as in `array`.
        let schema = unsafe { import_schema(object) }?;
        Ok(describe::tree(schema.view()?, None)?)
    }
}
