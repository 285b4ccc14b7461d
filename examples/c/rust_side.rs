//! The Rust side of the C and C++ examples: a shared and a static library that makes batches and streams, and takes those
//! of others.
//!
//! `rust_side.h` says what each function does.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt::Display;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema};
use arrow_device_abi::{
    ArrayNode, Device, DeviceArrayStreamReader, EventWaiter, ExportEvent, OwnedDeviceArray,
    OwnedDeviceArrayStream, OwnedSchema, Readiness, SchemaNode, StreamFailure, SyncEvent, errno,
};

/// Every error of this library becomes one with a code and a text, as those of streams do.
type Result<T> = std::result::Result<T, StreamFailure>;

static ALIVE: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The memory of a batch.
struct Memory(Vec<i64>);

impl Memory {
    fn new(first: i64, length: i64) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self((first..first + length).collect())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

fn make_schema() -> Result<OwnedSchema> {
    let value = SchemaNode { format: "l", name: Some("value"), ..Default::default() };
    Ok(SchemaNode { format: "+s", children: &[value], ..Default::default() }.export()?)
}

fn make_batch(first: i64, length: i64) -> Result<OwnedDeviceArray> {
    let memory = Memory::new(first, length);
    let buffers = [ptr::null(), memory.0.as_ptr().cast()];
    let value = ArrayNode { length, buffers: &buffers, ..Default::default() };
    let batch = ArrayNode { length, buffers: &[ptr::null()], children: &[value], ..Default::default() };
    // SAFETY: of `make_schema`'s types; the values are written, in host memory, and kept by `memory`.
    unsafe { batch.export_on(Device::CPU, ExportEvent::Synchronized, memory) }
        .map_err(|error| error.kind.into())
}

fn make_stream(batches: i64, fails: bool) -> Result<OwnedDeviceArrayStream> {
    let failure = fails.then(|| Err(StreamFailure::new(errno::EIO, "the last batch got lost")));
    let arrays = (0..batches).map(|batch| make_batch(2 * batch, 2)).chain(failure);
    // SAFETY: the arrays are of this schema.
    Ok(unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, make_schema()?, arrays) })
}

/// How C waits for its events.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RustWait {
    wait: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
    context: *mut c_void,
}

// SAFETY: complete only when C says that the event has fired.
unsafe impl EventWaiter for RustWait {
    type Error = StreamFailure;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness> {
        let (Some(wait), SyncEvent::Cuda(slot)) = (self.wait, event) else {
            return Err(invalid(format_args!("no way to wait for {event:?} on {device}")));
        };
        // SAFETY: for this type of device the event is a pointer to a handle, and the array keeps both (D5, D11).
        let handle = unsafe { slot.as_ptr().read() };
        // SAFETY: a function of C's for handles of C's.
        match unsafe { wait(self.context, handle) } {
            0 => Ok(Readiness::Complete),
            code => Err(StreamFailure::new(code, "C did not wait")),
        }
    }
}

fn invalid(problem: impl Display) -> StreamFailure {
    StreamFailure::new(errno::EINVAL, &problem.to_string())
}

fn sum(schema: &OwnedSchema, array: OwnedDeviceArray, wait: RustWait) -> Result<i64> {
    let fields = schema.view()?;
    if fields.format()? != "+s" || fields.child(0)?.format()? != "l" {
        return Err(invalid("the schema is not that of a batch with a column of int64"));
    }
    let array = array.synchronize(&wait).map_err(invalid)?;
    if !array.is_host_ready() {
        return Err(invalid("the host cannot read the batch"));
    }
    let batch = array.view()?;
    let value = batch.child(0)?;
    if value.null_count() != Some(0) {
        return Err(invalid("the column has nulls"));
    }
    // SAFETY: the host can read the buffer, which is written, and of the schema's type and the array's length.
    let values = unsafe { value.buffer_as::<i64>(1, value.offset() + value.length()) }?;
    let rows = values.iter().skip(value.offset() + batch.offset()).take(batch.length());
    Ok(rows.sum())
}

/// The code for C, and the text for `rust_error`.
fn answer(result: Result<()>) -> c_int {
    let Err(failure) = result else { return 0 };
    ERROR.set(failure.message().to_owned());
    failure.code()
}

/// # Safety
///
/// - `schema` and `array` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_make_batch(
    first: i64,
    length: i64,
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
) -> c_int {
    answer(make_schema().and_then(|made| {
        let batch = make_batch(first, length)?;
        // SAFETY: as the caller promises; nothing is read there.
        unsafe {
            made.export_to(schema);
            batch.export_to(array);
        }
        Ok(())
    }))
}

/// # Safety
///
/// - `stream` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_make_stream(
    batches: i64,
    fails: c_int,
    stream: *mut ArrowDeviceArrayStream,
) -> c_int {
    // SAFETY: as the caller promises; nothing is read there.
    answer(make_stream(batches, fails != 0).map(|made| unsafe { made.export_to(stream) }))
}

/// # Safety
///
/// - `schema` and `array` point to structs that obey the interface, and that nobody else uses.
/// - `sum` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_sum_batch(
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
    wait: RustWait,
    sum_out: *mut i64,
) -> c_int {
    // Both are moved in before anything is looked at.
    // SAFETY: as the caller promises.
    let taken = unsafe { (OwnedSchema::take(schema), OwnedDeviceArray::take(array)) };
    let (schema, array) = match taken {
        (Ok(schema), Ok(array)) => (schema, array),
        (Err(error), _) | (_, Err(error)) => return answer(Err(invalid(error))),
    };
    // SAFETY: as the caller promises.
    answer(sum(&schema, array, wait).map(|found| unsafe { sum_out.write(found) }))
}

/// # Safety
///
/// - `stream` points to a stream that obeys the interface, and that nobody else uses.
/// - `sum` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_sum_stream(
    stream: *mut ArrowDeviceArrayStream,
    wait: RustWait,
    sum_out: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    let taken = unsafe { OwnedDeviceArrayStream::take(stream) };
    answer(taken.map_err(invalid).and_then(|stream| {
        let mut reader = DeviceArrayStreamReader::new(stream);
        let schema = reader.schema()?;
        let mut total = 0;
        for array in reader {
            total += sum(&schema, array?, wait)?;
        }
        // SAFETY: as the caller promises.
        unsafe { sum_out.write(total) };
        Ok(())
    }))
}

/// How many batches are alive.
#[unsafe(no_mangle)]
pub extern "C" fn rust_alive() -> i64 {
    ALIVE.load(Ordering::Relaxed)
}

/// The text of the last error.
#[unsafe(no_mangle)]
pub extern "C" fn rust_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}
