//! An event of our own.

use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUevent_wait_flags};
use cudarc::driver::{CudaContext, CudaStream};

use super::context::{Current, Inside};
use super::driver::{CudaError, call, require};

/// An event without timing (C21), in the context that it is recorded in (C13), destroyed in that context.
///
/// cudarc's own leaves another context current on the thread that drops it, which may be anybody's.
#[derive(Debug)]
pub(super) struct Event {
    /// Never null: there is no slot from which a null handle could be destroyed (C15).
    handle: NonNull<sys::CUevent_st>,
    /// Alive as long as the event; let go of with its context current, which releasing it asks for.
    context: ManuallyDrop<Arc<CudaContext>>,
}

// SAFETY: events may be used and destroyed on any thread.
unsafe impl Send for Event {}
// SAFETY: as above; through a shared reference there are only queries and waits.
unsafe impl Sync for Event {}

impl Event {
    /// An event that fires when all is done that is queued on `stream` now.
    ///
    /// On a stream that captures a graph nothing is queued, and an event of it is for that graph alone.
    pub(super) fn record(stream: &CudaStream) -> Result<Self, CudaError> {
        require()?;
        let context = stream.context();
        let _current = Current::enter(context.cu_ctx())?;
        not_capturing(stream.cu_stream())?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle; a context is current.
        unsafe { call!(cuEventCreate(&raw mut handle, CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)) }?;
        let handle = NonNull::new(handle).ok_or(CudaError::NullEvent)?;
        let event = Self { handle, context: ManuallyDrop::new(Arc::clone(context)) };
        // SAFETY: both are of the context that is current, and alive.
        unsafe { call!(cuEventRecord(event.handle(), stream.cu_stream())) }?;
        Ok(event)
    }

    pub(super) const fn handle(&self) -> CUevent {
        self.handle.as_ptr()
    }

    /// The context that the event is of.
    pub(super) fn owner(&self) -> &Arc<CudaContext> {
        &self.context
    }

    fn context(&self) -> sys::CUcontext {
        self.context.cu_ctx()
    }

    /// Makes `stream` wait for the event, on the device.
    pub(super) fn hold_back(&self, stream: &CudaStream) -> Result<(), CudaError> {
        let _current = Current::enter(stream.context().cu_ctx())?;
        // SAFETY: the event is live.
        unsafe { queue_wait(stream.cu_stream(), self.handle()) }
    }

    /// Waits on the host.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        let _current = Current::enter(self.context())?;
        // SAFETY: the event is live.
        unsafe { call!(cuEventSynchronize(self.handle())) }
    }

    /// Waits on the host for what reads or writes memory that is about to go. False if it may still come: while a graph
    /// is captured the driver refuses to wait, and goes on working.
    pub(super) fn settle(&self) -> bool {
        !self.wait().is_err_and(CudaError::is_of_a_capture)
    }

    pub(super) fn is_done(&self) -> Result<bool, CudaError> {
        let _current = Current::enter(self.context())?;
        // SAFETY: the event is live.
        unsafe { query(self.handle()) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: taken only here, and not used again.
        let _inside = Inside::new(unsafe { ManuallyDrop::take(&mut self.context) });
        // Work that is queued behind the event still waits for it: the driver frees it when it has fired. A refusal has
        // nobody to be told to.
        // SAFETY: created by `record`, and destroyed only here.
        unsafe { call!(cuEventDestroy_v2(self.handle())) }.ok();
    }
}

/// That `stream`, whose context is current, runs what is queued on it, and does not capture it.
pub(super) fn not_capturing(stream: sys::CUstream) -> Result<(), CudaError> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: writes one number; the stream is alive.
    unsafe { call!(cuStreamIsCapturing(stream, &raw mut status)) }?;
    if status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        Ok(())
    } else {
        Err(CudaError::Capturing)
    }
}

/// Waits on the host for all that is queued on the stream. False if it may still come: while a graph is captured the
/// driver refuses to wait, and goes on working. A driver that cannot wait for another reason does no work either.
pub(super) fn settle(stream: &CudaStream) -> bool {
    let _current = Current::enter(stream.context().cu_ctx());
    // SAFETY: the stream is alive.
    let waited = unsafe { call!(cuStreamSynchronize(stream.cu_stream())) };
    !waited.is_err_and(CudaError::is_of_a_capture)
}

/// Puts a wait for `event` into `stream`, whose context is current.
///
/// # Safety
///
/// - Both handles are live.
pub(super) unsafe fn queue_wait(stream: sys::CUstream, event: CUevent) -> Result<(), CudaError> {
    let flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT as u32;
    // SAFETY: live, as the caller promises. The stream may be of another context or device than the event.
    unsafe { call!(cuStreamWaitEvent(stream, event, flags)) }
}

/// Whether `event` has fired.
///
/// # Safety
///
/// - The handle is live.
pub(super) unsafe fn query(event: CUevent) -> Result<bool, CudaError> {
    // SAFETY: live, as the caller promises.
    match unsafe { call!(cuEventQuery(event)) } {
        Ok(()) => Ok(true),
        Err(CudaError::Driver { error, .. }) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        Err(error) => Err(error),
    }
}
