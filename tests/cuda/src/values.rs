use std::ffi::c_void;
use std::sync::Arc;

use arrow_device_abi::ReadyDeviceArray;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, sys};

/// Device memory of `stream` that holds `value` throughout, written and synchronised.
pub fn bytes(stream: &Arc<CudaStream>, value: u8, len: usize) -> CudaSlice<u8> {
    // Alive until the copy is done: a test may have the driver read it late.
    let host = vec![value; len];
    let memory = stream.clone_htod(&host).expect("memory");
    stream.synchronize().expect("the copy");
    memory
}

/// The device pointer of memory, without waiting for anything.
pub fn pointer(memory: &CudaSlice<u8>) -> u64 {
    memory.device_ptr(memory.stream()).0
}

/// What a consumer's stream reads of buffer 1 of an array of bytes, once it comes to it.
pub fn read(stream: &CudaStream, array: &ReadyDeviceArray) -> Vec<u8> {
    let view = array.view().expect("an array");
    // SAFETY: the buffer is memory of the device, as long as the array.
    unsafe { copy_out(stream, view.buffers()[1], view.length()) }
}

/// What a stream reads of memory, once it comes to it.
///
/// # Safety
///
/// - The memory is one that the driver copies from, and that long.
pub unsafe fn copy_out(stream: &CudaStream, from: *const c_void, bytes: usize) -> Vec<u8> {
    let mut out = vec![0_u8; bytes];
    stream.context().bind_to_thread().expect("the context");
    // SAFETY: as the caller promises; `out` lives until the stream is synchronised.
    unsafe {
        sys::cuMemcpyDtoHAsync_v2(out.as_mut_ptr().cast(), from.addr() as u64, bytes, stream.cu_stream())
    }
    .result()
    .expect("the copy");
    stream.synchronize().expect("the stream");
    out
}

/// The context that is current on this thread.
pub fn current_context() -> *mut c_void {
    let mut context = std::ptr::null_mut();
    // SAFETY: writes one handle.
    unsafe { sys::cuCtxGetCurrent(&raw mut context) }.result().expect("the current context");
    context.cast()
}

/// Runs something on a thread of its own.
pub fn on_a_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(run).join().expect("the thread"))
}

/// Runs something on a thread that has no current context, and checks that it has none afterwards.
pub fn in_no_context<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    on_a_thread(|| {
        assert!(current_context().is_null(), "a fresh thread has no context");
        let result = run();
        assert!(current_context().is_null(), "a context was left current on the thread");
        result
    })
}
