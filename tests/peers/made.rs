//! A device stream of data made in Rust, by hand on the raw structs: each node of a tree is one box.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::Relaxed;

use arrow_device_abi::raw::{
    ARROW_FLAG_NULLABLE, ArrowArray, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};

/// Structs given out and not released: must come back to 0.
pub static LIVE: AtomicI64 = AtomicI64::new(0);

/// See `cpp_peer.h`.
#[unsafe(no_mangle)]
pub extern "C" fn peer_live() -> i64 {
    LIVE.load(Relaxed)
}

/// What a node of an array tree keeps alive.
struct Node {
    buffers: Box<[*const c_void]>,
    children: Box<[*mut ArrowArray]>,
    /// Where the buffers point to; null pointers stand for what is not here.
    _bytes: Vec<Box<[u8]>>,
}

fn array(
    length: i64,
    null_count: i64,
    bytes: Vec<Option<Box<[u8]>>>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    LIVE.fetch_add(1, Relaxed);
    let node = Box::into_raw(Box::new(Node {
        buffers: bytes
            .iter()
            .map(|bytes| bytes.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast()))
            .collect(),
        children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
        _bytes: bytes.into_iter().flatten().collect(),
    }));
    // SAFETY: just made, and used by nobody else yet.
    let Node { buffers, children, .. } = unsafe { &mut *node };
    ArrowArray {
        length,
        null_count,
        offset: 0,
        n_buffers: buffers.len() as i64,
        n_children: children.len() as i64,
        buffers: buffers.as_mut_ptr(),
        children: children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: node.cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: C calls this once on a live struct of `array`, whose private data is its box.
    let node = unsafe { Box::from_raw((*array).private_data.cast::<Node>()) };
    for &child in &node.children {
        // SAFETY: each child is a box of `array`, live or moved out (B5).
        unsafe {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
    }
    LIVE.fetch_sub(1, Relaxed);
    // SAFETY: the struct is the caller's, valid for writes; released means null (B4).
    unsafe { (*array).release = None };
}

fn schema(format: &'static CStr, name: &'static CStr, flags: i64, children: Vec<ArrowSchema>) -> ArrowSchema {
    LIVE.fetch_add(1, Relaxed);
    let count = children.len() as i64;
    let children: Box<[*mut ArrowSchema]> =
        children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let children = Box::into_raw(children);
    ArrowSchema {
        format: format.as_ptr(),
        name: name.as_ptr(),
        metadata: ptr::null(),
        flags,
        n_children: count,
        children: children.cast(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: ptr::null_mut(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: C calls this once on a live struct of `schema`, which has that many children in a box.
    let children = unsafe {
        Box::from_raw(ptr::slice_from_raw_parts_mut((*schema).children, (*schema).n_children as usize))
    };
    for &child in &children {
        // SAFETY: each child is a box of `schema`, live or moved out (B5).
        unsafe {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
    }
    LIVE.fetch_sub(1, Relaxed);
    // SAFETY: the struct is the caller's, valid for writes; released means null (B4).
    unsafe { (*schema).release = None };
}

fn bytes<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Option<Box<[u8]>> {
    Some(values.flatten().collect())
}

/// Rows `first` to `first + rows` of the table that `cpp_peer.h` describes.
fn batch(first: i64, rows: i64) -> ArrowArray {
    let all = || first..first + rows;
    let mut validity = vec![0; usize::try_from(rows).unwrap_or(0).div_ceil(8)];
    let mut nulls = 0;
    for (i, row) in all().enumerate() {
        if row % 3 == 0 {
            nulls += 1;
        } else {
            validity[i / 8] |= 1 << (i % 8);
        }
    }
    let mut text = String::new();
    let mut offsets = vec![0_i32];
    for row in all() {
        text += &format!("row {row}");
        offsets.push(text.len() as i32);
    }
    let numbers = array(rows, nulls, vec![Some(validity.into()), bytes(all().map(i64::to_ne_bytes))], vec![]);
    let texts = array(
        rows,
        0,
        vec![None, bytes(offsets.into_iter().map(i32::to_ne_bytes)), Some(text.into_bytes().into())],
        vec![],
    );
    array(rows, 0, vec![None], vec![numbers, texts])
}

struct Made {
    left: i64,
    rows: i64,
    next_row: i64,
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_produce(batches: i64, rows: i64, out: *mut ArrowDeviceArrayStream) -> c_int {
    LIVE.fetch_add(1, Relaxed);
    let made = ArrowDeviceArrayStream {
        device_type: ArrowDeviceType::CPU,
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(Box::new(Made { left: batches, rows, next_row: 0 })).cast(),
    };
    // SAFETY: valid for writes as the caller promises.
    unsafe { out.write(made) };
    0
}

unsafe extern "C" fn get_schema(_: *mut ArrowDeviceArrayStream, out: *mut ArrowSchema) -> c_int {
    let fields = vec![schema(c"l", c"n", ARROW_FLAG_NULLABLE, vec![]), schema(c"u", c"s", 0, vec![])];
    // SAFETY: an out-struct is valid for writes.
    unsafe { out.write(schema(c"+s", c"", 0, fields)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: C calls this on a live stream, one call at a time; the private data is the box of `peer_produce`.
    let made = unsafe { &mut *(*stream).private_data.cast::<Made>() };
    let mut next = ArrowDeviceArray::released();
    if made.left > 0 {
        next.array = batch(made.next_row, made.rows);
        next.device_type = ArrowDeviceType::CPU;
        next.device_id = -1;
        made.left -= 1;
        made.next_row += made.rows;
    }
    // SAFETY: an out-struct is valid for writes.
    unsafe { out.write(next) };
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowDeviceArrayStream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release(stream: *mut ArrowDeviceArrayStream) {
    // SAFETY: C calls this once on a live stream; the box is that of `peer_produce`.
    drop(unsafe { Box::from_raw((*stream).private_data.cast::<Made>()) });
    LIVE.fetch_sub(1, Relaxed);
    // SAFETY: the struct is the caller's, valid for writes; released means null (B4).
    unsafe { (*stream).release = None };
}
