//! [`AsyncHandler`]: the handler of an asynchronous stream, for whoever is going to call it.

use core::ptr::NonNull;

use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::owned::TakeError;
use crate::raw::ArrowAsyncDeviceStreamHandler;

/// A live [`ArrowAsyncDeviceStreamHandler`] that no producer has been given yet, and the duty to release it
/// ([interface](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#async-device-stream-interface)).
///
/// To a foreign producer it goes as a pointer, with [`into_raw`](Self::into_raw); a foreign handler comes in with
/// [`from_raw`](Self::from_raw), for [`drive`](Self::drive). Dropping it calls the release callback and nothing else,
/// which is allowed at any time (A9).
///
/// It stands for a place: handlers are not moved, since producer and consumer both point to them. The memory is the
/// consumer's, who may free it in its release callback: after that nothing of ours looks at it.
#[derive(Debug)]
pub struct AsyncHandler(NonNull<ArrowAsyncDeviceStreamHandler>);

// SAFETY: `from_raw` was promised that the callbacks may be called from any thread (A14), and only the owner calls them.
unsafe impl Send for AsyncHandler {}

assert_impl_all!(AsyncHandler: Send);
assert_not_impl_any!(AsyncHandler: Sync, Clone);

impl AsyncHandler {
    /// Becomes the one who calls the handler at `handler`.
    ///
    /// # Errors
    ///
    /// [`TakeError::Null`] if it is null, [`TakeError::Released`] if its release callback is. Nothing was changed.
    ///
    /// # Safety
    ///
    /// If `handler` is not null:
    /// - it is [valid](core::ptr#safety) for reads and writes, aligned and initialised, and stays so, at this place, until
    ///   its release callback is called;
    /// - if that is not null, it is a live handler that obeys the interface: its callbacks may be called from any thread,
    ///   one at a time (A14);
    /// - nobody else calls or releases it;
    /// - its consumer calls the producer that it is given only from then on until release returns, extracts each task that
    ///   it accepts once (A10), and a task that it refuses within that call or not at all.
    pub unsafe fn from_raw(handler: *mut ArrowAsyncDeviceStreamHandler) -> Result<Self, TakeError> {
        let handler = NonNull::new(handler).ok_or(TakeError::Null)?;
        // SAFETY: valid for reads, as the caller promises.
        let released = unsafe { (*handler.as_ptr()).is_released() };
        if released { Err(TakeError::Released) } else { Ok(Self(handler)) }
    }

    /// [`from_raw`](Self::from_raw) without the questions.
    ///
    /// # Safety
    ///
    /// - As for [`from_raw`](Self::from_raw), of a live handler.
    pub(crate) unsafe fn adopt(handler: NonNull<ArrowAsyncDeviceStreamHandler>) -> Self {
        Self(handler)
    }

    /// Gives the duty up: the pointer is for the producer, who calls the handler and releases it at last. What it has to
    /// promise a handler of this crate is in [`AsyncReceiver::prepare_at`](crate::AsyncReceiver::prepare_at).
    #[must_use = "a handler that nobody releases leaks, and its consumer waits for ever"]
    pub fn into_raw(self) -> *mut ArrowAsyncDeviceStreamHandler {
        core::mem::ManuallyDrop::new(self).0.as_ptr()
    }

    /// Where the handler is.
    #[must_use]
    pub fn as_ptr(&self) -> *mut ArrowAsyncDeviceStreamHandler {
        self.0.as_ptr()
    }
}

impl Drop for AsyncHandler {
    fn drop(&mut self) {
        let handler = self.0.as_ptr();
        // SAFETY: live until this call, as `from_raw` was promised.
        let release = unsafe { (*handler).release };
        if let Some(release) = release {
            // SAFETY: the last call of a live handler, and nobody else calls it. It may free what `handler` points to.
            unsafe { release(handler) };
        }
    }
}
