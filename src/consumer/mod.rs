//! The receiving wing: waiting for device arrays and draining streams.

mod stream;
mod sync;

pub use stream::{ArrayStreamReader, DeviceArrayStreamReader, StreamReader, StreamStruct};
pub use sync::{
    EventWaiter, NoWait, NoWaiter, NotHostReady, Readiness, ReadyDeviceArray, SyncError, SyncErrorKind,
};
