//! CUDA, through [`cudarc`] and the driver API: waiting for the events of foreign arrays, and recording events for one's
//! own.
//!
//! For a consumer: [`synchronize`](crate::OwnedDeviceArray::synchronize) takes a cudarc
//! [`CudaStream`](cudarc::driver::CudaStream), which waits on the device while the host goes on; a [`RawStream`] of
//! another library, likewise; or a [`HostWait`], with which the host waits. [`InUse`] keeps an array until the work that
//! reads it is done.
//!
//! For a producer: [`CudaExport`] exports device memory with an event that covers the work that wrote it.
//!
//! Between them: a stream is [`DeviceMemory`](crate::DeviceMemory), so that [`to_host`](crate::ReadyDeviceArray::to_host)
//! copies what is on a device, and [`to_device`] copies what is on the host.
//!
//! Which CUDA version and which way of linking is cudarc's business and its user's choice: a crate that enables this
//! feature also names a feature such as `cuda-12080` of `cudarc`, not older than the drivers that the program will meet:
//! cudarc has no room for results of calls that its version does not know. Where the driver is loaded at run time, cudarc panics
//! if it is not there or lacks a function; everything here asks first, and gives an error (C8).
//!
//! Every function leaves the calling thread's current CUDA context as it was, also the release of an exported array
//! (C14).

mod block;
mod context;
mod copy;
mod driver;
mod event;
mod record;
mod reuse;
mod wait;

pub use copy::{ToDeviceError, ToDeviceErrorKind, to_device};
pub use driver::CudaError;
pub use record::{CudaExport, CudaExportError, CudaExportErrorKind};
pub use reuse::{InUse, InUseError, ReleaseError};
pub use wait::{HostWait, RawStream};
