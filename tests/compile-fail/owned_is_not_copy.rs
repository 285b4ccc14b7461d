//! C3: whoever gave an owner away has none any more.

use arrow_device_abi::raw::ArrowArray;
use arrow_device_abi::{NoWait, OwnedArray, OwnedDeviceArray};

fn twice(array: OwnedArray) -> (ArrowArray, ArrowArray) {
    (array.into_raw(), array.into_raw()) //~ E0382
}

unsafe fn exported(array: OwnedArray, out: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    unsafe { array.export_to(out) };
    drop(array); //~ E0382
}

fn synchronized(array: OwnedDeviceArray) -> OwnedDeviceArray {
    let _ = array.synchronize(&NoWait);
    array //~ E0382
}

fn main() {}
