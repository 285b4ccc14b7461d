//! C33, S7: the calls of a stream are made one at a time, so two threads must not hold it.

use std::thread;

use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArrayStream};
use arrow_device_abi::{OwnedArrayStream, OwnedDeviceArrayStream, StreamReader};

fn sync<T: Sync>() {}

fn shared(stream: OwnedArrayStream) {
    thread::scope(|scope| {
        scope.spawn(|| stream.is_released()); //~ E0277
    });
}

fn main() {
    sync::<OwnedArrayStream>(); //~ E0277
    sync::<OwnedDeviceArrayStream>(); //~ E0277
    sync::<StreamReader<ArrowArrayStream>>(); //~ E0277
    sync::<StreamReader<ArrowDeviceArrayStream>>(); //~ E0277
}
