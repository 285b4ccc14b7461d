//! `tests/support/c/peers.h` in Rust.

use core::cell::Cell;
use core::ffi::{c_char, c_int};
use core::mem::MaybeUninit;
use core::ptr;

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use arrow_device_abi::{
    Device, Owned, OwnedArray, OwnedArrayStream, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema,
    Release,
};
// Links the C functions.
use arrow_device_abi_support as _;

/// `struct peer_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Books {
    /// By node: root, ints, kinds, dictionary.
    pub released: [i64; 4],
    pub events_destroyed: i64,
    pub streams_released: i64,
    pub get_schema: i64,
    pub get_next: i64,
    pub get_last_error: i64,
    pub faults: i64,
}

/// What C writes to while the test holds it.
pub type Counts = Cell<Books>;

/// `struct peer_script`.
#[repr(C)]
pub struct PeerScript {
    pub batches: i64,
    pub message: *const c_char,
    pub code: i32,
    pub has_no_message_callback: i32,
    pub fails_in_get_schema: i32,
    pub last_device_type: ArrowDeviceType,
}

impl PeerScript {
    pub const fn batches(batches: i64) -> Self {
        Self {
            batches,
            message: ptr::null(),
            code: 0,
            has_no_message_callback: 0,
            fails_in_get_schema: 0,
            last_device_type: ArrowDeviceType(0),
        }
    }
}

unsafe extern "C" {
    pub fn peer_make_schema(out: *mut ArrowSchema, counts: *const Counts);
    pub fn peer_make_array(out: *mut ArrowArray, counts: *const Counts);
    pub fn peer_make_device_array(
        out: *mut ArrowDeviceArray,
        device_type: ArrowDeviceType,
        id: i64,
        counts: *const Counts,
    );
    pub fn peer_make_hoarder(out: *mut ArrowArray, kept: *mut ArrowArray, counts: *const Counts);
    pub fn peer_make_forgetful_schema(out: *mut ArrowSchema, counts: *const Counts);
    pub fn peer_make_forgetful_array(out: *mut ArrowArray, counts: *const Counts);
    pub fn peer_make_forgetful_stream(out: *mut ArrowArrayStream, counts: *const Counts);
    pub fn peer_make_forgetful_device_array(out: *mut ArrowDeviceArray, counts: *const Counts);
    pub fn peer_make_forgetful_device_stream(out: *mut ArrowDeviceArrayStream, counts: *const Counts);
    pub fn peer_make_stream(out: *mut ArrowArrayStream, script: *const PeerScript, counts: *const Counts);
    pub fn peer_make_device_stream(
        out: *mut ArrowDeviceArrayStream,
        script: *const PeerScript,
        counts: *const Counts,
    );
    pub fn peer_move_schema(source: *mut ArrowSchema, target: *mut ArrowSchema);
    pub fn peer_move_array(source: *mut ArrowArray, target: *mut ArrowArray);
    pub fn peer_move_device_array(source: *mut ArrowDeviceArray, target: *mut ArrowDeviceArray);
    pub fn peer_move_stream(source: *mut ArrowArrayStream, target: *mut ArrowArrayStream);
    pub fn peer_move_device_stream(source: *mut ArrowDeviceArrayStream, target: *mut ArrowDeviceArrayStream);
    pub fn peer_release_schema(schema: *mut ArrowSchema) -> c_int;
    pub fn peer_release_array(array: *mut ArrowArray) -> c_int;
    pub fn peer_sum(array: *const ArrowArray) -> i64;
    pub fn peer_drain_stream(
        stream: *mut ArrowArrayStream,
        arrays: *mut i64,
        rows: *mut i64,
        text: *mut [c_char; 64],
    ) -> c_int;
    pub fn peer_drain_device_stream(
        stream: *mut ArrowDeviceArrayStream,
        arrays: *mut i64,
        rows: *mut i64,
        text: *mut [c_char; 64],
    ) -> c_int;
}

/// Lets C make a struct in uninitialised memory, and takes it.
pub fn made<T: Release>(make: impl FnOnce(*mut T)) -> Owned<T> {
    let mut place = MaybeUninit::uninit();
    make(place.as_mut_ptr());
    // SAFETY: C made a live struct there, and gives it away. Its callbacks write plain counts, and the tests wait for
    // other threads before they read them.
    unsafe { Owned::take(place.as_mut_ptr()) }.unwrap()
}

pub fn c_schema(counts: &Counts) -> OwnedSchema {
    // SAFETY: valid for writes; the counts outlive the struct in every test.
    made(|out| unsafe { peer_make_schema(out, counts) })
}

pub fn c_array(counts: &Counts) -> OwnedArray {
    // SAFETY: as above.
    made(|out| unsafe { peer_make_array(out, counts) })
}

pub fn c_device_array(device: Device, counts: &Counts) -> OwnedDeviceArray {
    // SAFETY: as above.
    made(|out| unsafe { peer_make_device_array(out, device.device_type, device.device_id, counts) })
}

pub fn c_stream(script: &PeerScript, counts: &Counts) -> OwnedArrayStream {
    // SAFETY: as above; the script is copied.
    made(|out| unsafe { peer_make_stream(out, script, counts) })
}

pub fn c_device_stream(script: &PeerScript, counts: &Counts) -> OwnedDeviceArrayStream {
    // SAFETY: as above.
    made(|out| unsafe { peer_make_device_stream(out, script, counts) })
}
