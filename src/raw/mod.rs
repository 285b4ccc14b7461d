//! The ABI: C's structs under C's names, data only.
//!
//! Everything here is what a C header would give: `#[repr(C)]` structs with public fields and nothing that owns,
//! frees, copies or crosses threads by itself. A value of one of these types is a bag of pointers; who may use and
//! who must release what they point to is in [`Owned`](crate::Owned) and in the specification of the
//! [data](https://arrow.apache.org/docs/format/CDataInterface.html),
//! [stream](https://arrow.apache.org/docs/format/CStreamInterface.html) and
//! [device](https://arrow.apache.org/docs/format/CDeviceDataInterface.html) interfaces.
//!
//! That these structs are the C ones is proved each time the crate is compiled, on the target it is compiled for:
//! size, alignment, every offset, every field's type, every constant.
//!
//! Where the specification's page and Arrow's header `arrow/c/abi.h` disagree, these follow the header: see
//! [`ArrowAsyncProducer`] and [`ArrowAsyncDeviceStreamHandler`].

mod async_stream;
mod data;
mod device;
mod layout;
mod stream;

pub use async_stream::{ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask};
pub use data::*;
pub use device::*;
pub use stream::{ArrowArrayStream, ArrowDeviceArrayStream};
