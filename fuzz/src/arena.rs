//! What the structs point to. It is freed when the fuzzer's turn is over, whoever released what.

use core::ffi::c_void;

use arrow_device_abi::raw::{ArrowArray, ArrowSchema};

/// Memory that stays where it is until the arena is dropped.
#[derive(Default)]
pub struct Arena {
    // Raw, because the structs point into each other.
    boxes: Vec<Box<dyn FnOnce()>>,
}

impl Arena {
    /// Keeps a value, and gives its address.
    pub fn keep<T: 'static>(&mut self, value: T) -> *mut T {
        let place = Box::into_raw(Box::new(value));
        // SAFETY: from `into_raw`, and dropped once.
        self.boxes.push(Box::new(move || drop(unsafe { Box::from_raw(place) })));
        place
    }

    /// Keeps values side by side, and gives the address of the first.
    pub fn keep_all<T: 'static>(&mut self, values: Box<[T]>) -> *mut T {
        let place = Box::into_raw(values);
        // SAFETY: as above.
        self.boxes.push(Box::new(move || drop(unsafe { Box::from_raw(place) })));
        place.cast()
    }

    /// Keeps the bytes of a buffer.
    pub fn buffer(&mut self, bytes: Box<[u8]>) -> *const c_void {
        self.keep_all(bytes).cast_const().cast()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.boxes.drain(..).for_each(|free| free());
    }
}

/// Releases nothing: the arena does that.
///
/// # Safety
///
/// - `this` is valid for writes.
pub unsafe extern "C" fn release_array(this: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    unsafe { (*this).release = None };
}

/// Releases nothing: the arena does that.
///
/// # Safety
///
/// - `this` is valid for writes.
pub unsafe extern "C" fn release_schema(this: *mut ArrowSchema) {
    // SAFETY: as the caller promises.
    unsafe { (*this).release = None };
}
