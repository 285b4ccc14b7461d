//! The receiving wing: waiting for device arrays and draining streams.

#[cfg(feature = "async")]
mod async_stream;
mod checked;
mod stream;
mod sync;
mod validate;

#[cfg(feature = "async")]
pub use async_stream::{AsyncArrays, AsyncControl, AsyncReceiver, AsyncTask, Demand, Receive};
pub use checked::{CheckedReader, CheckedStreamError};
pub use stream::{ArrayStreamReader, DeviceArrayStreamReader, StreamReader, StreamStruct};
pub(crate) use sync::not_host_ready;
pub use sync::{
    EventWaiter, NoWait, NoWaiter, NotHostReady, Readiness, ReadyDeviceArray, SyncError, SyncErrorKind,
};
pub(crate) use validate::{Depth, check, path, type_of};
pub use validate::{Fault, Invalid, Limits};
