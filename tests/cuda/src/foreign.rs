use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use arrow_device_abi::OwnedDeviceArray;
use arrow_device_abi::raw::{ArrowArray, ArrowDeviceArray, ArrowDeviceType};
use cudarc::driver::{CudaSlice, CudaStream, sys};

use crate::pointer;

/// An event that another library made: a handle, with nothing of cudarc's around it.
pub struct ForeignEvent(sys::CUevent);

// SAFETY: a handle of the driver, for any thread.
unsafe impl Send for ForeignEvent {}

impl ForeignEvent {
    /// Recorded on `stream`, in its context.
    pub fn record(stream: &CudaStream) -> Self {
        stream.context().bind_to_thread().expect("the context");
        let mut event = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { sys::cuEventCreate(&raw mut event, 2) }.result().expect("an event");
        // SAFETY: both are live and of one context.
        unsafe { sys::cuEventRecord(event, stream.cu_stream()) }.result().expect("the record");
        Self(event)
    }

    pub fn handle(&self) -> *mut c_void {
        self.0.cast()
    }

    /// Destroys it, in the context that is current.
    pub fn destroy(self) {
        // SAFETY: live, and not used again.
        unsafe { sys::cuEventDestroy_v2(self.0) }.result().expect("a live event");
    }
}

/// What a producer that is not ours keeps behind `private_data`.
pub struct Foreign {
    buffers: [*const c_void; 2],
    /// Where `sync_event` points to.
    slot: *mut c_void,
    event: Option<ForeignEvent>,
    memory: Option<CudaSlice<u8>>,
    released: Arc<AtomicUsize>,
}

unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: called on a live array of `array_of`, whose private data is a box.
    let Foreign { event, memory, released, .. } =
        *unsafe { Box::from_raw((*array).private_data.cast::<Foreign>()) };
    if let Some(event) = event {
        // A producer brings its own context along.
        if let Some(memory) = &memory {
            memory.context().bind_to_thread().expect("the context");
        }
        event.destroy();
    }
    drop(memory);
    released.fetch_add(1, SeqCst);
    // SAFETY: the caller's struct.
    unsafe { (*array).release = None };
}

/// An array of bytes (`C`) of a producer that is not ours. `slot` is what `sync_event` points to, if it does; by default
/// the event's handle.
pub fn array_of(
    device_type: ArrowDeviceType,
    device_id: i64,
    memory: CudaSlice<u8>,
    event: Option<ForeignEvent>,
    released: &Arc<AtomicUsize>,
) -> OwnedDeviceArray {
    let slot = event.as_ref().map_or(ptr::null_mut(), ForeignEvent::handle);
    let waits = event.is_some();
    let length = i64::try_from(memory.len()).expect("a length");
    let buffers = [ptr::null(), ptr::without_provenance(pointer(&memory) as usize)];
    let foreign = Box::into_raw(Box::new(Foreign {
        buffers,
        slot,
        event,
        memory: Some(memory),
        released: Arc::clone(released),
    }));
    // SAFETY: just made, and used by nobody else.
    let (buffers, slot) = unsafe { (&raw mut (*foreign).buffers, &raw mut (*foreign).slot) };
    let raw = ArrowDeviceArray {
        array: ArrowArray {
            length,
            n_buffers: 2,
            buffers: buffers.cast(),
            release: Some(release),
            private_data: foreign.cast(),
            ..ArrowArray::released()
        },
        device_id,
        device_type,
        sync_event: if waits { slot.cast() } else { ptr::null_mut() },
        reserved: [0; 3],
    };
    // SAFETY: a live array that obeys the interface, handed out once; the driver's handles are for any thread.
    unsafe { OwnedDeviceArray::from_raw(raw) }.expect("a live array")
}
