//! The C Device Data Interface.

use core::ffi::c_void;
use core::fmt;
use core::ptr;

use super::ArrowArray;

/// A kind of device, `int32_t` in C
/// ([values](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#device-types)).
///
/// C may send any value, so this is not an `enum`: a value without a name passes through unharmed and prints as its
/// number. The named values equal DLPack's `DLDeviceType`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrowDeviceType(pub i32);

/// One table for the device types: both spellings, the names and the proof in `layout.rs` come from it.
macro_rules! for_each_device_type {
    ($callback:ident) => {
        $callback! {
            /// Host memory.
            "ARROW_DEVICE_CPU" ARROW_DEVICE_CPU CPU = 1;
            /// Memory of a CUDA device.
            "ARROW_DEVICE_CUDA" ARROW_DEVICE_CUDA CUDA = 2;
            /// Pinned host memory of CUDA.
            "ARROW_DEVICE_CUDA_HOST" ARROW_DEVICE_CUDA_HOST CUDA_HOST = 3;
            /// An OpenCL device.
            "ARROW_DEVICE_OPENCL" ARROW_DEVICE_OPENCL OPENCL = 4;
            /// Vulkan buffers.
            "ARROW_DEVICE_VULKAN" ARROW_DEVICE_VULKAN VULKAN = 7;
            /// Metal buffers.
            "ARROW_DEVICE_METAL" ARROW_DEVICE_METAL METAL = 8;
            /// Buffers of a Verilog simulator.
            "ARROW_DEVICE_VPI" ARROW_DEVICE_VPI VPI = 9;
            /// Memory of a ROCm device.
            "ARROW_DEVICE_ROCM" ARROW_DEVICE_ROCM ROCM = 10;
            /// Pinned host memory of ROCm.
            "ARROW_DEVICE_ROCM_HOST" ARROW_DEVICE_ROCM_HOST ROCM_HOST = 11;
            /// For extension: whatever producer and consumer have agreed on.
            "ARROW_DEVICE_EXT_DEV" ARROW_DEVICE_EXT_DEV EXT_DEV = 12;
            /// Managed (unified) memory of CUDA.
            "ARROW_DEVICE_CUDA_MANAGED" ARROW_DEVICE_CUDA_MANAGED CUDA_MANAGED = 13;
            /// Unified shared memory of oneAPI.
            "ARROW_DEVICE_ONEAPI" ARROW_DEVICE_ONEAPI ONEAPI = 14;
            /// WebGPU buffers.
            "ARROW_DEVICE_WEBGPU" ARROW_DEVICE_WEBGPU WEBGPU = 15;
            /// Qualcomm Hexagon.
            "ARROW_DEVICE_HEXAGON" ARROW_DEVICE_HEXAGON HEXAGON = 16;
        }
    };
}
pub(super) use for_each_device_type;

macro_rules! define_device_types {
    ($($(#[$doc:meta])* $lit:literal $c_name:ident $name:ident = $value:literal;)+) => {
        impl ArrowDeviceType {
            $(
                $(#[$doc])*
                #[doc(alias = $lit)]
                pub const $name: Self = Self($value);
            )+

            /// Every type that has a name, by value.
            pub const NAMED: &[Self] = &[$(Self::$name),+];

            /// The name without `ARROW_DEVICE_`, or `None` for a value that Arrow does not define.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
        $(
            $(#[$doc])*
            pub const $c_name: ArrowDeviceType = ArrowDeviceType::$name;
        )+
    };
}
for_each_device_type!(define_device_types);

impl ArrowDeviceType {
    /// Whether the host can read memory of this type through its pointers: `CPU`, `CUDA_HOST`, `CUDA_MANAGED`,
    /// `ROCM_HOST`.
    ///
    /// It says nothing of *when*: work that writes the memory may still be under way, and a sync event has to be
    /// waited for all the same.
    #[must_use]
    pub const fn is_host_readable(self) -> bool {
        matches!(self, Self::CPU | Self::CUDA_HOST | Self::CUDA_MANAGED | Self::ROCM_HOST)
    }
}

impl fmt::Display for ArrowDeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

impl fmt::Debug for ArrowDeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrowDeviceType({self})")
    }
}

/// An array whose buffers are on a device
/// ([structure](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#the-arrowdevicearray-structure)).
///
/// Only what the buffers of [`array`](Self::array) point to is on the device. There is one release, the array's: it
/// frees the event too. Owns nothing by itself: [`OwnedDeviceArray`](crate::OwnedDeviceArray) does.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArray {
    /// The array. Its release callback gets a pointer to this field.
    pub array: ArrowArray,
    /// Which device of the type; −1 where the type has no ids.
    pub device_id: i64,
    /// Type of the device that the buffers are on.
    pub device_type: ArrowDeviceType,
    /// Null: the data is there. Else a pointer *to* an event of the device type's kind, which must be waited for
    /// before the buffers are touched: [`SyncEvent`](crate::SyncEvent).
    pub sync_event: *mut c_void,
    /// The producer writes zeros; a consumer must not look (some producers leave garbage).
    pub reserved: [i64; 3],
}

impl ArrowDeviceArray {
    /// A struct that holds nothing: every field zero, so already released.
    #[must_use]
    pub const fn released() -> Self {
        Self {
            array: ArrowArray::released(),
            device_id: 0,
            device_type: ArrowDeviceType(0),
            sync_event: ptr::null_mut(),
            reserved: [0; 3],
        }
    }

    /// Whether `array.release` is null: nothing else in the struct may be read then.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.array.is_released()
    }
}
