//! Ends with arrays alive whose events and memory are CUDA's. Exit status 77 where there is no driver for tests.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use arrow_device_abi::cuda::CudaExport;
use arrow_device_abi::{ArrayNode, OwnedDeviceArray};
use arrow_device_abi_cuda_tests::{Driver, bytes};
use cudarc::driver::{CudaContext, CudaStream};

static STATIC: Mutex<Option<OwnedDeviceArray>> = Mutex::new(None);

thread_local! {
    static LOCAL: RefCell<Option<OwnedDeviceArray>> = const { RefCell::new(None) };
}

fn export(stream: &Arc<CudaStream>) -> OwnedDeviceArray {
    let memory = bytes(stream, 1, 16);
    let mut export = CudaExport::new(stream);
    let buffers = [std::ptr::null(), export.buffer(&memory).expect("a buffer")];
    let node = ArrayNode { length: 16, buffers: &buffers, ..Default::default() };
    // SAFETY: an array of bytes without nulls has these two buffers; the memory is 16 bytes long, and kept.
    unsafe { export.export(&node, memory) }.expect("an array")
}

/// Drops what is in the static when C's exit handlers run: after `main`, and possibly after the driver's own.
extern "C" fn at_exit() {
    if let Ok(mut array) = STATIC.lock() {
        array.take();
    }
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

fn main() {
    let Some(driver) = Driver::load() else { std::process::exit(77) };
    // Its account of what is alive would be right to complain.
    std::mem::forget(driver);
    // SAFETY: a function that does not unwind.
    assert_eq!(unsafe { atexit(at_exit) }, 0);
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    *STATIC.lock().expect("nobody panicked") = Some(export(&stream));
    LOCAL.set(Some(export(&stream)));
    let other = export(&stream);
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        LOCAL.set(Some(other));
        ready.send(()).expect("the main thread");
        loop {
            std::thread::park();
        }
    });
    wait.recv().expect("the thread");
    println!("3 arrays alive");
}
