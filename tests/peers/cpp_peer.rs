//! The crate as the peer of Arrow C++ and of nanoarrow's C library: what `cpp_peer.h` declares, for `arrow_cpp.cc` and
//! `nanoarrow_c.c` to call.
//!
//! The receiving side at work (take, wait, walk, move a column out, drop) and the producing side: everything received
//! leaves again as it came or in structs of the crate's own making, and there are streams made in Rust.

mod allocations;
mod describe;
mod export;
mod made;
mod streams;
mod text;
mod trees;

use core::ffi::{c_int, c_void};
use core::fmt::{self, Display};
use core::ptr;

use arrow_device_abi::raw::{ArrowArray, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};
use arrow_device_abi::{
    Device, DeviceArrayStreamReader, EventWaiter, NoWait, OwnedArray, OwnedDeviceArray,
    OwnedDeviceArrayStream, OwnedSchema, Readiness, ReadyDeviceArray, StreamError, SyncEvent, errno,
};

use export::How;
use text::PeerText;

const BATCH: c_int = 1;
const END: c_int = 0;
const FAILED: c_int = -1;

type Wait = unsafe extern "C" fn(*mut c_void, i32, i64, *mut c_void) -> c_int;

/// `PeerWait` of `cpp_peer.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeerWait {
    context: *mut c_void,
    wait: Option<Wait>,
}

/// Waits through a callback of the program that made the event, as a consumer calls a driver that it was given.
#[derive(Debug)]
struct Foreign {
    context: *mut c_void,
    wait: Wait,
}

struct WaitFailed(c_int);

impl Display for WaitFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the wait gave {}", self.0)
    }
}

// SAFETY: the callback returns 0 only after the event has fired; other kinds than CUDA's are refused unread, and the
// event is not kept.
unsafe impl EventWaiter for Foreign {
    type Error = WaitFailed;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, WaitFailed> {
        let SyncEvent::Cuda(handle) = event else {
            return Err(WaitFailed(errno::EINVAL));
        };
        // SAFETY: `cpp_peer.h` makes the caller pass a callback that fits its context and knows the events of its own
        // device; the pointer is valid during the call.
        match unsafe {
            (self.wait)(self.context, device.device_type.0, device.device_id, handle.as_ptr().cast())
        } {
            0 => Ok(Readiness::Complete),
            code => Err(WaitFailed(code)),
        }
    }
}

/// `PeerReader` of `cpp_peer.h`.
#[derive(Debug)]
pub struct PeerReader {
    stream: DeviceArrayStreamReader,
    /// Asked for once, to know how to walk the batches.
    schema: Option<OwnedSchema>,
    waiter: Option<Foreign>,
}

/// Why there is no batch, in the words of `cpp_peer.h`.
enum No {
    End,
    Failed(i32, String),
    Refused(String),
}

impl No {
    fn refused(why: impl Display) -> Self {
        Self::Refused(why.to_string())
    }

    fn say(self, text: &PeerText, code: Option<&mut c_int>) -> c_int {
        match self {
            Self::End => END,
            Self::Refused(why) => text.refuse(why),
            Self::Failed(value, message) => {
                if let Some(code) = code {
                    *code = value;
                }
                text.put(&message);
                FAILED
            }
        }
    }
}

impl From<StreamError> for No {
    fn from(error: StreamError) -> Self {
        match error.code() {
            Some(code) => Self::Failed(code, error.message().unwrap_or("no message").to_owned()),
            None => Self::refused(error),
        }
    }
}

impl PeerReader {
    fn next(&mut self) -> Result<OwnedDeviceArray, No> {
        self.stream.next_array()?.ok_or(No::End)
    }

    fn synchronize(&self, array: OwnedDeviceArray) -> Result<ReadyDeviceArray, No> {
        match &self.waiter {
            Some(foreign) => array.synchronize(foreign).map_err(No::refused),
            None => array.synchronize(&NoWait).map_err(No::refused),
        }
    }

    /// The next batch, and what a consumer of what is given here sees of it.
    fn next_described(&mut self, how: How) -> Result<(OwnedDeviceArray, String), No> {
        if self.schema.is_none() {
            self.schema = Some(self.stream.schema()?);
        }
        let array = export::device_array(self.next()?, how).map_err(No::refused)?;
        let device = array.device();
        let event = if array.sync_event().map_err(No::refused)?.is_some() { "event" } else { "no event" };
        let mut text = format!("device|{}|{}|{event}\n", device.device_type.0, device.device_id);
        let ready = self.synchronize(array)?;
        let schema =
            self.schema.as_ref().ok_or_else(|| No::refused("no schema"))?.view().map_err(No::refused)?;
        // SAFETY: waited for by the line above, and every "device" of this program is host memory.
        unsafe { describe::array(&mut text, schema, ready.view().map_err(No::refused)?) }
            .map_err(No::refused)?;
        Ok((ready.into_device_array().map_err(No::refused)?, text))
    }

    fn next_column(&mut self, column: i64) -> Result<OwnedArray, No> {
        let column = usize::try_from(column).map_err(No::refused)?;
        let array = self.next()?;
        let mut batch = self.synchronize(array)?;
        let child = batch.take_child(column).map_err(No::refused)?;
        drop(batch);
        let child = child.into_device_array().map_err(No::refused)?.into_raw();
        // SAFETY: just given up by its owner, and on the CPU, where the embedded array is the host's form of it.
        unsafe { OwnedArray::from_raw(child.array) }.map_err(No::refused)
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - As `cpp_peer.h` says; `stream` is null or obeys the C device stream interface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_open(
    stream: *mut ArrowDeviceArrayStream,
    wait: PeerWait,
    text: PeerText,
) -> *mut PeerReader {
    // SAFETY: null or a stream that the caller gives away; this program calls it from one thread at a time.
    match unsafe { OwnedDeviceArrayStream::take(stream) } {
        Ok(stream) => Box::into_raw(Box::new(PeerReader {
            stream: DeviceArrayStreamReader::new(stream),
            schema: None,
            waiter: wait.wait.map(|call| Foreign { context: wait.context, wait: call }),
        })),
        Err(error) => {
            text.refuse(error);
            ptr::null_mut()
        }
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `reader` comes from `peer_open` and is not closed; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_schema(
    reader: *mut PeerReader,
    how: c_int,
    out: *mut ArrowSchema,
    text: PeerText,
) -> c_int {
    // SAFETY: a live reader of ours, used by nobody else during the call.
    let reader = unsafe { &mut *reader };
    let exported = How::new(how).and_then(|how| export::schema(reader.stream.schema()?, how));
    let schema = match exported {
        Ok(schema) => schema,
        Err(error) => return text.refuse(error),
    };
    let mut description = String::new();
    if let Err(error) =
        schema.view().map_err(Into::into).and_then(|view| describe::schema(&mut description, view))
    {
        return text.refuse(error);
    }
    text.put(&description);
    // SAFETY: valid for writes as the caller promises.
    unsafe { schema.export_to(out) };
    0
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `reader` comes from `peer_open` and is not closed; `out` and `code` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_next(
    reader: *mut PeerReader,
    how: c_int,
    out: *mut ArrowDeviceArray,
    code: *mut c_int,
    text: PeerText,
) -> c_int {
    // SAFETY: a live reader of ours, used by nobody else during the call.
    let reader = unsafe { &mut *reader };
    match How::new(how).map_err(No::refused).and_then(|how| reader.next_described(how)) {
        Ok((array, description)) => {
            text.put(&description);
            // SAFETY: valid for writes as the caller promises.
            unsafe { array.export_to(out) };
            BATCH
        }
        // SAFETY: valid for writes as the caller promises.
        Err(no) => no.say(&text, Some(unsafe { &mut *code })),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `reader` comes from `peer_open` and is not closed; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_next_column(
    reader: *mut PeerReader,
    column: i64,
    out: *mut ArrowArray,
    text: PeerText,
) -> c_int {
    // SAFETY: a live reader of ours, used by nobody else during the call.
    match unsafe { &mut *reader }.next_column(column) {
        Ok(array) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { array.export_to(out) };
            BATCH
        }
        Err(no) => no.say(&text, None),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `reader` comes from `peer_open` and is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_discard(reader: *mut PeerReader, text: PeerText) -> c_int {
    // SAFETY: a live reader of ours, used by nobody else during the call.
    match unsafe { &mut *reader }.next() {
        Ok(_dropped) => BATCH,
        Err(no) => no.say(&text, None),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `reader` is null, or comes from `peer_open` and is not closed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_close(reader: *mut PeerReader) {
    if !reader.is_null() {
        // SAFETY: from `Box::into_raw` in `peer_open`, and closed once.
        drop(unsafe { Box::from_raw(reader) });
    }
}
