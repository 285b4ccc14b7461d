//! A stream whose callbacks are Rust's, around a stream that somebody else produces.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use std::ffi::CString;

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};
use arrow_device_abi::{DeviceArrayStreamReader, OwnedDeviceArrayStream, StreamError, errno};

use crate::PeerText;
use crate::made::LIVE;

struct Relay {
    source: DeviceArrayStreamReader,
    given: i64,
    /// After so many batches it fails with the code; negative: never.
    limit: i64,
    code: c_int,
    message: Option<CString>,
}

impl Relay {
    fn fail(&mut self, error: &StreamError) -> c_int {
        // A text of C cannot hold a NUL, and `error` got its text from C.
        self.message = error.message().and_then(|text| CString::new(text).ok());
        error.code().unwrap_or(errno::EIO)
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `stream` is null or obeys the C device stream interface; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_relay(
    stream: *mut ArrowDeviceArrayStream,
    batches: i64,
    code: c_int,
    out: *mut ArrowDeviceArrayStream,
    text: PeerText,
) -> c_int {
    // SAFETY: null or a stream that the caller gives away.
    let source = match unsafe { OwnedDeviceArrayStream::take(stream) } {
        Ok(stream) => DeviceArrayStreamReader::new(stream),
        Err(error) => return text.refuse(error),
    };
    LIVE.fetch_add(1, Relaxed);
    let relay = ArrowDeviceArrayStream {
        device_type: source.device_type(),
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(Box::new(Relay {
            source,
            given: 0,
            limit: batches,
            code,
            message: None,
        }))
        .cast(),
    };
    // SAFETY: valid for writes as the caller promises.
    unsafe { out.write(relay) };
    0
}

/// # Safety
///
/// - `stream` is a live relay, and its callbacks are called one at a time (S7).
unsafe fn relay<'a>(stream: *mut ArrowDeviceArrayStream) -> &'a mut Relay {
    // SAFETY: the private data of a live relay is the box of `peer_relay`, and no other call uses it.
    unsafe { &mut *(*stream).private_data.cast::<Relay>() }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowDeviceArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: C calls this on a live stream, one call at a time.
    let relay = unsafe { relay(stream) };
    match relay.source.schema() {
        Ok(schema) => {
            // SAFETY: an out-struct is valid for writes.
            unsafe { schema.export_to(out) };
            0
        }
        Err(error) => relay.fail(&error),
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: C calls this on a live stream, one call at a time.
    let relay = unsafe { relay(stream) };
    if relay.given == relay.limit {
        relay.message = CString::new(format!("relé stopped after {} batches", relay.given)).ok();
        return relay.code;
    }
    match relay.source.next_array() {
        Ok(Some(array)) => {
            relay.given += 1;
            // SAFETY: an out-struct is valid for writes.
            unsafe { array.export_to(out) };
            0
        }
        Ok(None) => {
            // SAFETY: as above.
            unsafe { out.write(ArrowDeviceArray::released()) };
            0
        }
        Err(error) => relay.fail(&error),
    }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowDeviceArrayStream) -> *const c_char {
    // SAFETY: C calls this on a live stream, one call at a time.
    unsafe { relay(stream) }.message.as_deref().map_or(ptr::null(), CStr::as_ptr)
}

unsafe extern "C" fn release(stream: *mut ArrowDeviceArrayStream) {
    // SAFETY: C calls this once on a live stream; the box is that of `peer_relay`.
    drop(unsafe { Box::from_raw((*stream).private_data.cast::<Relay>()) });
    LIVE.fetch_sub(1, Relaxed);
    // SAFETY: the struct is the caller's, valid for writes; released means null (B4).
    unsafe { (*stream).release = None };
    // SAFETY: as above.
    unsafe { (*stream).private_data = ptr::null_mut::<c_void>() };
}
