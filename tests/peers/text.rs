//! Text that goes out to C and C++.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::Display;

const REFUSED: c_int = -2;

/// `PeerText` of `cpp_peer.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeerText {
    context: *mut c_void,
    append: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
}

impl PeerText {
    pub(crate) fn put(&self, text: &str) {
        if let Some(append) = self.append {
            // SAFETY: `cpp_peer.h` makes the caller pass a callback that fits its context; it copies the text.
            unsafe { append(self.context, text.as_ptr().cast(), text.len()) };
        }
    }

    pub(crate) fn refuse(&self, why: impl Display) -> c_int {
        self.put(&why.to_string());
        REFUSED
    }
}
