//! What a consumer sees on a machine without a CUDA driver. Exit status 77 on one that has it.

use std::ptr;

use arrow_device_abi::OwnedDeviceArray;
use arrow_device_abi::cuda::HostWait;
use arrow_device_abi::raw::{ArrowArray, ArrowDeviceArray, ArrowDeviceType};

unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the caller's struct.
    unsafe { (*array).release = None };
}

fn main() {
    // SAFETY: opens the library, if it is there.
    if unsafe { cudarc::driver::sys::is_culib_present() } {
        std::process::exit(77);
    }
    let mut handle: *mut u8 = ptr::without_provenance_mut(0xDEAD_BEE8);
    for (what, device_type, sync_event) in [
        ("no event", ArrowDeviceType::CUDA, ptr::null_mut()),
        ("on the CPU", ArrowDeviceType::CPU, ptr::null_mut()),
        ("an event", ArrowDeviceType::CUDA, (&raw mut handle).cast()),
    ] {
        let array = ArrowArray { release: Some(release), ..ArrowArray::released() };
        let raw = ArrowDeviceArray { array, device_id: 0, device_type, sync_event, reserved: [0; 3] };
        // SAFETY: live, and nobody else's; the event lives as long as this program, and is never read as one.
        let array = unsafe { OwnedDeviceArray::from_raw(raw) }.expect("a live array");
        match array.synchronize(&HostWait::new()) {
            Ok(_) => println!("{what}: ready"),
            Err(error) => match error.kind {
                arrow_device_abi::SyncErrorKind::Wait(error) => println!("{what}: {error}"),
                other => println!("{what}: {other}"),
            },
        }
    }
}
