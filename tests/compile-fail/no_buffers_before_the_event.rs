//! D5: what is on the device is shown by an array that was waited for, and by no other.

use arrow_device_abi::raw::ArrowDeviceArrayStream;
use arrow_device_abi::{OwnedDeviceArray, StreamReader};

fn buffers(array: &mut OwnedDeviceArray) {
    let _ = array.view(); //~ E0599
    let _ = array.buffers(); //~ E0599
    let _ = array.take_child(0); //~ E0599
    let _ = array.array(); //~ E0599
    let _ = array.into_array(); //~ E0599
}

fn received(reader: &mut StreamReader<ArrowDeviceArrayStream>) {
    let _ = reader.next_array().unwrap().unwrap().view(); //~ E0599
}

fn main() {}
