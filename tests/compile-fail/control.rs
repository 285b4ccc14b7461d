//! What the other programs misuse, used well.

use std::thread;

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use arrow_device_abi::{
    Device, EventWaiter, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema, Readiness, StreamReader,
    SyncEvent,
};

struct Waiter;

// SAFETY: never says that it has waited.
unsafe impl EventWaiter for Waiter {
    type Error = ();

    fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, ()> {
        Err(())
    }
}

fn send<T: Send>() {}
fn sync<T: Sync>() {}

fn main() {
    send::<StreamReader<ArrowArrayStream>>();
    send::<StreamReader<ArrowDeviceArrayStream>>();
    send::<OwnedArray>();
    sync::<OwnedArray>();

    let mut schema = ArrowSchema::released();
    // SAFETY: valid, and released.
    if let Ok(schema) = unsafe { OwnedSchema::take(&raw mut schema) } {
        let view = schema.view().unwrap();
        let metadata = view.metadata().unwrap();
        let _ = (view.format(), metadata.get(b"key"), schema.as_raw().flags);
        thread::scope(|scope| {
            scope.spawn(|| drop(schema.view()));
        });
        drop(schema);
    }

    let mut array = ArrowArray::released();
    // SAFETY: valid, and released.
    if let Ok(mut array) = unsafe { OwnedArray::take(&raw mut array) } {
        let length = array.view().unwrap().length();
        let child = array.take_child(0);
        let _ = (length, child, array.as_mut_ptr());
        // SAFETY: valid for writes.
        unsafe { array.export_to(&raw mut *Box::new(ArrowArray::released())) };
    }

    // SAFETY: released.
    if let Ok(array) = unsafe { OwnedDeviceArray::from_raw(ArrowDeviceArray::released()) } {
        let _ = array.sync_event();
        let ready = array.synchronize(&NoWait).unwrap();
        let _ = ready.view().unwrap().buffers();
        let _ = ready.into_device_array().unwrap().into_raw();
    }
}
