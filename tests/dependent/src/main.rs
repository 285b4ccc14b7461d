//! Takes device arrays from the C code that `build.rs` compiled, and says what came.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use arrow_device_abi::OwnedDeviceArray;
use arrow_device_abi::raw::ArrowDeviceArray;

unsafe extern "C" {
    fn produce_by_folder(out: *mut ArrowDeviceArray, releases: *mut c_int);
    fn size_by_folder() -> usize;
    fn produce_by_text(out: *mut ArrowDeviceArray, releases: *mut c_int);
    fn size_by_text() -> usize;
}

fn take(
    way: &str,
    produce: unsafe extern "C" fn(*mut ArrowDeviceArray, *mut c_int),
    size: unsafe extern "C" fn() -> usize,
) {
    let mut releases = 0;
    let mut out = MaybeUninit::uninit();
    // SAFETY: the struct is C's: this crate compiles only where that is proved. The count outlives the array.
    let array = unsafe {
        produce(out.as_mut_ptr(), &raw mut releases);
        OwnedDeviceArray::take(out.as_mut_ptr())
    }
    .expect("a live array");
    let (device, length) = (array.device(), array.as_raw().array.length);
    drop(array);
    // SAFETY: a function without conditions.
    let size = unsafe { size() };
    println!("{way}: {size} bytes, {length} rows on {device}, released {releases} time");
}

fn main() {
    take("by folder", produce_by_folder, size_by_folder);
    take("by text", produce_by_text, size_by_text);
}
