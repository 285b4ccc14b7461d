//! C33: a bag of pointers says nothing of threads; its owner does.

use arrow_device_abi::raw::*;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

fn main() {
    send::<ArrowSchema>(); //~ E0277
    sync::<ArrowSchema>(); //~ E0277
    send::<ArrowArray>(); //~ E0277
    sync::<ArrowArray>(); //~ E0277
    send::<ArrowArrayStream>(); //~ E0277
    sync::<ArrowArrayStream>(); //~ E0277
    send::<ArrowDeviceArray>(); //~ E0277
    sync::<ArrowDeviceArray>(); //~ E0277
    send::<ArrowDeviceArrayStream>(); //~ E0277
    sync::<ArrowDeviceArrayStream>(); //~ E0277
    send::<ArrowAsyncTask>(); //~ E0277
    sync::<ArrowAsyncTask>(); //~ E0277
    send::<ArrowAsyncProducer>(); //~ E0277
    sync::<ArrowAsyncProducer>(); //~ E0277
    send::<ArrowAsyncDeviceStreamHandler>(); //~ E0277
    sync::<ArrowAsyncDeviceStreamHandler>(); //~ E0277
}
