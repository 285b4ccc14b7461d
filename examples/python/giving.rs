//! What Rust gives: batches that it took, as they came or anew, and data of its own.

use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArray, ArrowSchema};
use arrow_device_abi::{
    Device, ExportError, ExportErrorKind, ExportEvent, OwnedArray, OwnedArrayStream, OwnedDeviceArray,
    OwnedSchema, StreamFailure, errno,
};

use crate::made::{self, SCHEMA, Variant};
use crate::trees::{ArrayTree, SchemaTree};
use crate::{Error, Exchange, Held, remember};

/// Gives the batch back, to whoever reads the out-structs. What was in these is overwritten unread.
///
/// With `anew` the structs that came are kept, and new ones given, whose release is theirs.
///
/// # Safety
///
/// - As for [`exchange_rows`](crate::exchange_rows), and `exchange` is not used any more.
/// - `schema` and `array` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_give_back(
    exchange: *mut Exchange,
    anew: bool,
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
) -> bool {
    // SAFETY: a box of `exchange_take`, used for the last time.
    let exchange = unsafe { Box::from_raw(exchange) };
    let given = if anew { exchange.into_new_structs() } else { exchange.into_structs() };
    // SAFETY: valid for writes as the caller promises.
    unsafe { give(given, schema, array) }
}

impl Exchange {
    fn into_structs(self) -> Result<(OwnedSchema, OwnedDeviceArray), Error> {
        Ok((self.schema, self.batch.into_device_array()?))
    }

    fn into_new_structs(self) -> Result<(OwnedSchema, OwnedDeviceArray), Error> {
        let schema = SchemaTree::of(self.schema.view()?)?.with_node(|node| node.export())?;
        let batch = ArrayTree::of(self.batch.view()?)?;
        let device = self.batch.device();
        let keep = (self.batch, self._held);
        let batch = batch.with_node(|node| {
            // SAFETY: the description of a live array of this type, on the same device and waited for; it is released
            // when it is dropped.
            unsafe { node.export_on(device, ExportEvent::Synchronized, keep) }.map_err(kind)
        })?;
        Ok((schema, batch))
    }
}

/// What failed; what was to be kept is dropped.
fn kind<K>(error: ExportError<K>) -> ExportErrorKind {
    error.kind
}

/// Writes both structs, or remembers the error.
///
/// # Safety
///
/// - `schema` and `array` are valid for writes.
unsafe fn give(
    given: Result<(OwnedSchema, OwnedDeviceArray), Error>,
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
) -> bool {
    match given {
        Ok((given_schema, given_array)) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { given_schema.export_to(schema) };
            // SAFETY: as above.
            unsafe { given_array.export_to(array) };
            true
        }
        Err(error) => {
            remember(&error);
            false
        }
    }
}

/// Gives one of the batches that `made/mod.rs` makes, with every layout of the format.
///
/// # Safety
///
/// - `schema` and `array` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_make(
    variant: usize,
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
) -> bool {
    let make = || {
        let (tree, memory) = made::batch(*Variant::ALL.get(variant).ok_or("no such batch")?);
        let keep = (memory, Held::new());
        let batch = tree.with_node(|node| {
            // SAFETY: the tree is one of this schema, and describes the memory that is kept, which is written.
            unsafe { node.export_on(Device::CPU, ExportEvent::Synchronized, keep) }.map_err(kind)
        })?;
        Ok((SCHEMA.export()?, batch))
    };
    // SAFETY: valid for writes as the caller promises.
    unsafe { give(make(), schema, array) }
}

fn made_for_the_host(variant: Variant) -> Result<OwnedArray, StreamFailure> {
    let (tree, memory) = made::batch(variant);
    let keep = (memory, Held::new());
    // SAFETY: the tree is one of the stream's schema, and describes the memory that is kept, which is written.
    Ok(tree.with_node(|node| unsafe { node.export(keep) }.map_err(kind))?)
}

/// Gives a stream of all the batches of [`exchange_make`]; with `fails` an error follows them.
///
/// # Safety
///
/// - `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_make_stream(fails: bool, out: *mut ArrowArrayStream) -> bool {
    let held = Held::new();
    let batches = Variant::ALL.into_iter().map(made_for_the_host);
    let failure = fails.then(|| Err(StreamFailure::new(errno::EINVAL, "the well of Rust is dry: ø")));
    let batches = batches.chain(failure).inspect(move |_| {
        // Dropped with the stream.
        let _ = &held;
    });
    match SCHEMA.export() {
        Ok(schema) => {
            // SAFETY: the batches are of the schema.
            let stream = unsafe { OwnedArrayStream::from_iter(schema, batches) };
            // SAFETY: valid for writes as the caller promises.
            unsafe { stream.export_to(out) };
            true
        }
        Err(error) => {
            remember(&error);
            false
        }
    }
}

/// What the destructor of a capsule has to do (P3): release the struct if it is live.
///
/// # Safety
///
/// - `schema` is null or points to a struct that is released, or live and owned by the capsule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_release_schema(schema: *mut ArrowSchema) {
    // SAFETY: as the caller promises. A struct that was moved out is none to take.
    drop(unsafe { OwnedSchema::take(schema) });
}

/// As [`exchange_release_schema`].
///
/// # Safety
///
/// - `array` is null or points to a struct that is released, or live and owned by the capsule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_release_array(array: *mut ArrowDeviceArray) {
    // SAFETY: as the caller promises. A struct that was moved out is none to take.
    drop(unsafe { OwnedDeviceArray::take(array) });
}

/// As [`exchange_release_schema`].
///
/// # Safety
///
/// - `stream` is null or points to a struct that is released, or live and owned by the capsule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises. A struct that was moved out is none to take.
    drop(unsafe { OwnedArrayStream::take(stream) });
}
