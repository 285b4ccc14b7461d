//! More memory than there is, for what must not be read anyway.

use core::ffi::c_void;
use core::ptr;

/// Zeros that take no memory as long as nobody reads them.
pub struct Huge {
    start: *mut c_void,
    bytes: usize,
}

impl Huge {
    pub fn new(bytes: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, wherever the system likes.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
        assert!(start != libc::MAP_FAILED, "no address space for {bytes} bytes");
        Self { start, bytes }
    }

    /// All of it as values that may be zero.
    ///
    /// # Safety
    ///
    /// - Zeros are a valid `T`.
    pub unsafe fn as_slice<T>(&self) -> &[T] {
        // SAFETY: readable, aligned to a page, and all zeros, which are values as the caller promises.
        unsafe { core::slice::from_raw_parts(self.start.cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for Huge {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
