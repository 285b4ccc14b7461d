//! For a consumer that reads on a stream of its own: the producer may reuse the memory once the array is released, so it
//! is released when the work is done.

use alloc::sync::Arc;
use core::fmt;

use cudarc::driver::CudaStream;

use super::driver::CudaError;
use super::event::{Event, settle};
use crate::consumer::ReadyDeviceArray;

/// An array that work queued on a stream still reads.
///
/// A release tells the producer that its memory is free, and says nothing of work that is only queued. So after queueing
/// the last reader, put the array in here. It is released
/// - when this is dropped: the host waits for the work first. If the driver will not wait because a graph is captured just
///   then, the array is never released;
/// - by [`release`](Self::release): likewise, with the driver's word on it;
/// - by [`release_behind`](Self::release_behind): at once, if the stream is known on which the producer goes on, which
///   waits for the work instead of the host.
///
/// To let go of many arrays without waiting, keep them in a list and drop those that [are done](Self::is_done).
#[derive(Debug)]
pub struct InUse {
    /// First, as it is released before the event is destroyed, and only after `drop` has waited.
    array: Option<ReadyDeviceArray>,
    done: Event,
}

impl InUse {
    /// Notes the work that is queued on `stream` now as what reads `array`.
    ///
    /// # Errors
    ///
    /// An [`InUseError`] that gives the array back if the driver refuses. The work was waited for then, so that dropping
    /// it is right; but not if the stream [captures](CudaError::Capturing) a graph.
    #[allow(clippy::result_large_err, reason = "the error gives the array back")]
    pub fn until_done(array: ReadyDeviceArray, stream: &Arc<CudaStream>) -> Result<Self, InUseError> {
        match Event::record(stream) {
            Ok(done) => Ok(Self { array: Some(array), done }),
            Err(error) => {
                settle(stream);
                Err(InUseError { array, error })
            }
        }
    }

    /// Whether the work is done, so that dropping this does not wait.
    ///
    /// # Errors
    ///
    /// [`CudaError::Driver`] if the driver does not say.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        self.done.is_done()
    }

    /// Waits for the work on the host, and releases the array.
    ///
    /// # Errors
    ///
    /// A [`ReleaseError`] that gives `self` back if the driver fails.
    #[allow(clippy::result_large_err, reason = "the error gives the array back")]
    pub fn release(mut self) -> Result<(), ReleaseError> {
        match self.done.wait() {
            Ok(()) => {
                self.array = None;
                Ok(())
            }
            Err(error) => Err(ReleaseError { in_use: self, error }),
        }
    }

    /// Makes `producer` wait for the work, on the device, and releases the array at once.
    ///
    /// Right only if the producer reuses or frees the memory in the order of that stream.
    ///
    /// # Errors
    ///
    /// A [`ReleaseError`] that gives `self` back if the driver refuses.
    #[allow(clippy::result_large_err, reason = "the error gives the array back")]
    pub fn release_behind(mut self, producer: &CudaStream) -> Result<(), ReleaseError> {
        match self.done.hold_back(producer) {
            Ok(()) => {
                self.array = None;
                Ok(())
            }
            Err(error) => Err(ReleaseError { in_use: self, error }),
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // A driver that cannot wait does no work either: its context is broken or gone, or the process is at its end. But
        // one that only will not wait now, while a graph is captured, does: then the array is better never released.
        if self.array.is_some() && !self.done.settle() {
            core::mem::forget(self.array.take());
        }
    }
}

/// The work that reads an array could not be noted. Here is the array back.
#[derive(Debug)]
pub struct InUseError {
    /// The array, as it was.
    pub array: ReadyDeviceArray,
    /// What failed.
    pub error: CudaError,
}

impl fmt::Display for InUseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the work that reads the array could not be noted: {}", self.error)
    }
}

impl core::error::Error for InUseError {}

/// An array could not be released in order. Here it is back.
#[derive(Debug)]
pub struct ReleaseError {
    /// The array with its work, as it was.
    pub in_use: InUse,
    /// What failed.
    pub error: CudaError,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the work that reads the array could not be waited for: {}", self.error)
    }
}

impl core::error::Error for ReleaseError {}
