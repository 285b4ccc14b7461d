//! What an object of any library has, device methods first.

use alloc::format;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::types::PyAnyMethods;
use pyo3::{Bound, PyAny, PyErr, PyResult};

use super::capsule::{from_capsule, from_capsules, to_capsule};
use super::compat::detach;
use crate::consumer::ArrayStreamReader;
use crate::owned::{OwnedArrayStream, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema};
use crate::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceType};

const SCHEMA: &str = "__arrow_c_schema__";
const ARRAY: &str = "__arrow_c_array__";
const STREAM: &str = "__arrow_c_stream__";
const DEVICE_ARRAY: &str = "__arrow_c_device_array__";
const DEVICE_STREAM: &str = "__arrow_c_device_stream__";

/// The schema of an object with `__arrow_c_schema__`: a type, a field, a schema, or data that has one.
///
/// # Errors
///
/// `TypeError` if the object has no such method; what the method raises; as [`from_capsule`].
///
/// # Safety
///
/// - As for [`from_capsule`], for what the method returns.
pub unsafe fn import_schema(object: &Bound<'_, PyAny>) -> PyResult<OwnedSchema> {
    let capsule = method(object, SCHEMA)?.ok_or_else(|| lacking(object, &[SCHEMA]))?.call0()?;
    // SAFETY: as the caller promises.
    unsafe { from_capsule(&capsule) }
}

/// The data of an object with `__arrow_c_device_array__` or else `__arrow_c_array__`, which is on the CPU (P6, P7).
///
/// `requested_schema` goes to the producer, which casts if it can and will (P8): the schema that comes back is that of
/// the array. Nothing is waited for; see [`OwnedDeviceArray::synchronize`].
///
/// # Errors
///
/// `TypeError` if the object has neither method; what the method raises; as [`from_capsules`].
///
/// # Safety
///
/// - As for [`from_capsule`], for what the method returns.
pub unsafe fn import_device_array(
    object: &Bound<'_, PyAny>,
    requested_schema: Option<OwnedSchema>,
) -> PyResult<(OwnedSchema, OwnedDeviceArray)> {
    if let Some(export) = method(object, DEVICE_ARRAY)? {
        let pair = call(&export, requested_schema)?;
        // SAFETY: as the caller promises.
        return unsafe { from_capsules(&pair) };
    }
    let export = method(object, ARRAY)?.ok_or_else(|| lacking(object, &[DEVICE_ARRAY, ARRAY]))?;
    let pair = call(&export, requested_schema)?;
    // SAFETY: as the caller promises.
    let (schema, array) = unsafe { from_capsules::<ArrowArray>(&pair) }?;
    Ok((schema, array.into()))
}

/// The stream of an object with `__arrow_c_device_stream__` or else `__arrow_c_stream__`, which is on the CPU (P6, P7).
///
/// `requested_schema` as in [`import_device_array`]. A host stream is asked for its schema at once.
///
/// Read the stream without the GIL, as in `py.detach(|| reader.next_array())`: its callbacks may wait for threads that
/// need it. Where they need it themselves, they take it.
///
/// # Errors
///
/// `TypeError` if the object has neither method; what the method raises; as [`from_capsule`]; what the schema of a host
/// stream fails with.
///
/// # Safety
///
/// - As for [`from_capsule`], for what the method returns.
pub unsafe fn import_device_stream(
    object: &Bound<'_, PyAny>,
    requested_schema: Option<OwnedSchema>,
) -> PyResult<OwnedDeviceArrayStream> {
    if let Some(export) = method(object, DEVICE_STREAM)? {
        let capsule = call(&export, requested_schema)?;
        // SAFETY: as the caller promises.
        return unsafe { from_capsule(&capsule) };
    }
    let export = method(object, STREAM)?.ok_or_else(|| lacking(object, &[DEVICE_STREAM, STREAM]))?;
    let capsule = call(&export, requested_schema)?;
    // SAFETY: as the caller promises.
    let stream = unsafe { from_capsule::<ArrowArrayStream>(&capsule) }?;
    detach(object.py(), || on_the_cpu(stream)).map_err(PyErr::from)
}

fn on_the_cpu(stream: OwnedArrayStream) -> Result<OwnedDeviceArrayStream, crate::StreamError> {
    let mut reader = ArrayStreamReader::new(stream);
    let schema = reader.schema()?;
    let arrays = reader.map(|array| array.map(OwnedDeviceArray::from));
    // SAFETY: the arrays are those of a stream of this schema.
    Ok(unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, schema, arrays) })
}

/// A method, or `None` if the object has none of this name. Other errors than that are the object's.
fn method<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match object.getattr(name) {
        Ok(method) => Ok(Some(method)),
        Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn lacking(object: &Bound<'_, PyAny>, methods: &[&str]) -> PyErr {
    let class = object.get_type();
    PyTypeError::new_err(format!("an object with {} was expected, {class} has none", methods.join(" or ")))
}

fn call<'py>(
    export: &Bound<'py, PyAny>,
    requested_schema: Option<OwnedSchema>,
) -> PyResult<Bound<'py, PyAny>> {
    match requested_schema {
        None => export.call0(),
        Some(schema) => export.call1((to_capsule(export.py(), schema)?,)),
    }
}
