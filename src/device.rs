//! What an array is on, and what it waits for.

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use crate::owned::{OwnedArray, OwnedDeviceArray};
use crate::raw::{ArrowDeviceArray, ArrowDeviceType};

/// A device: its type, and which one of that type.
///
/// Compares both numbers as they are; some producers give the CPU the id −1, as the specification says (D4), others
/// 0, so ask [`is_cpu`](Self::is_cpu) of the CPU (C18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Device {
    /// Type of the device.
    pub device_type: ArrowDeviceType,
    /// Number of the device among those of its type, −1 where the type has no numbers.
    pub device_id: i64,
}

impl Device {
    /// The CPU as a producer writes it: id −1.
    pub const CPU: Self = Self::new(ArrowDeviceType::CPU, -1);

    /// A device of any type and id; neither is checked.
    #[must_use]
    pub const fn new(device_type: ArrowDeviceType, device_id: i64) -> Self {
        Self { device_type, device_id }
    }

    /// Whether this is the CPU, whatever the id.
    #[must_use]
    pub const fn is_cpu(self) -> bool {
        self.device_type.0 == ArrowDeviceType::CPU.0
    }

    /// Whether the host can read the device's memory: [`ArrowDeviceType::is_host_readable`], with its warning.
    #[must_use]
    pub const fn is_host_readable(self) -> bool {
        self.device_type.is_host_readable()
    }
}

/// DLPack's devices have the same types by number, and other ids: `int32_t`, and 0 for the CPU, which is −1 here (D4).
///
/// A type that only one side has a name for keeps its number.
impl Device {
    /// The device of a `DLDevice`. The CPU's 0 becomes −1; every other id is kept.
    #[must_use]
    pub const fn from_dlpack(device_type: i32, device_id: i32) -> Self {
        let device = Self::new(ArrowDeviceType(device_type), device_id as i64);
        if device.is_cpu() && device_id == 0 { Self::CPU } else { device }
    }

    /// Type and id of the `DLDevice`. The CPU's −1 becomes 0; every other id is kept.
    ///
    /// # Errors
    ///
    /// [`NotInDlpack`] if the id does not fit an `int32_t` or is negative, for which DLPack has no meaning.
    pub fn to_dlpack(self) -> Result<(i32, i32), NotInDlpack> {
        let id = if self == Self::CPU { 0 } else { self.device_id };
        match i32::try_from(id) {
            Ok(id @ 0..) => Ok((self.device_type.0, id)),
            _ => Err(NotInDlpack { device: self }),
        }
    }
}

/// DLPack cannot say which device this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotInDlpack {
    /// The device.
    pub device: Device,
}

impl fmt::Display for NotInDlpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Device { device_type, device_id } = self.device;
        write!(f, "DLPack has no device id {device_id}, of device type {device_type}")
    }
}

impl core::error::Error for NotInDlpack {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cpu() || self.device_id < 0 {
            self.device_type.fmt(f)
        } else {
            write!(f, "{}:{}", self.device_type, self.device_id)
        }
    }
}

/// A non-null pointer to an event, valid for `'a`: as long as the array that it came from.
pub struct EventPtr<'a, T>(NonNull<T>, PhantomData<&'a ()>);

impl<'a, T> EventPtr<'a, T> {
    const fn new(ptr: NonNull<c_void>) -> Self {
        Self(ptr.cast(), PhantomData)
    }

    /// The pointer as it stands in `sync_event`: what it points to is the producer's (D11) and may be read, not
    /// freed, destroyed or kept.
    #[must_use]
    pub const fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Clone for EventPtr<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for EventPtr<'_, T> {}

impl<T> fmt::Debug for EventPtr<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a device array waits for: the specification's
/// [event table](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#synchronization-event-types) as a
/// type.
///
/// Mind the level of indirection: for CUDA, OpenCL, Vulkan and HIP it is a pointer *to* the handle, so the handle is
/// read through it (cuDF once passed the handle itself, C1). For Metal and SYCL it points to the object.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum SyncEvent<'a> {
    /// Of `CUDA`, `CUDA_HOST` and `CUDA_MANAGED`: points to a `cudaEvent_t`, which is the driver's `CUevent`.
    Cuda(EventPtr<'a, *mut c_void>),
    /// Of `OPENCL`: points to a `cl_event`.
    OpenCl(EventPtr<'a, *mut c_void>),
    /// Of `VULKAN`: points to a `VkEvent`, which is 64 bits wide on every platform.
    Vulkan(EventPtr<'a, u64>),
    /// Of `METAL`: the `MTLEvent` object itself.
    Metal(EventPtr<'a, c_void>),
    /// Of `ROCM` and `ROCM_HOST`: points to a `hipEvent_t`.
    Hip(EventPtr<'a, *mut c_void>),
    /// Of `ONEAPI`: a `sycl::event` object.
    Sycl(EventPtr<'a, c_void>),
    /// Of `EXT_DEV`: what its producer documents.
    Extension(EventPtr<'a, c_void>),
    /// Of a device type that Arrow does not define: only somebody who knows the type can know the event.
    Unknown(EventPtr<'a, c_void>),
}

impl SyncEvent<'_> {
    /// Reads a `sync_event` field by its array's device type. Nothing is dereferenced.
    ///
    /// `None` is a null pointer: the data is there (D8).
    ///
    /// # Errors
    ///
    /// [`UnexpectedEvent`] if the pointer is not null though arrays of this type have no events (D9).
    ///
    /// # Safety
    ///
    /// - `sync_event` is null or obeys the event table for `device_type` (D5): waiters dereference it.
    /// - It stays valid for the lifetime that the caller picks, which ends with the array's release at the latest.
    pub unsafe fn from_raw(
        device_type: ArrowDeviceType,
        sync_event: *mut c_void,
    ) -> Result<Option<Self>, UnexpectedEvent> {
        let Some(event) = NonNull::new(sync_event) else {
            return Ok(None);
        };
        Ok(Some(match device_type {
            ArrowDeviceType::CUDA | ArrowDeviceType::CUDA_HOST | ArrowDeviceType::CUDA_MANAGED => {
                Self::Cuda(EventPtr::new(event))
            }
            ArrowDeviceType::OPENCL => Self::OpenCl(EventPtr::new(event)),
            ArrowDeviceType::VULKAN => Self::Vulkan(EventPtr::new(event)),
            ArrowDeviceType::METAL => Self::Metal(EventPtr::new(event)),
            ArrowDeviceType::ROCM | ArrowDeviceType::ROCM_HOST => Self::Hip(EventPtr::new(event)),
            ArrowDeviceType::ONEAPI => Self::Sycl(EventPtr::new(event)),
            ArrowDeviceType::EXT_DEV => Self::Extension(EventPtr::new(event)),
            ArrowDeviceType::CPU
            | ArrowDeviceType::VPI
            | ArrowDeviceType::WEBGPU
            | ArrowDeviceType::HEXAGON => {
                return Err(UnexpectedEvent { device_type });
            }
            _ => Self::Unknown(EventPtr::new(event)),
        }))
    }
}

/// An array carries a sync event though its device type has none (D9). What it points to was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnexpectedEvent {
    /// The array's device type.
    pub device_type: ArrowDeviceType,
}

impl fmt::Display for UnexpectedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the array has a sync event, but no kind of event is defined for device type {}",
            self.device_type
        )
    }
}

impl core::error::Error for UnexpectedEvent {}

impl OwnedArray {
    /// The array as a device array without an event.
    ///
    /// # Safety
    ///
    /// - Its buffers are on `device`.
    /// - Whoever gets the result has to wait for nothing, or has waited.
    pub(crate) unsafe fn on_device(self, device: Device) -> OwnedDeviceArray {
        let raw = ArrowDeviceArray {
            array: self.into_raw(),
            device_id: device.device_id,
            device_type: device.device_type,
            sync_event: ptr::null_mut(),
            reserved: [0; 3],
        };
        // SAFETY: the array was owned by `self`, which is gone, and is on `device` as the caller promises.
        unsafe { OwnedDeviceArray::adopt(raw) }
    }
}

/// A host array as a device array on the CPU, with nothing to wait for.
impl From<OwnedArray> for OwnedDeviceArray {
    fn from(array: OwnedArray) -> Self {
        // SAFETY: the buffers of an array of the C Data Interface are in host memory, and it has no way to say that
        // they are not there yet.
        unsafe { array.on_device(Device::CPU) }
    }
}

impl OwnedDeviceArray {
    /// The device that the buffers are on.
    #[must_use]
    pub fn device(&self) -> Device {
        let raw = self.as_raw();
        Device::new(raw.device_type, raw.device_id)
    }

    /// What has to be waited for before the buffers are touched (D5); `None` if nothing.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEvent`] if the device type has no events but the array has one.
    pub fn sync_event(&self) -> Result<Option<SyncEvent<'_>>, UnexpectedEvent> {
        let raw = self.as_raw();
        if raw.is_released() {
            return Ok(None);
        }
        // SAFETY: a live struct obeys the specification, as `take` was promised, so the event is of the device
        // type's kind; it lives until the release, which needs `self` unborrowed.
        unsafe { SyncEvent::from_raw(raw.device_type, raw.sync_event) }
    }
}
