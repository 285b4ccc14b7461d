//! What the caller of an export method may ask for.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::types::{PyAnyMethods, PyDict, PyDictMethods};
use pyo3::{Bound, PyAny, PyResult};

use super::capsule::{CapsuleStruct, from_capsule};
use crate::owned::OwnedSchema;
use crate::raw::ArrowSchema;
use crate::view::{SchemaView, ViewError};

/// Checks the arguments of an export method whose data has the schema `schema`; first thing in each of them.
///
/// The host methods have no `kwargs`: give `None`.
///
/// This crate casts nothing, so the data goes out as it is, with its own schema, whatever was requested (P8: best
/// effort), and the caller casts. What no cast could do is an error: another number of fields, or fields where there
/// are none. A requested schema is consumed.
///
/// # Errors
///
/// `NotImplementedError` for a keyword that is not `None` (P2); `ValueError` if the requested schema is of other data;
/// as [`from_capsule`] if it is no capsule of a schema.
///
/// # Safety
///
/// - As for [`from_capsule`], for `requested_schema`.
pub unsafe fn check_request(
    schema: &OwnedSchema,
    requested_schema: Option<&Bound<'_, PyAny>>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    for (keyword, value) in kwargs.into_iter().flat_map(PyDictMethods::iter) {
        if !value.is_none() {
            return Err(PyNotImplementedError::new_err(format!("unknown keyword argument {keyword}")));
        }
    }
    let Some(requested) = requested_schema.filter(|requested| !requested.is_none()) else {
        return Ok(());
    };
    // SAFETY: as the caller promises.
    let (py, requested) = (requested.py(), unsafe { from_capsule::<ArrowSchema>(requested) }?);
    let answer = answer(schema, &requested);
    ArrowSchema::drop_detached(py, Box::new(requested));
    answer
}

fn answer(schema: &OwnedSchema, requested: &OwnedSchema) -> PyResult<()> {
    match mismatch(schema.view()?, requested.view()?)? {
        None => Ok(()),
        Some((have, asked)) => Err(PyValueError::new_err(format!(
            "the requested schema is of other data: type {:?} with {} children cannot become {:?} with {}",
            have.format()?,
            have.n_children(),
            asked.format()?,
            asked.n_children(),
        ))),
    }
}

/// A pair of types of which one is a struct and the other is not, or has another number of fields.
fn mismatch<'a>(
    have: SchemaView<'a>,
    asked: SchemaView<'a>,
) -> Result<Option<(SchemaView<'a>, SchemaView<'a>)>, ViewError> {
    let is_struct = |schema: SchemaView<'_>| schema.format_bytes() == b"+s";
    // A list rather than recursion: how deep a schema is, its producer decides.
    let mut pairs = vec![(have, asked)];
    while let Some((have, asked)) = pairs.pop() {
        match (is_struct(have), is_struct(asked)) {
            (false, false) => {}
            (true, true) if have.n_children() == asked.n_children() => {
                for (have, asked) in have.children().zip(asked.children()) {
                    pairs.push((have?, asked?));
                }
            }
            _ => return Ok(Some((have, asked))),
        }
    }
    Ok(None)
}
