//! What was borrowed from a struct ends before the struct does: B3.

use arrow_device_abi::{
    ArrayView, Metadata, OwnedArray, OwnedDeviceArray, OwnedSchema, ReadyDeviceArray, SchemaView, SyncEvent,
};

fn schema_view(schema: OwnedSchema) {
    let view: SchemaView<'_> = schema.view().unwrap();
    drop(schema); //~ E0505
    let _ = view.format();
}

fn format(schema: OwnedSchema) -> usize {
    let format: &str = schema.view().unwrap().format().unwrap();
    drop(schema); //~ E0505
    format.len()
}

fn child(schema: OwnedSchema) {
    let child = schema.view().unwrap().child(0).unwrap();
    drop(schema); //~ E0505
    let _ = child.format();
}

fn metadata(schema: OwnedSchema) {
    let metadata: Metadata<'_> = schema.view().unwrap().metadata().unwrap();
    drop(schema); //~ E0505
    let _ = metadata.len();
}

fn metadata_value(schema: OwnedSchema) -> usize {
    let value: &[u8] = schema.view().unwrap().metadata().unwrap().get(b"key").unwrap();
    drop(schema); //~ E0505
    value.len()
}

fn array_view(array: OwnedArray) {
    let view: ArrayView<'_> = array.view().unwrap();
    let _ = array.into_raw(); //~ E0505
    let _ = view.length();
}

fn buffers(array: OwnedArray) -> usize {
    let buffers = array.view().unwrap().buffers();
    drop(array); //~ E0505
    buffers.len()
}

fn values(array: OwnedArray) -> i32 {
    // SAFETY: as it may be; it is the lifetime that is of interest.
    let values: &[i32] = unsafe { array.view().unwrap().buffer_as(1, 1) }.unwrap();
    drop(array); //~ E0505
    values[0]
}

fn event(array: OwnedDeviceArray) {
    let event: SyncEvent<'_> = array.sync_event().unwrap().unwrap();
    drop(array); //~ E0505
    let _ = format!("{event:?}");
}

fn ready_view(ready: ReadyDeviceArray) {
    let view = ready.view().unwrap();
    let _ = ready.into_device_array(); //~ E0505
    let _ = view.length();
}

fn main() {}
