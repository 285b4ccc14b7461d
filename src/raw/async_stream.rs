//! The asynchronous C Device Stream Interface, experimental upstream, in the form of Arrow's header.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use super::{ArrowDeviceArray, ArrowDeviceType, ArrowSchema};

/// One batch that is on its way
/// ([description](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#async-device-stream-interface)).
///
/// Valid only during the call of [`on_next_task`](ArrowAsyncDeviceStreamHandler::on_next_task) that passes it; a
/// consumer that keeps it copies its bytes. The specification's page calls it `ArrowArrayTask` in one place (X4).
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncTask {
    /// Writes the batch to `out`. To be called exactly once a task; a null `out` discards the batch.
    pub extract_data:
        Option<unsafe extern "C" fn(self_: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int>,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// The producer of an asynchronous stream as its consumer sees it
/// ([description](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#async-device-stream-interface)).
///
/// Valid until the handler's release. The specification's page lists a `release` here (X1) and once makes the count
/// of `request` unsigned (X2); Arrow's header, which is what others compile against, has neither.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncProducer {
    /// Type of the device that every array of the stream is on.
    pub device_type: ArrowDeviceType,
    /// Allows `n` more calls of `on_next_task`. May be called within the handler's callbacks, and does not call
    /// `on_next_task` itself; whether it may call `on_error` is where page and header disagree (X8).
    pub request: Option<unsafe extern "C" fn(self_: *mut ArrowAsyncProducer, n: i64)>,
    /// Asks the producer to stop, which ends in the handler's release. Idempotent, callable from any thread.
    pub cancel: Option<unsafe extern "C" fn(self_: *mut ArrowAsyncProducer)>,
    /// Key-value pairs encoded as in [`ArrowSchema::metadata`], or null.
    pub additional_metadata: *const c_char,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// What the consumer of an asynchronous stream fills in, for the producer to call
/// ([description](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#async-device-stream-interface)).
///
/// Calls are made one at a time, from any thread. `self` is the handler in every callback, by pointer, and
/// `producer` is a pointer: the specification's page once passes or holds each of them otherwise (X3, X5, X6).
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncDeviceStreamHandler {
    /// Passes the schema, for the handler to move out. First, and once. Non-zero ends the stream.
    pub on_schema: Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncDeviceStreamHandler,
            stream_schema: *mut ArrowSchema,
        ) -> c_int,
    >,
    /// Passes a batch and its metadata, valid during the call; a null task is the end. Non-zero ends the stream.
    pub on_next_task: Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncDeviceStreamHandler,
            task: *mut ArrowAsyncTask,
            metadata: *const c_char,
        ) -> c_int,
    >,
    /// Passes an error; only release follows.
    pub on_error: Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncDeviceStreamHandler,
            code: c_int,
            message: *const c_char,
            metadata: *const c_char,
        ),
    >,
    /// The last call: frees the handler's contents and sets itself to null.
    pub release: Option<unsafe extern "C" fn(self_: *mut ArrowAsyncDeviceStreamHandler)>,
    /// Set by the producer before it calls anything but release.
    pub producer: *mut ArrowAsyncProducer,
    /// The consumer's.
    pub private_data: *mut c_void,
}

impl ArrowAsyncDeviceStreamHandler {
    /// A struct that holds nothing: every field zero, so already released.
    #[must_use]
    pub const fn released() -> Self {
        Self {
            on_schema: None,
            on_next_task: None,
            on_error: None,
            release: None,
            producer: ptr::null_mut(),
            private_data: ptr::null_mut(),
        }
    }

    /// Whether `release` is null: no other callback may be called then.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.release.is_none()
    }
}
