//! Devices to and from DLPack's numbers.

use arrow_device_abi::Device;
use arrow_device_abi::raw::ArrowDeviceType;

/// D4: the host is −1 here and 0 there, and a 0 that a producer wrote here is the host too (C18).
#[test]
fn the_host_has_another_id_on_each_side() {
    assert_eq!(Device::from_dlpack(1, 0), Device::CPU);
    assert_eq!(Device::CPU.to_dlpack(), Ok((1, 0)));
    assert_eq!(Device::new(ArrowDeviceType::CPU, 0).to_dlpack(), Ok((1, 0)));
}

#[test]
fn other_ids_and_types_are_kept() {
    for device_type in ArrowDeviceType::NAMED {
        let device = Device::new(*device_type, 3);
        assert_eq!(device.to_dlpack(), Ok((device_type.0, 3)));
        assert_eq!(Device::from_dlpack(device_type.0, 3), device);
    }
    // Pinned memory is the host's, but its ids are CUDA's.
    assert_eq!(Device::from_dlpack(3, 0), Device::new(ArrowDeviceType::CUDA_HOST, 0));
}

/// Types that only DLPack or nobody has a name for: MAIA, Trainium, one of the unused numbers.
#[test]
fn types_without_a_name_keep_their_number() {
    for number in [17, 18, 5, 0, -1, i32::MAX] {
        let device = Device::from_dlpack(number, 1);
        assert_eq!(device, Device::new(ArrowDeviceType(number), 1));
        assert_eq!(device.to_dlpack(), Ok((number, 1)));
    }
}

#[test]
fn ids_that_dlpack_cannot_say_are_errors() {
    for (device_type, id) in [
        (ArrowDeviceType::CUDA, i64::from(i32::MAX) + 1),
        (ArrowDeviceType::CUDA, i64::MIN),
        (ArrowDeviceType::CUDA, -1),
        (ArrowDeviceType::CPU, -2),
        (ArrowDeviceType::CPU, 1 << 32),
    ] {
        let error = Device::new(device_type, id).to_dlpack().unwrap_err();
        assert_eq!(error.device, Device::new(device_type, id));
        assert_eq!(error.to_string(), format!("DLPack has no device id {id}, of device type {device_type}"));
    }
    assert_eq!(Device::new(ArrowDeviceType::CUDA, i64::from(i32::MAX)).to_dlpack(), Ok((2, i32::MAX)));
}
