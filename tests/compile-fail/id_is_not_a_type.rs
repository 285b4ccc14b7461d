//! Device id and device type are both small integers in C, and were mixed up before.

use arrow_device_abi::Device;
use arrow_device_abi::raw::{ARROW_DEVICE_CPU, ArrowDeviceArray};

fn compared(array: &ArrowDeviceArray) -> bool {
    array.device_id == ARROW_DEVICE_CPU //~ E0308
}

fn assigned(array: &mut ArrowDeviceArray) {
    array.device_type = array.device_id; //~ E0308
}

fn made() -> Device {
    Device::new(0, ARROW_DEVICE_CPU) //~ E0308
}

fn main() {}
