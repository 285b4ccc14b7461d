//! Receiving an asynchronous device stream: the handler's callbacks.

mod arrays;
mod inbox;
mod receiver;
mod task;

use alloc::string::String;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::ptr::{self, NonNull};

use crate::async_handler::AsyncHandler;
use crate::errno::EINVAL;
use crate::owned::{OwnedSchema, TakeError};
use crate::raw::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceType, ArrowSchema,
};
use crate::stream_error::StreamError;
use crate::view::{MetadataBuf, ViewError};
use inbox::{Inbox, Pushed, Upstream};
use task::copied;

pub use arrays::AsyncArrays;
pub use receiver::{AsyncControl, AsyncReceiver, Demand, Receive};
pub use task::AsyncTask;

/// What comes with the schema, or is copied from the producer then.
#[derive(Debug)]
struct Opened {
    schema: OwnedSchema,
    device_type: ArrowDeviceType,
    metadata: Result<MetadataBuf, ViewError>,
}

#[derive(Debug, Clone, Copy)]
struct Producer {
    producer: NonNull<ArrowAsyncProducer>,
    request: unsafe extern "C" fn(*mut ArrowAsyncProducer, i64),
    cancel: unsafe extern "C" fn(*mut ArrowAsyncProducer),
}

// SAFETY: a producer's callbacks may be called from any thread: cancel says so itself (A7), and request has to come from
// wherever the consumer is.
unsafe impl Send for Producer {}

impl Upstream for Producer {
    unsafe fn request(self, n: i64) {
        // SAFETY: live until release has returned, as the caller promises.
        unsafe { (self.request)(self.producer.as_ptr(), n) };
    }

    unsafe fn cancel(self) {
        // SAFETY: as above.
        unsafe { (self.cancel)(self.producer.as_ptr()) };
    }
}

/// What handler and receiver share, freed after the handler's release and the receiver's end, whichever is last.
struct Shared {
    inbox: Inbox<Opened, AsyncTask, StreamError, Producer>,
    /// A place for the handler, if the caller has none of its own. Touched through pointers only.
    handler: UnsafeCell<ArrowAsyncDeviceStreamHandler>,
}

// SAFETY: the inbox is made for several threads. The handler is used by its producer, and by its callbacks, which come
// one at a time (A14).
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inbox.fmt(f)
    }
}

impl Shared {
    fn new(demand: Demand) -> Arc<Self> {
        Arc::new(Self {
            inbox: Inbox::new(demand.prefetch_depth()),
            handler: UnsafeCell::new(ArrowAsyncDeviceStreamHandler::released()),
        })
    }

    /// A live handler over `self`, which it keeps until it is released.
    fn handler(self: Arc<Self>) -> ArrowAsyncDeviceStreamHandler {
        ArrowAsyncDeviceStreamHandler {
            on_schema: Some(on_schema),
            on_next_task: Some(on_next_task),
            on_error: Some(on_error),
            release: Some(release),
            producer: ptr::null_mut(),
            private_data: Arc::into_raw(self).cast_mut().cast(),
        }
    }

    /// A handler in `self`'s own memory.
    fn own_handler(self: &Arc<Self>) -> AsyncHandler {
        let place = self.handler.get();
        // SAFETY: nobody uses the place yet.
        unsafe { place.write(Arc::clone(self).handler()) };
        // SAFETY: not null, being a field.
        let place = unsafe { NonNull::new_unchecked(place) };
        // SAFETY: a live handler that obeys the interface, in memory that it keeps itself until its release.
        unsafe { AsyncHandler::adopt(place) }
    }
}

/// Where what a live handler holds is; `None` for a handler that is null or released.
///
/// # Safety
///
/// - `handler` is null, released, or one that `Shared::handler` made.
unsafe fn held(handler: *const ArrowAsyncDeviceStreamHandler) -> Option<NonNull<Shared>> {
    if handler.is_null() {
        return None;
    }
    // SAFETY: not null, so valid for reads. No reference, since the producer may write to the struct.
    let private_data = unsafe { (*handler).private_data };
    NonNull::new(private_data.cast())
}

/// What a live handler holds, for a callback: it stays even if the producer, called within the callback, goes against the
/// interface and releases the handler.
///
/// # Safety
///
/// - As for `held`; the handler is not released during the call.
unsafe fn shared(handler: *const ArrowAsyncDeviceStreamHandler) -> Option<Arc<Shared>> {
    // SAFETY: as the caller promises.
    let held = unsafe { held(handler) }?.as_ptr();
    // SAFETY: `Shared::handler` made it of an `Arc`, which the handler keeps until its release.
    unsafe { Arc::increment_strong_count(held) };
    // SAFETY: the count that was just added.
    Some(unsafe { Arc::from_raw(held) })
}

/// A2, A11: moves the schema out, and copies what there is to know of the producer (A13).
unsafe extern "C" fn on_schema(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    schema: *mut ArrowSchema,
) -> c_int {
    // SAFETY: null, or the producer's to give: it is moved out before anything can fail.
    let schema = unsafe { OwnedSchema::take(schema) };
    // SAFETY: the producer passes its own live handler, and makes one call at a time.
    let Some(shared) = (unsafe { shared(handler) }) else {
        return EINVAL;
    };
    // SAFETY: as above.
    match unsafe { opened(&shared, handler, schema) } {
        Ok(()) => 0,
        Err(None) => EINVAL,
        Err(Some(error)) => {
            shared.inbox.fail(error);
            EINVAL
        }
    }
}

/// # Safety
///
/// - As for `on_schema`, whose arguments these are.
unsafe fn opened(
    shared: &Shared,
    handler: *mut ArrowAsyncDeviceStreamHandler,
    schema: Result<OwnedSchema, TakeError>,
) -> Result<(), Option<StreamError>> {
    let schema = schema.map_err(|_| StreamError::ReleasedSchema)?;
    // SAFETY: a live handler.
    let producer = unsafe { (*handler).producer };
    let missing = |callback| StreamError::MissingCallback { callback };
    let place = NonNull::new(producer).ok_or_else(|| missing("producer"))?;
    // SAFETY: from on_schema to release a producer that is not null is a live one (A1).
    let ArrowAsyncProducer { device_type, request, cancel, additional_metadata, .. } =
        unsafe { producer.read() };
    let producer = Producer {
        producer: place,
        request: request.ok_or_else(|| missing("request"))?,
        cancel: cancel.ok_or_else(|| missing("cancel"))?,
    };
    // SAFETY: null or in the encoding, as long as the producer lives (A13).
    let metadata = unsafe { copied(additional_metadata) };
    let opened = Opened { schema, device_type, metadata };
    // SAFETY: the producer lives until release has returned (A1).
    unsafe { shared.inbox.open(producer, opened) }.map_err(|_| None)
}

/// A4: copies the task, or discards it if the receiver is gone; a null task is the end.
///
/// Refuses, by a code that is not 0, only what comes where nothing may come, and leaves such a task alone: who refuses a
/// task is not known to extract it, and producers free it then.
unsafe extern "C" fn on_next_task(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    task: *mut ArrowAsyncTask,
    metadata: *const c_char,
) -> c_int {
    // SAFETY: the producer passes its own live handler, and makes one call at a time.
    let Some(shared) = (unsafe { shared(handler) }) else {
        return EINVAL;
    };
    if task.is_null() {
        return if shared.inbox.end() { 0 } else { EINVAL };
    }
    // SAFETY: not null, so a live task, whose bytes are valid during the call.
    let raw = unsafe { task.read() };
    // SAFETY: null or in the encoding, during the call.
    let metadata = unsafe { copied(metadata) };
    // SAFETY: a copy of a live task, which is the handler's to extract.
    let task = unsafe { AsyncTask::new(raw, metadata) };
    match shared.inbox.push(task) {
        Pushed::Queued => 0,
        Pushed::Unwanted(task) => {
            drop(task);
            0
        }
        Pushed::Refused(task) => {
            task.disown();
            EINVAL
        }
    }
}

/// A8: copies text and metadata; calls no producer.
unsafe extern "C" fn on_error(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    code: c_int,
    message: *const c_char,
    metadata: *const c_char,
) {
    // SAFETY: the producer passes its own live handler, and makes one call at a time.
    let Some(shared) = (unsafe { shared(handler) }) else {
        return;
    };
    let message = if message.is_null() {
        None
    } else {
        // SAFETY: not null, so it ends in NUL and is valid during the call.
        let message = unsafe { CStr::from_ptr(message) };
        Some(String::from_utf8_lossy(message.to_bytes()).into_owned())
    };
    // SAFETY: null or in the encoding, during the call.
    let metadata = unsafe { copied(metadata) }.unwrap_or_default();
    shared.inbox.fail(StreamError::Reported { code, message, metadata });
}

/// A9: the last call; calls no producer, and lets no other thread call it any more.
unsafe extern "C" fn release(handler: *mut ArrowAsyncDeviceStreamHandler) {
    // SAFETY: the producer passes its own live handler, and makes its last call.
    let Some(held) = (unsafe { held(handler) }) else {
        return;
    };
    // SAFETY: valid for writes, and nobody else uses the struct. Marked before anything can fail; it may be in the
    // memory that goes with the last reference to what it holds.
    unsafe { handler.write(ArrowAsyncDeviceStreamHandler::released()) };
    // SAFETY: the reference that `Shared::handler` gave away, taken back once, since the struct is marked.
    let shared = unsafe { Arc::from_raw(held.as_ptr()) };
    shared.inbox.release(StreamError::Unfinished);
}
