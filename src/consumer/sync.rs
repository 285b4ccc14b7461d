//! The rule that a consumer waits before it touches the buffers (D5), as types.

use alloc::sync::Arc;
use core::fmt;

use crate::device::{Device, SyncEvent, UnexpectedEvent};
use crate::owned::{OwnedArray, OwnedDeviceArray};
use crate::raw::{ArrowArray, ArrowDeviceArray};
use crate::view::{ArrayView, ViewError};

/// Who may touch the buffers of a [`ReadyDeviceArray`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Readiness {
    /// Everybody: the work that writes the buffers is done.
    Complete,
    /// Only work that is queued behind the wait, on the queue that the waiter put it on: the host did not wait.
    ///
    /// Keep the array until that work is done: the wait needs its event no more, but the work needs its memory. If what
    /// writes the buffers fails meanwhile, that work may run all the same: the event is still in the array, to be
    /// [synchronized](OwnedDeviceArray::synchronize) again by the host, or the runtime reports it in its own way.
    Queued,
}

/// Waits for sync events of some kind, or makes a queue of its device wait for them.
///
/// Implemented by [`NoWait`], by references to waiters and `Arc`s of them, and by the user of any runtime that this crate
/// does not know.
///
/// # Safety
///
/// Safe code gets at the buffers because of what [`wait`](Self::wait) returns, so:
/// - it returns [`Readiness::Complete`] only once the event has fired, and what was written before it is visible: in some
///   runtimes, OpenCL for one, a wait makes it so and asking for the event's status does not;
/// - it returns [`Readiness::Queued`] only once a wait for the event stands in a queue, before all work that comes later;
/// - it returns an error for work that failed, if the runtime tells;
/// - it returns an error for every kind of event that it does not know, and does not dereference that;
/// - it does not destroy the event, nor keep the pointer.
pub unsafe trait EventWaiter {
    /// Why waiting failed.
    type Error;

    /// Waits for `event`, which belongs to an array on `device`.
    ///
    /// # Errors
    ///
    /// Whatever kept it from waiting; the array is given back to the caller then.
    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, Self::Error>;
}

macro_rules! through {
    ($($pointer:ty),+) => { $(
        // SAFETY: it is the waiter's own answer.
        unsafe impl<W: EventWaiter + ?Sized> EventWaiter for $pointer {
            type Error = W::Error;

            fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, W::Error> {
                (**self).wait(device, event)
            }
        }
    )+ };
}
through!(&W, Arc<W>);

/// The waiter of a consumer that knows no runtime: takes arrays that need no waiting, refuses all others.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWait;

/// The array has an event, and [`NoWait`] waits for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoWaiter;

impl fmt::Display for NoWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the array has an event to wait for, and no waiter that could was given")
    }
}

impl core::error::Error for NoWaiter {}

// SAFETY: never returns a readiness.
unsafe impl EventWaiter for NoWait {
    type Error = NoWaiter;

    fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, NoWaiter> {
        Err(NoWaiter)
    }
}

impl OwnedDeviceArray {
    /// Waits for the array's event, if it has one, and opens its buffers (D5, D7).
    ///
    /// An array without an event is complete at once and `waiter` is not asked (D8). Afterwards the array may be
    /// released at any time, as far as the event is concerned: a wait that stands in a queue needs it no more.
    ///
    /// # Errors
    ///
    /// A [`SyncError`] that gives the array back: it has an event but its device type has none, the waiter failed, or
    /// the array is released.
    #[allow(clippy::result_large_err, reason = "the error gives the array back")]
    pub fn synchronize<W: EventWaiter + ?Sized>(
        self,
        waiter: &W,
    ) -> Result<ReadyDeviceArray, SyncError<W::Error>> {
        if self.is_released() {
            return Err(SyncError { array: self, kind: SyncErrorKind::Released });
        }
        let readiness = match self.sync_event() {
            Ok(None) => Ok(Readiness::Complete),
            Ok(Some(event)) => waiter.wait(self.device(), event).map_err(SyncErrorKind::Wait),
            Err(unexpected) => Err(SyncErrorKind::UnexpectedEvent(unexpected)),
        };
        match readiness {
            Ok(readiness) => Ok(ReadyDeviceArray { array: self, readiness }),
            Err(kind) => Err(SyncError { array: self, kind }),
        }
    }

    /// Opens the buffers without looking at the event, for a caller that has waited by other means.
    ///
    /// # Safety
    ///
    /// - The work that writes the buffers is done: the event, if there is one, has fired.
    #[must_use]
    pub unsafe fn assume_ready(self) -> ReadyDeviceArray {
        ReadyDeviceArray { array: self, readiness: Readiness::Complete }
    }
}

/// A device array whose event has been waited for: the only one that shows its buffers.
///
/// Owns the array, and releases it when dropped.
#[derive(Debug)]
pub struct ReadyDeviceArray {
    array: OwnedDeviceArray,
    readiness: Readiness,
}

impl ReadyDeviceArray {
    /// The array with its buffers.
    ///
    /// # Errors
    ///
    /// As [`ArrayView::from_raw`].
    pub fn view(&self) -> Result<ArrayView<'_>, ViewError> {
        // SAFETY: `take` was promised a struct that obeys the interface; changing or releasing it needs `self`
        // unborrowed.
        unsafe { ArrayView::from_raw(self.raw()) }
    }

    /// The embedded array, to read.
    pub(crate) fn raw(&self) -> &ArrowArray {
        &self.array.as_raw().array
    }

    /// The device that the buffers are on.
    #[must_use]
    pub fn device(&self) -> Device {
        self.array.device()
    }

    /// The event that was waited for, if there was one.
    pub(crate) fn sync_event(&self) -> Option<SyncEvent<'_>> {
        // One that its device type cannot have was never waited for.
        self.array.sync_event().ok().flatten()
    }

    /// Who may touch the buffers.
    #[must_use]
    pub const fn readiness(&self) -> Readiness {
        self.readiness
    }

    /// Whether the host can read the buffers, and may, now: it can reach the memory, and the work that writes it is
    /// done (C19).
    #[must_use]
    pub fn is_host_ready(&self) -> bool {
        self.device().is_host_readable() && self.readiness == Readiness::Complete
    }

    /// Moves a child out (B5), on the same device and as ready as `self`, which can be dropped before it.
    ///
    /// The event stays with `self`.
    ///
    /// # Errors
    ///
    /// As [`ArrayView::child`]; nothing was moved then. A child can be moved out once.
    pub fn take_child(&mut self, index: usize) -> Result<Self, ViewError> {
        let view = self.view()?;
        // SAFETY: `self` owns the tree, and `&mut` means that nothing else uses it.
        unsafe { view.take_child(index) }.map(|child| self.beside(child))
    }

    /// Moves the dictionary out (B5), as [`take_child`](Self::take_child) does a child; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`ViewError::Released`] if the dictionary was moved out before.
    pub fn take_dictionary(&mut self) -> Result<Option<Self>, ViewError> {
        let view = self.view()?;
        // SAFETY: `self` owns the tree, and `&mut` means that nothing else uses it.
        let dictionary = unsafe { view.take_dictionary() }?;
        Ok(dictionary.map(|dictionary| self.beside(dictionary)))
    }

    /// A node that was moved out of `self`.
    fn beside(&self, node: OwnedArray) -> Self {
        // SAFETY: a node is where its parent is. It has no event of its own, which `readiness` remembers.
        let array = unsafe { node.on_device(self.device()) };
        Self { array, readiness: self.readiness }
    }

    /// The array as one of the C Data Interface, which is for host memory only.
    ///
    /// What kept the device array alive, event included, is released with it (D3).
    ///
    /// # Errors
    ///
    /// [`NotHostReady`] gives `self` back if it is not [host-ready](Self::is_host_ready).
    #[allow(clippy::result_large_err, reason = "the error gives the array back")]
    pub fn into_host_array(self) -> Result<OwnedArray, NotHostReady> {
        if self.is_host_ready() {
            let ArrowDeviceArray { array, .. } = self.array.into_raw();
            // SAFETY: the device array was owned by `self`, which is gone; its buffers are host memory and written, so
            // what is left is an array of the C Data Interface.
            Ok(unsafe { OwnedArray::adopt(array) })
        } else {
            Err(NotHostReady(self))
        }
    }

    /// The array as it was received, to hand on. Its event is still in it, for the next consumer to wait for.
    ///
    /// # Errors
    ///
    /// [`NotHostReady`] gives `self` back if it was moved out of an array whose event has not been seen to fire: the
    /// next consumer would have nothing to wait for. Export such an array with an event of your own.
    #[allow(clippy::result_large_err, reason = "the error gives the array back")]
    pub fn into_device_array(self) -> Result<OwnedDeviceArray, NotHostReady> {
        if self.readiness == Readiness::Queued && self.array.as_raw().sync_event.is_null() {
            Err(NotHostReady(self))
        } else {
            Ok(self.array)
        }
    }
}

/// Waiting for an array failed; here it is back.
pub struct SyncError<E> {
    /// The array, as it was.
    pub array: OwnedDeviceArray,
    /// What failed.
    pub kind: SyncErrorKind<E>,
}

/// What failed when an array was to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncErrorKind<E> {
    /// The array is released: C moved it out.
    Released,
    /// The array has an event, but its device type has none.
    UnexpectedEvent(UnexpectedEvent),
    /// The waiter failed.
    Wait(E),
}

impl<E: fmt::Debug> fmt::Debug for SyncError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncError").field("device", &self.array.device()).field("kind", &self.kind).finish()
    }
}

impl<E: fmt::Display> fmt::Display for SyncErrorKind<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the array is released or was moved away"),
            Self::UnexpectedEvent(error) => error.fmt(f),
            Self::Wait(error) => write!(f, "waiting for the array's event failed: {error}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for SyncError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for SyncErrorKind<E> {}
impl<E: fmt::Debug + fmt::Display> core::error::Error for SyncError<E> {}

/// The array is only for those who may touch it where it is, as far as they have waited. Here it is back.
#[derive(Debug)]
pub struct NotHostReady(pub ReadyDeviceArray);

impl fmt::Display for NotHostReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        not_host_ready(f, self.0.device(), self.0.readiness())
    }
}

/// Why the host may not touch the buffers.
pub(crate) fn not_host_ready(
    f: &mut fmt::Formatter<'_>,
    device: Device,
    readiness: Readiness,
) -> fmt::Result {
    match readiness {
        Readiness::Queued => {
            write!(f, "the array on {device} was waited for in a queue, not by the host")
        }
        Readiness::Complete => write!(f, "the host cannot read memory of {device}"),
    }
}

impl core::error::Error for NotHostReady {}
