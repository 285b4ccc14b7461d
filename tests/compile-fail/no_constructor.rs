//! An owner cannot be put together from its parts.

use arrow_device_abi::raw::ArrowArray;
use arrow_device_abi::{Owned, OwnedArray};

fn made(array: ArrowArray) -> OwnedArray {
    Owned(array) //~ E0423
}

fn main() {}
