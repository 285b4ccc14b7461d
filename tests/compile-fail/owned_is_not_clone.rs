//! C3: a clone would release a second time.

use arrow_device_abi::{
    OwnedArray, OwnedArrayStream, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema, ReadyDeviceArray,
};

fn clone(
    schema: OwnedSchema,
    array: OwnedArray,
    stream: OwnedArrayStream,
    device_array: OwnedDeviceArray,
    device_stream: OwnedDeviceArrayStream,
    ready: ReadyDeviceArray,
) {
    let _ = schema.clone(); //~ E0599
    let _ = array.clone(); //~ E0599
    let _ = stream.clone(); //~ E0599
    let _ = device_array.clone(); //~ E0599
    let _ = device_stream.clone(); //~ E0599
    let _ = ready.clone(); //~ E0599
}

fn main() {}
