//! [`AsyncTask`]: a batch that is yet to be extracted.

use core::ffi::c_char;
use core::{fmt, mem, ptr};

use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::owned::OwnedDeviceArray;
use crate::raw::{ArrowAsyncTask, ArrowDeviceType};
use crate::stream_error::StreamError;
use crate::view::{Metadata, MetadataBuf, ViewError};

/// Copies what a callback was passed, which is valid during the call only.
///
/// # Safety
///
/// - As for [`Metadata::from_ptr`].
pub(super) unsafe fn copied(metadata: *const c_char) -> Result<MetadataBuf, ViewError> {
    // SAFETY: as the caller promises.
    unsafe { Metadata::from_ptr(metadata) }.map(MetadataBuf::from)
}

/// A batch of an asynchronous stream, not extracted yet: what decodes it may be the producer's work on the thread that
/// calls [`extract`](Self::extract), whichever that is.
///
/// Each is extracted exactly once (A10): dropping it discards the batch. It may live longer than its stream.
pub struct AsyncTask {
    raw: ArrowAsyncTask,
    device_type: ArrowDeviceType,
    metadata: Result<MetadataBuf, ViewError>,
}

// SAFETY: the producer lets a task be extracted on any thread, which is what tasks are for.
unsafe impl Send for AsyncTask {}
// SAFETY: through a shared reference there are only reads of plain data.
unsafe impl Sync for AsyncTask {}

assert_impl_all!(AsyncTask: Send, Sync);
assert_not_impl_any!(AsyncTask: Clone);

impl AsyncTask {
    /// # Safety
    ///
    /// - `raw` is a copy of a live task that nobody else extracts.
    pub(super) const unsafe fn new(raw: ArrowAsyncTask, metadata: Result<MetadataBuf, ViewError>) -> Self {
        Self { raw, device_type: ArrowDeviceType(0), metadata }
    }

    /// The task of a stream whose arrays are on this type of device.
    pub(super) fn of_stream(mut self, device_type: ArrowDeviceType) -> Self {
        self.device_type = device_type;
        self
    }

    /// Leaves the task to its producer.
    pub(super) fn disown(mut self) {
        self.take();
    }

    /// The task, once, to be extracted where it is then: the producer may write to it, and drop looks at what is here.
    fn take(&mut self) -> ArrowAsyncTask {
        mem::replace(&mut self.raw, ArrowAsyncTask { extract_data: None, private_data: ptr::null_mut() })
    }

    /// The key-value pairs that came with the task.
    ///
    /// # Errors
    ///
    /// [`ViewError::Metadata`] if they were malformed; the batch can be extracted all the same.
    pub fn metadata(&self) -> Result<Metadata<'_>, ViewError> {
        self.metadata.as_ref().map(MetadataBuf::as_metadata).map_err(|error| *error)
    }

    /// Extracts the batch, on this thread.
    ///
    /// # Errors
    ///
    /// - [`StreamError::Failed`] if the producer could not, whose `on_error` follows with what it has to say about it;
    /// - [`StreamError::ReleasedArray`] if it said that it could, and gave nothing;
    /// - [`StreamError::DeviceType`] if the array is on another type of device than its stream (S1): it was released;
    /// - [`StreamError::MissingCallback`].
    pub fn extract(mut self) -> Result<OwnedDeviceArray, StreamError> {
        let callback = "extract_data";
        let mut task = self.take();
        let extract_data = task.extract_data.ok_or(StreamError::MissingCallback { callback })?;
        let mut array = OwnedDeviceArray::released();
        // SAFETY: `new` was promised a live task that nobody else extracts, and it was there to take until now. The out-struct is valid for writes; on success it is released, or a live array that is ours and hangs on
        // neither the task nor the stream.
        let code = unsafe { extract_data(&raw mut task, array.as_mut_ptr()) };
        if code != 0 {
            // Whatever was left there is not ours to read or release.
            array.forget();
            return Err(StreamError::Failed { callback, code, message: None });
        }
        let found = array.as_raw().device_type;
        if array.is_released() {
            Err(StreamError::ReleasedArray)
        } else if found == self.device_type {
            Ok(array)
        } else {
            Err(StreamError::DeviceType { stream: self.device_type, array: found })
        }
    }
}

impl Drop for AsyncTask {
    fn drop(&mut self) {
        let mut task = self.take();
        if let Some(extract_data) = task.extract_data {
            // SAFETY: as in `extract`; a null out-struct discards the batch, and the answer means nothing then.
            unsafe { extract_data(&raw mut task, ptr::null_mut()) };
        }
    }
}

impl fmt::Debug for AsyncTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncTask").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}
