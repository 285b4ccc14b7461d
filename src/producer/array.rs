//! [`ArrayNode`]: arrays.

use core::ffi::c_void;
use core::ptr;

use super::tree::{Export, build, described, tree_struct};
use super::{ExportError, ExportErrorKind};
use crate::device::{Device, SyncEvent};
use crate::owned::{OwnedArray, OwnedDeviceArray};
use crate::raw::{ArrowArray, ArrowDeviceArray, ArrowDeviceType};
use crate::view::null_count_is_possible;

/// The description of an array, borrowed while it is exported: counts, buffer pointers, children, dictionary.
///
/// `Default` is an empty array without buffers.
///
/// ```
/// use arrow_device_abi::ArrayNode;
///
/// let values = vec![1_i32, 2, 3];
/// let node = ArrayNode { length: 3, buffers: &[std::ptr::null(), values.as_ptr().cast()], ..Default::default() };
/// // SAFETY: an int32 array without nulls has these two buffers; they live as long as `values`, which is kept.
/// let array = unsafe { node.export(values) }?;
/// assert_eq!(array.view()?.length(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ArrayNode<'a> {
    /// Number of elements.
    pub length: i64,
    /// Number of nulls, or −1 if it is not known (B8), which is 0 if the first buffer is null.
    pub null_count: i64,
    /// Number of elements to skip at the start of the buffers, and of a struct's children.
    pub offset: i64,
    /// The buffers of the array's format, in its order. A validity bitmap may be null if there are no nulls, any
    /// buffer may be null if it has no bytes (B7). Some consumers, Arrow C++ among them, want one offset even for no
    /// elements.
    pub buffers: &'a [*const c_void],
    /// The children.
    pub children: &'a [ArrayNode<'a>],
    /// The dictionary's values, if the array is dictionary-encoded.
    pub dictionary: Option<&'a ArrayNode<'a>>,
}

/// What consumers of an exported device array have to wait for.
///
/// The handle is put into the exported tree's own memory, where `sync_event` points to it until the last node is
/// released (D11, C1). The event itself belongs to the keep-alive: destroy it when that is dropped, not before.
///
/// The event has to fire without further doing: where the runtime may hold work back, as OpenCL does, flush first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportEvent {
    /// Nothing: all work that writes the buffers is done (D8).
    Synchronized,
    /// A `cudaEvent_t` or `CUevent` for the CUDA types, a `cl_event` for OpenCL, a `hipEvent_t` for the ROCm types.
    /// Not null.
    Handle(*mut c_void),
    /// A `VkEvent`. Not null.
    VkEvent(u64),
    /// The `MTLEvent` or `sycl::event` object, which has to stay where it is as long as the keep-alive lives; for
    /// `EXT_DEV` and types unknown to Arrow whatever consumers expect to find in `sync_event`. Not null.
    Object(*mut c_void),
}

/// Where an event's handle stands in the block, beside the user's keep-alive.
#[repr(C)]
union Handle {
    none: (),
    pointer: *mut c_void,
    vk_event: u64,
}

#[repr(C)]
struct KeepWithEvent<K> {
    /// First, so that a pointer to this is one to the handle, whichever it is.
    handle: Handle,
    keep: K,
}

// SAFETY: the handle is plain data that nothing here acts on, and `K` can be sent.
unsafe impl<K: Send> Send for KeepWithEvent<K> {}

impl ArrayNode<'_> {
    /// Makes the C tree, in one allocation, which keeps `keep` alive until its last node is released.
    ///
    /// The tree may be taken apart by its consumer: children moved out, released later, in any order, on any threads.
    /// Buffers and pointer arrays of each stay readable until it is released, and `keep` is dropped exactly once. If
    /// dropping it panics, the panic ends there with feature `std`, and aborts without.
    ///
    /// What is checked is what the description alone can show. Whether buffers and children are those of a type, only
    /// its schema can tell: [`fits`](Self::fits).
    ///
    /// # Errors
    ///
    /// An [`ExportError`] that gives `keep` back, if a number of any node is impossible or memory is short.
    ///
    /// # Safety
    ///
    /// - Every node is one of a type that the consumer will be told, by its schema: as many buffers, as long, with such
    ///   contents, and as many children.
    /// - The buffers are in host memory, and stay valid and unchanged (D14) until `keep` is dropped.
    pub unsafe fn export<K: Send + 'static>(&self, keep: K) -> Result<OwnedArray, ExportError<K>> {
        let (raw, _) = build(self, keep)?;
        // SAFETY: a live tree that obeys the interface, as the caller promises of the description, and nobody else
        // has it; its release callback works on any thread because `K` can be sent.
        Ok(unsafe { OwnedArray::adopt(raw) })
    }

    /// Makes the C tree of an array on a device: as [`export`](Self::export), with the event in the same allocation.
    ///
    /// `device` is written as it is, but for the CPU, whose id is −1 (D4); `reserved` is zero (D10).
    ///
    /// # Errors
    ///
    /// As [`export`](Self::export), and [`ExportErrorKind::Event`] if arrays on this type of device do not wait for
    /// such an event (D9).
    ///
    /// # Safety
    ///
    /// As for [`export`](Self::export), with these differences:
    /// - the buffers are on `device`, their pointers device pointers (D2);
    /// - they hold their contents once `event` fires (D6), and at once if it is [`ExportEvent::Synchronized`];
    /// - `event` is valid until `keep` is dropped.
    pub unsafe fn export_on<K: Send + 'static>(
        &self,
        device: Device,
        event: ExportEvent,
        keep: K,
    ) -> Result<OwnedDeviceArray, ExportError<K>> {
        let Device { device_type, device_id } = device;
        let handle = match event.handle(device_type) {
            Ok(handle) => handle,
            Err(kind) => return Err(ExportError { keep, kind }),
        };
        let (array, kept) = match build(self, KeepWithEvent { handle, keep }) {
            Ok(built) => built,
            Err(ExportError { keep, kind }) => return Err(ExportError { keep: keep.keep, kind }),
        };
        let raw = ArrowDeviceArray {
            array,
            device_id: if device.is_cpu() { Device::CPU.device_id } else { device_id },
            device_type,
            sync_event: match event {
                ExportEvent::Synchronized => ptr::null_mut(),
                ExportEvent::Handle(_) | ExportEvent::VkEvent(_) => kept.cast(),
                ExportEvent::Object(object) => object,
            },
            reserved: [0; 3],
        };
        // SAFETY: as in `export`; the event is valid as long as the block, by the caller's promise.
        Ok(unsafe { OwnedDeviceArray::adopt(raw) })
    }
}

impl ExportEvent {
    /// What to keep of the event in the block, if arrays on `device_type` can wait for it.
    fn handle(self, device_type: ArrowDeviceType) -> Result<Handle, ExportErrorKind> {
        // SAFETY: the pointer is only compared, and the result dropped.
        let kind = unsafe { SyncEvent::from_raw(device_type, ptr::dangling_mut::<c_void>()) };
        match (self, kind) {
            (Self::Synchronized, _) => Ok(Handle { none: () }),
            (
                Self::Handle(handle),
                Ok(Some(SyncEvent::Cuda(_) | SyncEvent::OpenCl(_) | SyncEvent::Hip(_))),
            ) if !handle.is_null() => Ok(Handle { pointer: handle }),
            (Self::VkEvent(event), Ok(Some(SyncEvent::Vulkan(_)))) if event != 0 => {
                Ok(Handle { vk_event: event })
            }
            (
                Self::Object(object),
                Ok(Some(
                    SyncEvent::Metal(_)
                    | SyncEvent::Sycl(_)
                    | SyncEvent::Extension(_)
                    | SyncEvent::Unknown(_),
                )),
            ) if !object.is_null() => Ok(Handle { pointer: object }),
            _ => Err(ExportErrorKind::Event(device_type)),
        }
    }
}

described!(ArrayNode);

impl Export for &ArrayNode<'_> {
    type Struct = ArrowArray;

    fn measure(self) -> Result<usize, ExportErrorKind> {
        let ArrayNode { length, offset, null_count, .. } = *self;
        if length < 0 || offset < 0 || length.checked_add(offset).is_none() {
            return Err(ExportErrorKind::Length { length, offset });
        }
        if !null_count_is_possible(null_count, length, self.buffers, self.children.is_empty()) {
            return Err(ExportErrorKind::NullCount { null_count });
        }
        Ok(size_of_val(self.buffers))
    }

    unsafe fn write(self, node: *mut ArrowArray, data: *mut u8) -> *mut u8 {
        let buffers: *mut *const c_void = data.cast();
        let n_buffers = self.buffers.len();
        // Nearly every node has one to three buffers, for which a loop is faster than a call.
        for (index, buffer) in self.buffers.iter().enumerate() {
            // SAFETY: all shares are whole pointers, so `data` is valid and aligned for this one, as the caller
            // promises.
            unsafe { buffers.wrapping_add(index).write(*buffer) };
        }
        let array = ArrowArray {
            length: self.length,
            // Without a bitmap there is nothing to count, and strict consumers want to hear so (C24).
            null_count: if self.null_count == -1 && self.buffers.first().is_some_and(|b| b.is_null()) {
                0
            } else {
                self.null_count
            },
            offset: self.offset,
            n_buffers: count(n_buffers),
            n_children: count(self.children.len()),
            buffers: if n_buffers == 0 { ptr::null_mut() } else { buffers },
            ..ArrowArray::released()
        };
        // SAFETY: valid and aligned, as the caller promises.
        unsafe { node.write(array) };
        buffers.wrapping_add(n_buffers).cast()
    }
}
tree_struct!(ArrowArray);

/// The length of a slice, which is at most `isize::MAX`, as C counts.
#[allow(clippy::cast_possible_wrap, reason = "slices of sized items are no longer than isize::MAX")]
pub(super) const fn count(len: usize) -> i64 {
    len as i64
}
