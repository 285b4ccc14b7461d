//! arrow-rs: its C structs, arrays, record batches and readers, in and out.
//!
//! arrow-rs has the host structs, with private fields, and no device form. The structs convert into each other by
//! moving their bytes; record batches and readers go in and out of device structs in one call each:
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Int32Array, RecordBatch};
//! use arrow_device_abi::NoWait;
//! use arrow_device_abi::interop::arrow::{export_record_batch, import_record_batch};
//!
//! let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
//! let batch = RecordBatch::try_from_iter([("column", column)])?;
//!
//! let (array, schema) = export_record_batch(&batch)?; // to any consumer of C device arrays
//! let array = array.synchronize(&NoWait)?;
//! // SAFETY: the schema is the array's.
//! assert_eq!(unsafe { import_record_batch(array, &schema) }?, batch);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A producer that has nothing but pointers gets an `FFI_ArrowArray` through
//! [`ArrayNode::export`](crate::ArrayNode::export), and `into()`.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::mem::transmute;
use core::ptr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, StructArray,
    make_array,
};

use crate::consumer::{DeviceArrayStreamReader, EventWaiter, NotHostReady, ReadyDeviceArray};
use crate::owned::{Owned, OwnedArray, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema};
use crate::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceType, ArrowSchema};
use crate::stream_error::StreamError;

/// The error of arrow-rs. Named through `arrow-array`, so that no other crate of theirs, in perhaps another version,
/// is needed.
pub type ArrowError = <<dyn RecordBatchReader as Iterator>::Item as Fallible>::Error;

#[doc(hidden)]
pub trait Fallible {
    type Error;
}

impl<T, E> Fallible for Result<T, E> {
    type Error = E;
}

macro_rules! same_struct {
    ($raw:ident, $foreign:ident) => {
        // Their fields are private; these are what can be compared.
        const _: () = assert!(
            size_of::<$raw>() == size_of::<$foreign>() && align_of::<$raw>() == align_of::<$foreign>(),
            "arrow-rs has another struct"
        );

        /// Moves the struct's bytes. What is released stays released.
        impl From<Owned<$raw>> for $foreign {
            fn from(owned: Owned<$raw>) -> Self {
                // SAFETY: both are the same C struct and own what it points to; `into_raw` has given that up.
                unsafe { transmute::<$raw, Self>(owned.into_raw()) }
            }
        }

        /// Moves the struct's bytes. What is released stays released.
        impl From<$foreign> for Owned<$raw> {
            fn from(foreign: $foreign) -> Self {
                // SAFETY: both are the same C struct; `transmute` takes the foreign one without dropping it.
                let raw = unsafe { transmute::<$foreign, $raw>(foreign) };
                // SAFETY: theirs is made by `unsafe` functions with the same contract, or by their exports, and can
                // be sent between threads as ours can. It was taken by value, so it has no other owner.
                unsafe { Self::adopt(raw) }
            }
        }
    };
}
same_struct!(ArrowArray, FFI_ArrowArray);
same_struct!(ArrowSchema, FFI_ArrowSchema);
same_struct!(ArrowArrayStream, FFI_ArrowArrayStream);

/// Exports an array as one on the CPU, with its type. Nothing is copied; the array's buffers are kept alive.
///
/// # Errors
///
/// What arrow-rs cannot export.
pub fn export_array(array: &dyn Array) -> Result<(OwnedDeviceArray, OwnedSchema), ArrowError> {
    let (array, schema) = to_ffi(&array.to_data())?;
    Ok((OwnedArray::from(array).into(), schema.into()))
}

/// Exports a record batch as a struct array on the CPU, with its schema, metadata included. Nothing is copied.
///
/// # Errors
///
/// What arrow-rs cannot export.
pub fn export_record_batch(batch: &RecordBatch) -> Result<(OwnedDeviceArray, OwnedSchema), ArrowError> {
    let array = FFI_ArrowArray::new(&StructArray::from(batch.clone()).into_data());
    Ok((OwnedArray::from(array).into(), FFI_ArrowSchema::try_from(&*batch.schema())?.into()))
}

/// Exports a reader as a stream on the CPU. It is read as the consumer asks, on the consumer's thread.
///
/// # Errors
///
/// What arrow-rs cannot export of the schema. Errors of the reader reach the consumer of the stream, and so does that of
/// a batch whose columns are not of the types that the reader has told.
pub fn export_reader(
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<OwnedDeviceArrayStream, ArrowError> {
    let told = reader.schema();
    let schema = FFI_ArrowSchema::try_from(&*told)?.into();
    let batches = reader.map(move |batch| {
        let batch = batch?;
        // A reader is anybody's, and need not keep to what it has told.
        let found = batch.schema();
        let mut types = told.fields().iter().zip(found.fields());
        if told.fields().len() != found.fields().len()
            || !types.all(|(told, found)| told.data_type().equals_datatype(found.data_type()))
        {
            let error = "a batch has other types than its reader has told";
            return Err(ArrowError::SchemaError(error.to_string()));
        }
        Ok(export_record_batch(&batch)?.0)
    });
    // SAFETY: batches of other types than the schema's are errors.
    Ok(unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, schema, batches) })
}

/// Imports an array that the host can read. Nothing is copied, but for buffers that arrow-rs wants aligned.
///
/// # Errors
///
/// [`ImportError::NotHostReady`] gives the array back; [`ImportError::Arrow`] if arrow-rs refuses it, and it is
/// released then.
///
/// # Safety
///
/// - `schema` is the array's: it has the buffers, as long and with such contents, and the children that its type asks
///   for.
pub unsafe fn import_array(array: ReadyDeviceArray, schema: &OwnedSchema) -> Result<ArrayRef, ImportError> {
    let array = array.into_host_array()?;
    // SAFETY: as the caller promises.
    unsafe { import_host(array, schema) }.map_err(ImportError::Arrow)
}

/// Imports a struct array that the host can read as a record batch, with the schema's metadata.
///
/// # Errors
///
/// As [`import_array`]; also if it is no struct array, or has nulls of its own, which no record batch can have.
///
/// # Safety
///
/// - As for [`import_array`].
pub unsafe fn import_record_batch(
    array: ReadyDeviceArray,
    schema: &OwnedSchema,
) -> Result<RecordBatch, ImportError> {
    let array = array.into_host_array()?;
    // SAFETY: as the caller promises.
    unsafe { import_host(array, schema) }
        .and_then(|array| into_record_batch(&array, schema))
        .map_err(ImportError::Arrow)
}

fn into_record_batch(array: &ArrayRef, schema: &OwnedSchema) -> Result<RecordBatch, ArrowError> {
    let Some(array) = array.as_any().downcast_ref::<StructArray>() else {
        return Err(invalid("a record batch is a struct array"));
    };
    if array.null_count() > 0 {
        return Err(invalid("a record batch has no nulls of its own, and this struct array has"));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
    let schema = Arc::new(borrow(schema).try_into()?);
    RecordBatch::try_new_with_options(schema, array.columns().to_vec(), &options)
}

/// # Safety
///
/// - As for `import_array`.
unsafe fn import_host(array: OwnedArray, schema: &OwnedSchema) -> Result<ArrayRef, ArrowError> {
    let schema = checked(schema)?;
    // SAFETY: as the caller promises.
    Ok(make_array(unsafe { from_ffi(array.into(), schema) }?))
}

/// The schema as theirs, if it is one at all: arrow-rs panics at what is released.
fn checked(schema: &OwnedSchema) -> Result<&FFI_ArrowSchema, ArrowError> {
    schema.view().map_err(|error| invalid(&error.to_string()))?;
    Ok(borrow(schema))
}

fn borrow(schema: &OwnedSchema) -> &FFI_ArrowSchema {
    // SAFETY: both are the same C struct, and it is only borrowed.
    unsafe { &*ptr::from_ref(schema.as_raw()).cast() }
}

fn invalid(problem: &str) -> ArrowError {
    ArrowError::from_external_error(problem.into())
}

/// Imports a device stream as a reader, which waits for each array with `waiter`.
///
/// The reader can be sent to another thread if the waiter can.
///
/// # Errors
///
/// [`ImportError::Stream`] if the stream has no schema for us, [`ImportError::Arrow`] if arrow-rs refuses it. The
/// reader ends with the first error.
///
/// # Safety
///
/// - The arrays of the stream are of its schema, as for [`import_array`].
pub unsafe fn import_reader<W>(
    stream: OwnedDeviceArrayStream,
    waiter: W,
) -> Result<impl RecordBatchReader + use<W>, ImportError>
where
    W: EventWaiter,
    W::Error: fmt::Display,
{
    let mut stream = DeviceArrayStreamReader::new(stream);
    let schema = stream.schema()?;
    let arrow_schema = Arc::new(checked(&schema).and_then(TryInto::try_into).map_err(ImportError::Arrow)?);
    let mut batches = Some(stream.map(move |array| {
        let array = array.map_err(|error| ArrowError::from_external_error(Box::new(error)))?;
        let array = array.synchronize(&waiter).map_err(|error| invalid(&error.to_string()))?;
        // SAFETY: the caller of `import_reader` promised that the arrays are of the stream's schema.
        unsafe { import_record_batch(array, &schema) }.map_err(|error| match error {
            ImportError::Arrow(error) => error,
            other => invalid(&other.to_string()),
        })
    }));
    // The first error ends it, one of the import too, of which the stream knows nothing.
    let until_error = core::iter::from_fn(move || {
        let batch = batches.as_mut()?.next();
        if !matches!(batch, Some(Ok(_))) {
            batches = None;
        }
        batch
    });
    Ok(RecordBatchIterator::new(until_error, arrow_schema))
}

/// Why something could not be imported.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The host cannot read the array, or has not waited for it. Here it is back.
    NotHostReady(Box<NotHostReady>),
    /// The stream failed.
    Stream(StreamError),
    /// arrow-rs refuses what it was given.
    Arrow(ArrowError),
}

impl From<NotHostReady> for ImportError {
    fn from(error: NotHostReady) -> Self {
        Self::NotHostReady(Box::new(error))
    }
}

impl From<StreamError> for ImportError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHostReady(error) => error.fmt(f),
            Self::Stream(error) => error.fmt(f),
            Self::Arrow(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NotHostReady(error) => Some(error),
            Self::Stream(error) => Some(error),
            Self::Arrow(error) => Some(error),
        }
    }
}
