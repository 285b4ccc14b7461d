//! The receiving wing: waiting for device arrays and draining streams.

#[cfg(feature = "async")]
mod async_stream;
mod stream;
mod sync;

#[cfg(feature = "async")]
pub use async_stream::{AsyncArrays, AsyncControl, AsyncReceiver, AsyncTask, Demand, Receive};
pub use stream::{ArrayStreamReader, DeviceArrayStreamReader, StreamReader, StreamStruct};
pub use sync::{
    EventWaiter, NoWait, NoWaiter, NotHostReady, Readiness, ReadyDeviceArray, SyncError, SyncErrorKind,
};
