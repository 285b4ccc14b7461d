//! The calling thread's current context, changed and put back.

use alloc::sync::Arc;
use core::ffi::c_int;
use core::ptr;

use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUcontext, CUdevice};

use super::driver::{CudaError, call};

/// Puts the context back, when dropped, that was current when it was made (C14).
///
/// By setting the current context and not by a push and a pop: a context that is destroyed in between, by the last owner
/// of an array that is released, leaves the thread's stack by itself, and a pop would then take the caller's off.
pub(super) struct Current {
    before: CUcontext,
    /// A device whose primary context was retained for the time in between.
    retained: Option<CUdevice>,
}

/// The context that is current on this thread; null if none is.
fn current() -> Result<CUcontext, CudaError> {
    let mut context = ptr::null_mut();
    // SAFETY: writes one handle.
    unsafe { call!(cuCtxGetCurrent(&raw mut context)) }?;
    Ok(context)
}

impl Current {
    /// Makes `context` current on this thread.
    ///
    /// The driver has been asked for before.
    pub(super) fn enter(context: CUcontext) -> Result<Self, CudaError> {
        let entered = Self { before: current()?, retained: None };
        if entered.before != context {
            // SAFETY: a handle that the driver checks; the caller's context or stream keeps it alive.
            unsafe { call!(cuCtxSetCurrent(context)) }?;
        }
        Ok(entered)
    }

    /// Makes sure that some context is current: the one that is, or the primary context of the device.
    pub(super) fn any(device: i64) -> Result<Self, CudaError> {
        let before = current()?;
        if !before.is_null() {
            return Ok(Self { before, retained: None });
        }
        let mut handle: CUdevice = 0;
        // Memory of the host may name no device: the first will do.
        let ordinal = c_int::try_from(device).unwrap_or(0).max(0);
        // SAFETY: writes one integer.
        unsafe { call!(cuDeviceGet(&raw mut handle, ordinal)) }?;
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle; the device is one of the driver's.
        unsafe { call!(cuDevicePrimaryCtxRetain(&raw mut context, handle)) }?;
        // From here on the drop releases it, whatever comes.
        let entered = Self { before, retained: Some(handle) };
        // SAFETY: a context that is retained.
        unsafe { call!(cuCtxSetCurrent(context)) }?;
        Ok(entered)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // There is nobody to tell: a driver that refuses these is past use, as at the exit of the process (C16).
        if current() != Ok(self.before) {
            // SAFETY: the context that was current on this thread, or null for none.
            unsafe { call!(cuCtxSetCurrent(self.before)) }.ok();
        }
        if let Some(device) = self.retained {
            // SAFETY: retained by `any`, once.
            unsafe { call!(cuDevicePrimaryCtxRelease_v2(device)) }.ok();
        }
    }
}

/// [`Current`] for what may drop the last owner of the context that it enters.
///
/// If that context was current before, there is nothing to put back: its end takes it off the thread's stack. Setting it
/// again would set a handle that is none any more.
pub(super) struct Inside {
    current: Option<Current>,
    context: Option<Arc<CudaContext>>,
}

impl Inside {
    /// That the context cannot be entered is no reason not to do what was to be done in it.
    pub(super) fn new(context: Arc<CudaContext>) -> Self {
        Self { current: Current::enter(context.cu_ctx()).ok(), context: Some(context) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let handle = self.context.as_ref().map_or(ptr::null_mut(), |context| context.cu_ctx());
        if self.current.as_ref().is_some_and(|current| current.before == handle) {
            self.current = None;
            self.context = None;
        } else {
            // cudarc makes a context current to end it.
            self.context = None;
            self.current = None;
        }
    }
}
