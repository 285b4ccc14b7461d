//! A block of device memory of our own.

use alloc::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdeviceptr;

use super::context::Current;
use super::driver::{CudaError, call};
use crate::copy::ALIGNMENT;

/// Device memory, freed when dropped: in the order of its stream where the device can, else once the device is done with
/// it.
///
/// Not a slice of cudarc's: that loses its memory if one of the two events that it makes beside it cannot be made.
pub(super) struct Block {
    address: CUdeviceptr,
    stream: Arc<CudaStream>,
    in_order: bool,
}

/// The handle that names another stream on each thread, so that there is no order in it for memory that crosses threads.
const PER_THREAD: usize = 2;

impl Block {
    /// Memory that is zero for whatever is queued on `stream` from now on, whose context is current.
    pub(super) fn zeroed(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, CudaError> {
        let bytes = bytes.max(ALIGNMENT);
        let mut address: CUdeviceptr = 0;
        let in_order = stream.context().has_async_alloc() && stream.cu_stream().addr() != PER_THREAD;
        if in_order {
            // SAFETY: writes one address; the stream is of the context that is current.
            unsafe { call!(cuMemAllocAsync(&raw mut address, bytes, stream.cu_stream())) }?;
        } else {
            // SAFETY: writes one address.
            unsafe { call!(cuMemAlloc_v2(&raw mut address, bytes)) }?;
        }
        let block = Self { address, stream: Arc::clone(stream), in_order };
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
        let _current = Current::enter(self.stream.context().cu_ctx());
        // There is nobody to tell of a refusal.
        if self.in_order {
            // SAFETY: allocated by `zeroed` like this, and freed only here; what was queued on the stream is done before.
            unsafe { call!(cuMemFreeAsync(self.address, self.stream.cu_stream())) }.ok();
        } else {
            // SAFETY: allocated by `zeroed` like this, and freed only here; the driver waits for what still uses it.
            unsafe { call!(cuMemFree_v2(self.address)) }.ok();
        }
    }
}
