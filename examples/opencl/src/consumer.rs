//! The receiving half: a queue where an array is, and its values on the host.

use std::ffi::c_void;
use std::ptr;

use arrow_device_abi::{OwnedDeviceArray, ReadyDeviceArray};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::context::context::{CL_CONTEXT_DEVICES, get_context_info, retain_context};
use opencl3::error_codes::CL_INVALID_DEVICE;
use opencl3::event::{CL_EVENT_CONTEXT, get_event_info};
use opencl3::types::{CL_BLOCKING, cl_context, cl_device_id};

use crate::wait::{self, WaitError};

/// A queue of one's own on an array's device, in the context that its event is of; `None` if it has no event.
///
/// # Errors
///
/// The event is no `cl_event`, or OpenCL's error; `CL_INVALID_DEVICE` if the context has no device of that number.
pub fn queue_for(array: &OwnedDeviceArray) -> Result<Option<CommandQueue>, WaitError> {
    let device = array.device();
    let Some(event) = array.sync_event().map_err(|_| WaitError::NotOpenCl(device))? else {
        return Ok(None);
    };
    let event = wait::handle(device, event)?;
    let context: cl_context =
        pointer(get_event_info(event, CL_EVENT_CONTEXT).map_err(WaitError::OpenCl)?.into());
    let devices: Vec<cl_device_id> = get_context_info(context, CL_CONTEXT_DEVICES)
        .map_err(WaitError::OpenCl)?
        .to_vec_intptr()
        .into_iter()
        .map(pointer)
        .collect();
    let number = usize::try_from(device.device_id).ok();
    let Some(&id) = number.and_then(|number| devices.get(number)) else {
        return Err(WaitError::OpenCl(CL_INVALID_DEVICE));
    };

    // SAFETY: the event is live, and with it its context.
    unsafe { retain_context(context) }.map_err(WaitError::OpenCl)?;
    // Releases what was just retained; the queue keeps the context.
    let context = Context::new(context, &devices);
    // SAFETY: a device of that context.
    Ok(Some(unsafe { CommandQueue::create_with_properties(&context, id, 0, 0) }?))
}

/// A handle that OpenCL gave as a number.
fn pointer(address: isize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address.cast_unsigned())
}

/// The values of an int32 column, read by a command behind all that stands in `queue`, which the host waits for.
///
/// # Errors
///
/// What is wrong with the struct, or OpenCL's error: −14 if the copy waited for work that failed.
///
/// # Safety
///
/// - The column's schema says int32, without nulls.
/// - `queue` is of the column's device and context.
/// - If the column is not complete, the wait for its event stands in `queue`.
pub unsafe fn read_int32(
    queue: &CommandQueue,
    column: &ReadyDeviceArray,
) -> Result<Vec<i32>, Box<dyn std::error::Error>> {
    let view = column.view()?;
    let &[_, values] = view.buffers() else {
        return Err("an int32 column has two buffers".into());
    };
    let mut read = vec![0_i32; view.length()];
    if !read.is_empty() {
        let from = values.cast::<i32>().wrapping_add(view.offset());
        let (to, size) = (read.as_mut_ptr(), size_of_val(&*read));
        // SAFETY: the caller promises that `from` is memory of the queue's context, with as many values, and that they
        // are there when the queue comes to this command; `to` is as long, and the call returns when it is written.
        let copied = unsafe { queue.enqueue_svm_mem_cpy(CL_BLOCKING, to.cast(), from.cast(), size, &[]) }?;
        // A copy that failed has been waited for too; only its event says so.
        copied.wait()?;
    }
    Ok(read)
}
