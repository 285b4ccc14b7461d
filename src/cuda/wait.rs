//! For a consumer: a stream or the host waits for a foreign event, or asks.

use alloc::sync::Arc;
use core::ffi::c_void;
use core::ptr;

use cudarc::driver::sys::{CUcontext, CUevent, CUstream};
use cudarc::driver::{CudaContext, CudaStream};

use super::context::Current;
use super::driver::{CudaError, call, check_device};
use super::event::{query, queue_wait};
use crate::consumer::{EventWaiter, Readiness, SyncErrorKind};
use crate::device::{Device, SyncEvent};
use crate::owned::OwnedDeviceArray;

/// The handle of an array's event: what `sync_event` points to (C1).
fn handle(device: Device, event: SyncEvent<'_>) -> Result<CUevent, CudaError> {
    let SyncEvent::Cuda(pointer) = event else {
        return Err(CudaError::NotCuda(device));
    };
    // SAFETY: an event of the CUDA kind points to a handle, as whoever made it of a raw pointer promised, for as long as
    // the `SyncEvent` lives.
    let handle = unsafe { pointer.as_ptr().read() };
    if handle.is_null() {
        return Err(CudaError::NullEvent);
    }
    check_device(device)?;
    Ok(handle.cast())
}

/// Makes the stream wait on the device; the host goes on.
///
/// The answer is [`Readiness::Queued`]: the buffers are for work that is queued on this stream from now on. As far as the
/// wait goes the array may be released right after: the driver keeps what a queued wait needs of an event that is
/// destroyed. The memory is another matter, so keep the array while it is read: [`InUse`](super::InUse). Event and
/// stream may be of different contexts and devices (C13).
// SAFETY: `Queued` comes after `cuStreamWaitEvent` has put the wait into the stream. Other kinds of events are refused
// unread, and the event is neither destroyed nor kept.
unsafe impl EventWaiter for CudaStream {
    type Error = CudaError;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, CudaError> {
        let event = handle(device, event)?;
        let _current = Current::enter(self.context().cu_ctx())?;
        // SAFETY: the event lives as long as the borrowed `SyncEvent`, the stream as long as `self`.
        unsafe { queue_wait(self.cu_stream(), event) }?;
        Ok(Readiness::Queued)
    }
}

/// A CUDA stream of another library, as a waiter: it waits on the device, as a [`CudaStream`] does.
///
/// Handles 0, 1 and 2 are no streams but names of some (C22): 1 is the legacy default stream of the current context, 2
/// the calling thread's default stream in it. 0 is either, as the code was compiled that calls it: here it is passed to
/// the driver's own functions, for which it is the legacy one. Say 1 or 2 where it matters.
#[derive(Debug)]
pub struct RawStream {
    stream: CUstream,
    context: CUcontext,
}

impl RawStream {
    /// A stream by its handle, a `CUstream` or `cudaStream_t`.
    ///
    /// The context is asked of the driver; for the handles 0, 1 and 2 it is the one that is current on the thread that
    /// waits.
    ///
    /// # Safety
    ///
    /// - `stream` is 0, 1, 2 or a live stream, and stays so as long as the result is used.
    #[must_use]
    pub const unsafe fn new(stream: *mut c_void) -> Self {
        // SAFETY: as the caller promises; no context is named.
        unsafe { Self::in_context(stream, ptr::null_mut()) }
    }

    /// A stream by its handle, of this context.
    ///
    /// # Safety
    ///
    /// - As for [`new`](Self::new).
    /// - `context` is null or a live context, and stays so as long as the result is used; the stream is of this context.
    #[must_use]
    pub const unsafe fn in_context(stream: *mut c_void, context: CUcontext) -> Self {
        Self { stream: stream.cast(), context }
    }

    /// The context that the wait has to be queued in; null for the current one.
    fn context(&self) -> Result<CUcontext, CudaError> {
        // 0, 1 and 2 have no context of their own.
        if !self.context.is_null() || self.stream.addr() <= 2 {
            return Ok(self.context);
        }
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle; the stream is live, as `new` was promised.
        unsafe { call!(cuStreamGetCtx(self.stream, &raw mut context)) }?;
        Ok(context)
    }
}

// SAFETY: as for `CudaStream`.
unsafe impl EventWaiter for RawStream {
    type Error = CudaError;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, CudaError> {
        let event = handle(device, event)?;
        let context = self.context()?;
        let _current = if context.is_null() { None } else { Some(Current::enter(context)?) };
        // SAFETY: the event lives as long as the borrowed `SyncEvent`, the stream as `new` was promised.
        unsafe { queue_wait(self.stream, event) }?;
        Ok(Readiness::Queued)
    }
}

/// The host waits until the event has fired; or asks whether it has.
///
/// Some context has to be current for that, of whatever device: the given one, else the one that is current, else the
/// primary context of the array's device, for the time of the call. That one is made for it if nobody else has it, which
/// takes long; so give a context on threads that have none.
#[derive(Debug, Clone, Default)]
pub struct HostWait {
    context: Option<Arc<CudaContext>>,
}

impl HostWait {
    /// Waits in whatever context is current, or in the primary one.
    #[must_use]
    pub const fn new() -> Self {
        Self { context: None }
    }

    /// Waits in this context.
    #[must_use]
    pub const fn in_context(context: Arc<CudaContext>) -> Self {
        Self { context: Some(context) }
    }

    fn enter(&self, device: Device) -> Result<Current, CudaError> {
        match &self.context {
            Some(context) => Current::enter(context.cu_ctx()),
            None => Current::any(device.device_id),
        }
    }

    /// Whether the array's event has fired, or there is none; does not block.
    ///
    /// [`synchronize`](OwnedDeviceArray::synchronize) with this waiter returns at once then, and opens the buffers.
    ///
    /// # Errors
    ///
    /// As those of `synchronize`; the array is as it was.
    pub fn is_complete(&self, array: &OwnedDeviceArray) -> Result<bool, SyncErrorKind<CudaError>> {
        if array.is_released() {
            return Err(SyncErrorKind::Released);
        }
        let Some(event) = array.sync_event().map_err(SyncErrorKind::UnexpectedEvent)? else {
            return Ok(true);
        };
        let device = array.device();
        let complete = || {
            let event = handle(device, event)?;
            let _current = self.enter(device)?;
            // SAFETY: the event lives as long as the array, which is borrowed.
            unsafe { query(event) }
        };
        complete().map_err(SyncErrorKind::Wait)
    }
}

// SAFETY: `Complete` comes after `cuEventSynchronize` has said that the event has fired. Other kinds of events are refused
// unread, and the event is neither destroyed nor kept.
unsafe impl EventWaiter for HostWait {
    type Error = CudaError;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, CudaError> {
        let event = handle(device, event)?;
        let _current = self.enter(device)?;
        // SAFETY: the event lives as long as the borrowed `SyncEvent`.
        unsafe { call!(cuEventSynchronize(event)) }?;
        Ok(Readiness::Complete)
    }
}
