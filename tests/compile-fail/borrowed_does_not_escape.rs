//! What was borrowed from a struct does not leave the function that the struct ends in.

use arrow_device_abi::{ArrayView, EventPtr, Metadata, OwnedArray, OwnedDeviceArray, OwnedSchema, SyncEvent};

fn schema(schema: OwnedSchema) -> Metadata<'static> {
    schema.view().unwrap().metadata().unwrap() //~ E0515
}

fn array(array: OwnedArray) -> ArrayView<'static> {
    array.view().unwrap() //~ E0515
}

fn event(array: OwnedDeviceArray) -> SyncEvent<'static> {
    array.sync_event().unwrap().unwrap() //~ E0515
}

fn pointer(array: OwnedDeviceArray) -> EventPtr<'static, *mut std::ffi::c_void> {
    match array.sync_event() {
        Ok(Some(SyncEvent::Cuda(event))) => event, //~ E0515
        _ => panic!(),
    }
}

fn main() {}
