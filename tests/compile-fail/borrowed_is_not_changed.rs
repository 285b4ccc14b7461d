//! A view is of a struct that C cannot change meanwhile, nor a child leave.

use arrow_device_abi::{OwnedArray, OwnedSchema, ReadyDeviceArray};

fn lent(mut array: OwnedArray) {
    let view = array.view().unwrap();
    let _ = array.as_mut_ptr(); //~ E0502
    let _ = view.length();
}

fn child(mut array: OwnedArray) {
    let view = array.view().unwrap();
    let _ = array.take_child(0); //~ E0502
    let _ = view.child(0);
}

fn dictionary(mut schema: OwnedSchema) {
    let view = schema.view().unwrap();
    let _ = schema.take_dictionary(); //~ E0502
    let _ = view.dictionary();
}

fn ready_child(mut ready: ReadyDeviceArray) {
    let view = ready.view().unwrap();
    let _ = ready.take_child(0); //~ E0502
    let _ = view.child(0);
}

fn read(mut schema: OwnedSchema) {
    let raw = schema.as_raw();
    let _ = schema.as_mut_ptr(); //~ E0502
    let _ = raw.flags;
}

fn assigned(array: &mut OwnedArray) {
    array.as_raw().release = None; //~ E0594
}

fn main() {}
