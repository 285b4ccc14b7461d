//! What an owner believes of a struct, somebody has promised.

use std::ffi::{c_char, c_void};

use arrow_device_abi::raw::{ArrowArray, ArrowDeviceType, ArrowSchema};
use arrow_device_abi::{
    ArrayView, CopyOptions, HostMemory, Limits, Metadata, OwnedArray, OwnedArrayStream, OwnedDeviceArray,
    OwnedDeviceArrayStream, OwnedSchema, ReadyDeviceArray, SchemaView, StreamFailure, SyncEvent,
};

fn take(array: *mut ArrowArray) {
    let _ = OwnedArray::take(array); //~ E0133
}

fn from_raw(array: ArrowArray) {
    let _ = OwnedArray::from_raw(array); //~ E0133
}

fn export_to(array: OwnedArray, out: *mut ArrowArray) {
    array.export_to(out); //~ E0133
}

fn assume_ready(array: OwnedDeviceArray) {
    let _ = array.assume_ready(); //~ E0133
}

fn view(array: &ArrowArray, schema: &ArrowSchema) {
    let _ = ArrayView::from_raw(array); //~ E0133
    let _ = SchemaView::from_raw(schema); //~ E0133
}

fn buffer(view: ArrayView<'_>) {
    let _ = view.buffer_as::<u8>(0, 1); //~ E0133
}

fn metadata(metadata: *const c_char) {
    let _ = Metadata::from_ptr(metadata); //~ E0133
}

fn event(event: *mut c_void) {
    let _ = SyncEvent::from_raw(ArrowDeviceType::CUDA, event); //~ E0133
}

fn streams(schemas: [OwnedSchema; 2], array: Result<OwnedArray, StreamFailure>) {
    let [first, second] = schemas;
    let _ = OwnedArrayStream::from_iter(first, [array]); //~ E0133
    let none: [Result<OwnedDeviceArray, StreamFailure>; 0] = [];
    let _ = OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, second, none); //~ E0133
}

fn by_a_schema(array: OwnedArray, ready: ReadyDeviceArray, schema: SchemaView<'_>) {
    let _ = array.validate_contents(schema, &Limits::DEFAULT); //~ E0133
    let _ = ready.validate_contents(schema, &Limits::DEFAULT); //~ E0133
    let _ = ready.buffer_sizes(schema, &HostMemory, &Limits::DEFAULT); //~ E0133
    let _ = ready.to_host(schema, &HostMemory, CopyOptions::new()); //~ E0133
}

fn main() {}
