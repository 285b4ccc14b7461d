//! [`EventWaiter`] over OpenCL.

use std::error::Error;
use std::fmt;

use arrow_device_abi::{Device, EventWaiter, Readiness, SyncEvent};
use opencl3::command_queue::CommandQueue;
use opencl3::error_codes::{CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, ClError, error_text};
use opencl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, cl_event, get_event_info, wait_for_events,
};
use opencl3::types::cl_int;

/// Blocks the calling thread until the event has fired.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostWait;

/// Puts a barrier into a queue: commands that are put there later run when the event has fired, be the queue in order
/// or not. The host does not wait.
///
/// Work that has failed is an error here. If it fails later, what stands behind the barrier by then fails too, with −14,
/// but what is queued after that runs: so ask the array's event again in the end, with [`HostWait`].
///
/// The queue has to be one of the context that the event is of, or OpenCL refuses:
/// [`queue_for`](crate::consumer::queue_for) makes one.
#[derive(Debug, Clone, Copy)]
pub struct QueueWait<'a>(pub &'a CommandQueue);

/// Why an array could not be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitError {
    /// The array is on another kind of device. Its event was not looked at.
    NotOpenCl(Device),
    /// `sync_event` points to a null handle.
    NullEvent,
    /// OpenCL's code: −14 if the work that the event stands for failed, −34 if the event is of another context.
    OpenCl(cl_int),
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpenCl(device) => write!(f, "an array on {device} has no cl_event"),
            Self::NullEvent => f.write_str("sync_event points to a null cl_event"),
            Self::OpenCl(code) => write!(f, "{} ({code})", error_text(*code)),
        }
    }
}

impl Error for WaitError {}

impl From<ClError> for WaitError {
    fn from(error: ClError) -> Self {
        Self::OpenCl(error.0)
    }
}

/// The `cl_event` behind an array's event. Never null.
pub(crate) fn handle(device: Device, event: SyncEvent<'_>) -> Result<cl_event, WaitError> {
    let SyncEvent::OpenCl(event) = event else {
        return Err(WaitError::NotOpenCl(device));
    };
    // SAFETY: an event of this kind points to a `cl_event` as long as its lifetime lasts.
    let handle = unsafe { event.as_ptr().read() };
    if handle.is_null() { Err(WaitError::NullEvent) } else { Ok(handle) }
}

// SAFETY: `Complete` is what clWaitForEvents says of the event; all other kinds are refused unread; nothing is kept.
unsafe impl EventWaiter for HostWait {
    type Error = WaitError;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, WaitError> {
        let event = handle(device, event)?;
        wait_for_events(&[event]).map_err(WaitError::OpenCl)?;
        Ok(Readiness::Complete)
    }
}

// SAFETY: `Queued` is said when the barrier stands in the queue; all other kinds of events are refused unread; OpenCL
// keeps the event as long as the barrier needs it, not the pointer to it.
unsafe impl EventWaiter for QueueWait<'_> {
    type Error = WaitError;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, WaitError> {
        let event = handle(device, event)?;
        let status: cl_int =
            get_event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS).map_err(WaitError::OpenCl)?.into();
        if status < CL_COMPLETE {
            return Err(WaitError::OpenCl(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST));
        }
        // Also if it has fired: asking makes no other command see what the kernel wrote, a wait does.
        // SAFETY: a live event, which OpenCL checks to be of the queue's context.
        unsafe { self.0.enqueue_barrier_with_wait_list(&[event]) }?;
        Ok(Readiness::Queued)
    }
}
