//! C3: the plain structs are moved too, as long as no `unsafe` is written.

use arrow_device_abi::raw::{ArrowArray, ArrowSchema};

fn cloned(array: &ArrowArray) -> ArrowArray {
    array.clone() //~ E0308
}

fn read(schema: &ArrowSchema) -> ArrowSchema {
    *schema //~ E0507
}

fn main() {}
