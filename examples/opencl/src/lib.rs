//! Arrow arrays in the memory of an OpenCL device, exchanged through the C Device Data Interface: what a user of a
//! runtime that arrow-device-abi does not know writes, and nothing more.
//!
//! The interface says only that `sync_event` points to a `cl_event`. What else two OpenCL libraries have to agree on, and
//! how it is done here:
//!
//! - **Buffers** are device pointers (D2). A `cl_mem` is a handle, to which no offset can be added, and not an address: so
//!   the memory is shared virtual memory, of `clSVMAlloc`, which needs OpenCL 2.0. (DLPack puts a `cl_mem` in the same place; a
//!   consumer cannot tell the two apart.)
//! - **Context.** Pointers and events are good only in the `cl_context` that they were made in, and nothing in the struct
//!   names it but the event. So an array is always exported with its event, even if that has fired.
//! - **Device id.** OpenCL does not number its devices. Here it is the position among the devices of that context.
//! - **Flush.** A command that its queue holds back never fires its event: whoever exports flushes first.
//! - **Memory model.** The memory is coarse-grained: the host reads it through commands in a queue, not through the pointer,
//!   also after it has waited.
//! - **Releasing.** `clSVMFree` waits for nothing. A consumer releases once its own commands are done with the buffers; the
//!   event alone may go earlier. A producer whose array is released unread frees when the event has fired.

pub mod consumer;
pub mod producer;
mod wait;

pub use wait::{HostWait, QueueWait, WaitError};
