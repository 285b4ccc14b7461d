//! Reading the memory of a device.

use alloc::sync::Arc;
use core::ffi::c_void;
use core::fmt;
use core::ptr;

use crate::consumer::{Readiness, not_host_ready};
use crate::device::{Device, SyncEvent};

/// Bytes to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// Where they are, at any alignment.
    pub from: *const c_void,
    /// Where they go, at any alignment.
    pub to: *mut c_void,
    /// How many there are, at least one.
    pub bytes: usize,
}

impl Transfer {
    pub(super) const fn new(from: *const c_void, to: *mut c_void, bytes: usize) -> Self {
        Self { from, to, bytes }
    }
}

/// Memory of a device, or of several, that can be copied to the host: implemented by [`HostMemory`], and by the user of
/// any runtime that this crate does not know.
///
/// # Safety
///
/// Safe code reads what [`copy_to_host`](Self::copy_to_host) has copied, and frees where it was copied to, so:
/// - [`accept`](Self::accept) takes only arrays whose memory it can copy, and takes one that is [`Readiness::Queued`],
///   which some queue was made to wait for, only after it has made the queue that it copies on wait for the event, too;
/// - once `copy_to_host` returns, with success, with an error, or by a panic that `finished` may raise, no copy of this
///   call reads or writes memory any more;
/// - with success all bytes were copied.
pub unsafe trait DeviceMemory {
    /// Why memory could not be copied.
    type Error;

    /// Whether an array on `device` can be copied that is as ready as this. `event` is what it was waited for by, `None`
    /// if it has none, as of a child that was moved out.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    fn accept(
        &self,
        device: Device,
        readiness: Readiness,
        event: Option<SyncEvent<'_>>,
    ) -> Result<(), Self::Error>;

    /// Copies all of them. Where copies are queued, queue them together and wait once.
    ///
    /// `finished` may be told, as often as wanted, how many bytes were finished since it was told last. What it is not
    /// told is finished when this returns.
    ///
    /// # Errors
    ///
    /// Why something was not copied; what was copied before is not undone.
    ///
    /// # Safety
    ///
    /// - Each `from` is memory of an array that was [accepted](Self::accept), with at least as many bytes, and stays
    ///   valid during the call.
    /// - Each `to` is host memory valid for writes of as many bytes, and overlaps nothing else in `transfers`.
    unsafe fn copy_to_host(
        &self,
        transfers: &[Transfer],
        finished: &mut dyn FnMut(usize),
    ) -> Result<(), Self::Error>;
}

macro_rules! through {
    ($($pointer:ty),+) => { $(
        // SAFETY: it is the memory's own answer.
        unsafe impl<M: DeviceMemory + ?Sized> DeviceMemory for $pointer {
            type Error = M::Error;

            fn accept(
                &self,
                device: Device,
                readiness: Readiness,
                event: Option<SyncEvent<'_>>,
            ) -> Result<(), M::Error> {
                (**self).accept(device, readiness, event)
            }

            unsafe fn copy_to_host(
                &self,
                transfers: &[Transfer],
                finished: &mut dyn FnMut(usize),
            ) -> Result<(), M::Error> {
                // SAFETY: as the caller promises.
                unsafe { (**self).copy_to_host(transfers, finished) }
            }
        }
    )+ };
}
through!(&M, Arc<M>);

/// Memory that the host reads directly: of the CPU, and of devices that share theirs with it, such as `CUDA_HOST` and
/// `CUDA_MANAGED`, once the host has waited (C19).
#[derive(Debug, Clone, Copy, Default)]
pub struct HostMemory;

/// The host cannot read the array's memory, or has not waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotForTheHost {
    /// Where the array is.
    pub device: Device,
    /// How ready it is.
    pub readiness: Readiness,
}

impl fmt::Display for NotForTheHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        not_host_ready(f, self.device, self.readiness)
    }
}

impl core::error::Error for NotForTheHost {}

/// How much is copied before somebody is told.
const STEP: usize = 1 << 24;

// SAFETY: it takes only what the host can read and has waited for, and copies before it returns.
unsafe impl DeviceMemory for HostMemory {
    type Error = NotForTheHost;

    fn accept(
        &self,
        device: Device,
        readiness: Readiness,
        _: Option<SyncEvent<'_>>,
    ) -> Result<(), NotForTheHost> {
        if device.is_host_readable() && readiness == Readiness::Complete {
            Ok(())
        } else {
            Err(NotForTheHost { device, readiness })
        }
    }

    unsafe fn copy_to_host(
        &self,
        transfers: &[Transfer],
        finished: &mut dyn FnMut(usize),
    ) -> Result<(), NotForTheHost> {
        for Transfer { from, to, bytes } in transfers.iter().copied() {
            let mut at = 0;
            while at < bytes {
                let step = STEP.min(bytes.wrapping_sub(at));
                let (from, to) = (from.cast::<u8>().wrapping_add(at), to.cast::<u8>().wrapping_add(at));
                // SAFETY: both have `bytes` bytes, `at + step` of them at most, and do not overlap, as the caller
                // promises.
                unsafe { ptr::copy_nonoverlapping(from, to, step) };
                finished(step);
                at = at.wrapping_add(step);
            }
        }
        Ok(())
    }
}
