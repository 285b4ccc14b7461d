//! The fields that carry a promise are private.

use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArray};
use arrow_device_abi::{OwnedArray, OwnedArrayStream, OwnedDeviceArray, ReadyDeviceArray, StreamReader};

fn fields(mut array: OwnedArray, ready: ReadyDeviceArray, reader: StreamReader<ArrowArrayStream>) {
    let _: &mut ArrowArray = &mut array.0; //~ E0616
    let _: OwnedDeviceArray = ready.array; //~ E0616
    let _: OwnedArrayStream = reader.stream; //~ E0616
}

fn dereferenced(array: &mut OwnedDeviceArray) -> &mut ArrowDeviceArray {
    array //~ E0308
}

fn main() {}
