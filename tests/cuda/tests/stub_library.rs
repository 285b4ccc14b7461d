//! A library that has the driver's name, and is none (C8).

use std::ptr;

use arrow_device_abi::cuda::{CudaError, HostWait, RawStream};
use arrow_device_abi::raw::{ArrowArray, ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{EventWaiter, OwnedDeviceArray, SyncErrorKind};
use arrow_device_abi_cuda_tests::load_stub;

unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the caller's struct.
    unsafe { (*array).release = None };
}

/// C8: the first function that it lacks is named, and nothing panics.
#[test]
fn lacks_a_function() {
    if !load_stub() {
        return;
    }
    let mut handle: *mut u8 = ptr::without_provenance_mut(0xDEAD_BEE8);
    let mut array = || {
        let raw = ArrowDeviceArray {
            array: ArrowArray { release: Some(release), ..ArrowArray::released() },
            device_id: 0,
            device_type: ArrowDeviceType::CUDA,
            sync_event: (&raw mut handle).cast(),
            reserved: [0; 3],
        };
        // SAFETY: live, and nobody else's; the event lives as long as this test, and is never read as one.
        unsafe { OwnedDeviceArray::from_raw(raw) }.expect("a live array")
    };
    // SAFETY: a name of a stream.
    let stream = unsafe { RawStream::new(ptr::without_provenance_mut(1)) };
    let waiters: [&dyn EventWaiter<Error = CudaError>; 2] = [&HostWait::new(), &stream];
    for waiter in waiters {
        let error = array().synchronize(waiter).expect_err("no driver");
        assert_eq!(error.kind, SyncErrorKind::Wait(CudaError::MissingFunction("cuInit")));
        assert_eq!(
            error.to_string(),
            "waiting for the array's event failed: the CUDA driver's library lacks cuInit"
        );
    }
    let error = HostWait::new().is_complete(&array());
    assert_eq!(error, Err(SyncErrorKind::Wait(CudaError::MissingFunction("cuInit"))));
}
