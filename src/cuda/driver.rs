//! Whether there is a driver that can be called, and what its calls say.

use std::sync::OnceLock;

use core::ffi::c_int;
use core::fmt;

use cudarc::driver::{DriverError, sys};

use crate::device::Device;
use crate::raw::ArrowDeviceType;

/// Why something of CUDA could not be done.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CudaError {
    /// The array's device is not one of CUDA's, so it has no CUDA event.
    NotCuda(Device),
    /// The array says that it has an event, but its handle is null (C1).
    NullEvent,
    /// The array waits in a queue for an event that it does not have itself: it was moved out of the one that has.
    NoEvent,
    /// The stream captures a graph: what is queued on it does not run, so that nothing waits for it.
    Capturing,
    /// The driver has no device of this number.
    NoSuchDevice(Device),
    /// There is no CUDA driver on this machine.
    NoDriver,
    /// There is a library with the driver's name, but it lacks this function.
    MissingFunction(&'static str),
    /// The driver refused a call.
    Driver {
        /// The function of the driver API.
        call: &'static str,
        /// What it said.
        error: DriverError,
    },
}

impl CudaError {
    /// The driver's own number of what went wrong, if it was the driver that said so.
    #[must_use]
    pub const fn code(&self) -> Option<c_int> {
        match self {
            #[allow(
                clippy::cast_possible_wrap,
                reason = "the results that cudarc has names for are below 1000"
            )]
            Self::Driver { error, .. } => Some(error.0 as c_int),
            _ => None,
        }
    }
}

impl CudaError {
    /// Whether the driver refused because a graph is being captured, on this or another stream.
    pub(super) fn is_of_a_capture(self) -> bool {
        // From CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED to CUDA_ERROR_CAPTURED_EVENT, and the one for the wrong thread.
        self == Self::Capturing || self.code().is_some_and(|code| (900..=908).contains(&code))
    }
}

impl fmt::Debug for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCuda(device) => f.debug_tuple("NotCuda").field(device).finish(),
            Self::NullEvent => f.write_str("NullEvent"),
            Self::NoEvent => f.write_str("NoEvent"),
            Self::Capturing => f.write_str("Capturing"),
            Self::NoSuchDevice(device) => f.debug_tuple("NoSuchDevice").field(device).finish(),
            Self::NoDriver => f.write_str("NoDriver"),
            Self::MissingFunction(name) => f.debug_tuple("MissingFunction").field(name).finish(),
            // The number only: `DriverError` calls the driver to describe itself.
            Self::Driver { call, error } => {
                f.debug_struct("Driver").field("call", call).field("error", &error.0).finish()
            }
        }
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCuda(device) => write!(f, "there are no CUDA events for arrays on {device}"),
            Self::NullEvent => f.write_str("the handle of the array's CUDA event is null"),
            Self::NoEvent => {
                f.write_str("the array is not known to be written, and has no event to wait for")
            }
            Self::Capturing => f.write_str("the CUDA stream captures a graph"),
            Self::NoSuchDevice(device) => write!(f, "the CUDA driver knows no device {device}"),
            Self::NoDriver => f.write_str("there is no CUDA driver on this machine"),
            Self::MissingFunction(name) => write!(f, "the CUDA driver's library lacks {name}"),
            Self::Driver { call, error } => write!(f, "{call} failed: {:?}", error.0),
        }
    }
}

impl core::error::Error for CudaError {}

/// The result of a call of the driver.
pub(super) fn check(call: &'static str, result: sys::CUresult) -> Result<(), CudaError> {
    result.result().map_err(|error| CudaError::Driver { call, error })
}

/// Calls a function of the driver API: `call!(cuEventQuery(event))`.
///
/// The caller argues why the arguments are what the function takes, and has asked [`require`] before.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::cuda::driver::check(stringify!($name), cudarc::driver::sys::$name($($argument),*))
    };
}
pub(super) use call;

/// What this module, and cudarc for it, calls.
const FUNCTIONS: &[&str] = &[
    "cuInit",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamWaitEvent",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventDestroy_v2",
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemsetD8Async",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Makes sure that the driver can be called, initialised; gives the number of its devices.
pub(super) fn require() -> Result<c_int, CudaError> {
    // Only success is remembered: a driver may come.
    static DEVICES: OnceLock<c_int> = OnceLock::new();
    if let Some(devices) = DEVICES.get() {
        return Ok(*devices);
    }
    library::probe()?;
    // SAFETY: takes a number, and may be called again at any time.
    unsafe { call!(cuInit(0)) }?;
    let mut devices = 0;
    // SAFETY: writes one integer.
    unsafe { call!(cuDeviceGetCount(&raw mut devices)) }?;
    Ok(*DEVICES.get_or_init(|| devices))
}

/// Whether an array that says so can be on this device. Memory of the host need not belong to one of the devices.
pub(super) fn check_device(device: Device) -> Result<(), CudaError> {
    let lowest = match device.device_type {
        ArrowDeviceType::CUDA => 0,
        ArrowDeviceType::CUDA_HOST | ArrowDeviceType::CUDA_MANAGED => -1,
        _ => return Err(CudaError::NotCuda(device)),
    };
    let devices = require()?;
    if (lowest..i64::from(devices)).contains(&device.device_id) {
        Ok(())
    } else {
        Err(CudaError::NoSuchDevice(device))
    }
}

/// The driver's library as cudarc loads it.
///
/// cudarc has the two functions `is_culib_present` and `culib` only where it loads the driver at run time. Where it is
/// linked, a missing library or function has already kept the program from being linked or started, and the stand-ins
/// of this module take their place: a name that the inner glob import brings hides the outer one.
mod library {
    use super::{CudaError, FUNCTIONS};

    struct Linked;

    impl Linked {
        /// As libloading's.
        #[allow(dead_code, clippy::unused_self, reason = "used where the driver is linked")]
        unsafe fn get<F>(&self, _: &[u8]) -> Result<(), core::marker::PhantomData<F>> {
            Ok(())
        }
    }

    #[allow(dead_code, reason = "used where the driver is linked")]
    unsafe fn is_culib_present() -> bool {
        true
    }

    #[allow(dead_code, reason = "used where the driver is linked")]
    unsafe fn culib() -> &'static Linked {
        &Linked
    }

    pub(super) fn probe() -> Result<(), CudaError> {
        #[allow(
            unused_imports,
            clippy::wildcard_imports,
            reason = "it brings the two names if there are any"
        )]
        use cudarc::driver::sys::*;

        // SAFETY: opens the driver's library, as any first call of cudarc does.
        if !unsafe { is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        // SAFETY: as above; it is there, so this does not panic.
        let library = unsafe { culib() };
        for name in FUNCTIONS {
            // SAFETY: the symbol is not called, nor kept.
            let symbol = unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) };
            if symbol.is_err() {
                return Err(CudaError::MissingFunction(name));
            }
        }
        Ok(())
    }
}
