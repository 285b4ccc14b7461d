//! The C Stream Interface and the C Device Stream Interface.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use super::{ArrowArray, ArrowDeviceArray, ArrowDeviceType, ArrowSchema};

/// A source of arrays in host memory, all of one schema
/// ([structure](https://arrow.apache.org/docs/format/CStreamInterface.html#structure-definition)).
///
/// Callbacks return 0 or an errno value and are never called at the same time from two threads. Owns nothing by
/// itself: [`OwnedArrayStream`](crate::OwnedArrayStream) does.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    /// Writes the schema of all arrays to `out`; may be called any number of times.
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int>,
    /// Writes the next array to `out`, a released one at the end.
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, out: *mut ArrowArray) -> c_int>,
    /// Text of the last failure, valid until the next callback, or null. Only to be called after a failure.
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    /// Frees the stream's contents and sets itself to null; null in a released struct.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

impl ArrowArrayStream {
    /// A struct that holds nothing: every field zero, so already released.
    #[must_use]
    pub const fn released() -> Self {
        Self {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// Whether `release` is null: no other callback may be called then.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

/// A source of device arrays, all of one schema and on one type of device
/// ([structure](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#structure-definition)).
///
/// Callbacks return 0 or an errno value and are never called at the same time from two threads. Owns nothing by
/// itself: [`OwnedDeviceArrayStream`](crate::OwnedDeviceArrayStream) does.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArrayStream {
    /// Type of the device that every array of the stream is on.
    pub device_type: ArrowDeviceType,
    /// Writes the schema of all arrays to `out`; may be called any number of times.
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, out: *mut ArrowSchema) -> c_int>,
    /// Writes the next array to `out`, a released one at the end.
    pub get_next:
        Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int>,
    /// Text of the last failure, valid until the next callback, or null. Only to be called after a failure.
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream) -> *const c_char>,
    /// Frees the stream's contents and sets itself to null; null in a released struct.
    pub release: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

impl ArrowDeviceArrayStream {
    /// A struct that holds nothing: every field zero, so already released.
    #[must_use]
    pub const fn released() -> Self {
        Self {
            device_type: ArrowDeviceType(0),
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// Whether `release` is null: no other callback may be called then.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.release.is_none()
    }
}
