//! A block of device memory of our own.

use alloc::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdeviceptr;

use super::context::Current;
use super::driver::{CudaError, call};

/// Device memory, freed when dropped: in the order of its stream where the device can, else once the device is done with
/// it.
///
/// Not a slice of cudarc's: that loses its memory if one of the two events that it makes beside it cannot be made.
pub(super) struct Block {
    address: CUdeviceptr,
    stream: Arc<CudaStream>,
}

impl Block {
    /// Memory that is zero for whatever is queued on `stream` from now on, whose context is current.
    pub(super) fn zeroed(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, CudaError> {
        // Buffers of no bytes have an address too, so there is never nothing.
        let bytes = bytes.max(64);
        let mut address: CUdeviceptr = 0;
        if stream.context().has_async_alloc() {
            // SAFETY: writes one address; the stream is of the context that is current.
            unsafe { call!(cuMemAllocAsync(&raw mut address, bytes, stream.cu_stream())) }?;
        } else {
            // SAFETY: writes one address.
            unsafe { call!(cuMemAlloc_v2(&raw mut address, bytes)) }?;
        }
        let block = Self { address, stream: Arc::clone(stream) };
        // SAFETY: the block's own memory, which is there for this stream, and all of it.
        unsafe { call!(cuMemsetD8Async(address, 0, bytes, stream.cu_stream())) }?;
        Ok(block)
    }

    pub(super) const fn address(&self) -> CUdeviceptr {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let context = self.stream.context();
        let _current = Current::enter(context.cu_ctx());
        // There is nobody to tell of a refusal.
        if context.has_async_alloc() {
            // SAFETY: allocated by `zeroed` like this, and freed only here; what was queued on the stream is done before.
            unsafe { call!(cuMemFreeAsync(self.address, self.stream.cu_stream())) }.ok();
        } else {
            // SAFETY: allocated by `zeroed` like this, and freed only here; the driver waits for what still uses it.
            unsafe { call!(cuMemFree_v2(self.address)) }.ok();
        }
    }
}
