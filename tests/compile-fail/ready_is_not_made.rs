//! D5: only a wait, or a promise, makes an array ready.

use arrow_device_abi::{OwnedDeviceArray, Readiness, ReadyDeviceArray};

fn made(array: OwnedDeviceArray) -> ReadyDeviceArray {
    ReadyDeviceArray { array, readiness: Readiness::Complete } //~ E0451
}

fn main() {}
