//! Structs as a producer hands them over, made by hand on the raw structs. Their release callbacks count.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test program uses a part")]

mod stream;
mod tree;

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use arrow_device_abi::{Owned, Release};

pub(crate) use stream::for_both_streams;
pub use stream::{Fail, Log, Script, StreamStub, batches, length, reader, stream};
pub use tree::{Event, Stub, array, on_device, schema};

/// How often something happened. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    pub fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// A struct whose release callback only counts. It frees nothing, so that one call too many is a wrong count and no
/// crash.
pub trait Bare: Release + core::fmt::Debug + 'static {
    /// `released` has to outlive the struct. A callback that does not clear `release` breaks B4, as some do (C4).
    fn bare(released: &Counter, clears_itself: bool) -> Self;
}

macro_rules! bare {
    ($($name:ident),+) => { $(
        impl Bare for $name {
            fn bare(released: &Counter, clears_itself: bool) -> Self {
                unsafe extern "C" fn forgetful(this: *mut $name) {
                    // SAFETY: called on a live struct of `bare`, whose private data is a count that outlives it.
                    unsafe { (*(*this).private_data.cast::<AtomicUsize>()).fetch_add(1, SeqCst) };
                }
                unsafe extern "C" fn clearing(this: *mut $name) {
                    // SAFETY: as for this function itself.
                    unsafe { forgetful(this) };
                    // SAFETY: valid for writes, as every released struct is.
                    unsafe { (*this).release = None };
                }
                Self {
                    release: Some(if clears_itself { clearing } else { forgetful }),
                    private_data: Arc::as_ptr(&released.0).cast_mut().cast(),
                    ..Self::released()
                }
            }
        }
    )+ };
}
bare!(ArrowSchema, ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream);

impl Bare for ArrowDeviceArray {
    fn bare(released: &Counter, clears_itself: bool) -> Self {
        Self { array: Bare::bare(released, clears_itself), ..Self::released() }
    }
}

/// Runs a generic test for each of the five structs with a release callback.
macro_rules! for_each_struct {
    ($test:ident) => {
        $test::<ArrowSchema>();
        $test::<ArrowArray>();
        $test::<ArrowArrayStream>();
        $test::<ArrowDeviceArray>();
        $test::<ArrowDeviceArrayStream>();
    };
}
pub(crate) use for_each_struct;

/// The owner of a struct that a stub made.
pub fn own<T: Release>(raw: T) -> Owned<T> {
    // SAFETY: the stubs obey the interface, use their counts only through atomics, and are handed out once.
    match unsafe { Owned::from_raw(raw) } {
        Ok(owned) => owned,
        Err(error) => panic!("a stub made no live struct: {error}"),
    }
}

/// An address that nothing may be read from.
pub fn nowhere() -> *mut c_void {
    core::ptr::without_provenance_mut(0xDEAD_BEE8)
}
