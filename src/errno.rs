//! The error codes that callbacks of the C interfaces return, as the platform's `errno` values.
//!
//! The stream interface says "an errno value" without listing any
//! ([rule](https://arrow.apache.org/docs/format/CStreamInterface.html#error-codes)); these are the ones to know. A
//! code received from C is kept as it is, known or not.

use core::ffi::c_int;

/// Where there is a C library its own values hold.
#[cfg(any(unix, windows, target_os = "wasi"))]
mod platform {
    pub(super) use libc::{EINVAL, EIO, ENOMEM};
}

/// Without a C library (`wasm32-unknown-unknown`) there is nothing to ask and nobody to disagree: these three have had
/// the same values in every C library since the seventh edition of Unix.
#[cfg(not(any(unix, windows, target_os = "wasi")))]
mod platform {
    pub(super) const EIO: core::ffi::c_int = 5;
    pub(super) const ENOMEM: core::ffi::c_int = 12;
    pub(super) const EINVAL: core::ffi::c_int = 22;
}

/// An argument or input was invalid.
pub const EINVAL: c_int = platform::EINVAL;
/// Input or output failed; also the code for any failure that has no better one.
pub const EIO: c_int = platform::EIO;
/// Memory could not be allocated.
pub const ENOMEM: c_int = platform::ENOMEM;
