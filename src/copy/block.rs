//! The memory of a copy.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::ptr::NonNull;

/// What buffers are aligned to, and filled up to: what the columnar format recommends. A block has as many bytes at
/// least, since buffers of no bytes have an address too.
pub(crate) const ALIGNMENT: usize = 64;

/// A block of host memory, zeroed at first.
pub(super) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, and has no shared state.
unsafe impl Send for Block {}

impl Block {
    /// `None` if there is no memory.
    pub(super) fn zeroed(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }

    pub(super) const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this size, zeroed, and borrowed as long as the result.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
