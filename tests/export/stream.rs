//! Both kinds of produced streams, and a consumer as C writes one.

use core::ffi::{CStr, c_int};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use arrow_device_abi::{
    ArrayNode, Device, ExportEvent, Owned, OwnedArray, OwnedArrayStream, OwnedDeviceArray,
    OwnedDeviceArrayStream, OwnedSchema, Release, SchemaNode, StreamFailure, StreamStruct,
};

use super::Keep;
use crate::common::Counter;

/// Runs a generic test for both stream structs.
macro_rules! for_both_streams {
    ($test:ident) => {
        $test::<arrow_device_abi::raw::ArrowArrayStream>();
        $test::<arrow_device_abi::raw::ArrowDeviceArrayStream>();
    };
}
pub(crate) use for_both_streams;

/// One of the two stream structs, produced here; the device stream is one of CUDA.
pub trait Produced: StreamStruct<Array: fmt::Debug> + 'static {
    /// `Owned<Self::Array>`: this way the compiler knows that it can be sent, whichever it is.
    type Owned: Send + 'static + From<Owned<Self::Array>> + Into<Owned<Self::Array>>;

    fn from_items<E: Into<StreamFailure> + 'static>(
        schema: OwnedSchema,
        items: impl IntoIterator<Item = Result<Self::Owned, E>, IntoIter: Send + 'static>,
    ) -> Owned<Self>;

    /// An array of so many nulls, for this stream.
    fn array(length: i64, dropped: &Counter) -> Self::Owned;

    fn length(array: &Self::Array) -> i64;

    /// # Safety
    ///
    /// - `this` is valid for reads.
    unsafe fn release_of(this: *const Self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

fn nulls<R>(length: i64, f: impl FnOnce(&ArrayNode<'_>) -> R) -> R {
    f(&ArrayNode { length, null_count: length, ..ArrayNode::default() })
}

impl Produced for ArrowArrayStream {
    type Owned = OwnedArray;

    fn from_items<E: Into<StreamFailure> + 'static>(
        schema: OwnedSchema,
        items: impl IntoIterator<Item = Result<OwnedArray, E>, IntoIter: Send + 'static>,
    ) -> OwnedArrayStream {
        // SAFETY: the arrays are of this schema.
        unsafe { OwnedArrayStream::from_iter(schema, items) }
    }

    fn array(length: i64, dropped: &Counter) -> OwnedArray {
        // SAFETY: the null layout has no buffers.
        nulls(length, |node| unsafe { node.export(Keep::counted(dropped)) }).unwrap()
    }

    fn length(array: &ArrowArray) -> i64 {
        array.length
    }

    unsafe fn release_of(this: *const Self) -> Option<unsafe extern "C" fn(*mut Self)> {
        // SAFETY: as the caller promises.
        unsafe { (*this).release }
    }
}

impl Produced for ArrowDeviceArrayStream {
    type Owned = OwnedDeviceArray;

    fn from_items<E: Into<StreamFailure> + 'static>(
        schema: OwnedSchema,
        items: impl IntoIterator<Item = Result<OwnedDeviceArray, E>, IntoIter: Send + 'static>,
    ) -> OwnedDeviceArrayStream {
        // SAFETY: the arrays are of this schema.
        unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CUDA, schema, items) }
    }

    fn array(length: i64, dropped: &Counter) -> OwnedDeviceArray {
        on_device(length, Device::new(ArrowDeviceType::CUDA, 0), dropped)
    }

    fn length(array: &ArrowDeviceArray) -> i64 {
        array.array.length
    }

    unsafe fn release_of(this: *const Self) -> Option<unsafe extern "C" fn(*mut Self)> {
        // SAFETY: as the caller promises.
        unsafe { (*this).release }
    }
}

/// An array of so many nulls, on this device.
pub fn on_device(length: i64, device: Device, dropped: &Counter) -> OwnedDeviceArray {
    let keep = Keep::counted(dropped);
    // SAFETY: the null layout has no buffers.
    nulls(length, |node| unsafe { node.export_on(device, ExportEvent::Synchronized, keep) }).unwrap()
}

/// The schema of the arrays.
pub fn schema() -> OwnedSchema {
    SchemaNode { name: Some("nulls"), ..SchemaNode::default() }.export().unwrap()
}

/// A consumer of a stream as C writes one: out-structs are full of 0xAA before each call (C5).
pub struct Consumer<S: Produced>(Box<S>);

// SAFETY: a stream may be driven from any thread.
unsafe impl<S: Produced> Send for Consumer<S> {}

impl<S: Produced> Consumer<S> {
    pub fn new(stream: Owned<S>) -> Self {
        Self(Box::new(stream.into_raw()))
    }

    /// The stream at another address, the memory where it was being freed (B6).
    pub fn moved(self) -> Self {
        // SAFETY: a move by bytes; the source is freed and not used again.
        Self(Box::new(unsafe { ptr::read(&raw const *self.0) }))
    }

    pub fn raw(&mut self) -> *mut S {
        &raw mut *self.0
    }

    fn call<T: Release>(
        &mut self,
        callback: Option<unsafe extern "C" fn(*mut S, *mut T) -> c_int>,
    ) -> Result<Option<Owned<T>>, c_int> {
        let mut out = MaybeUninit::<T>::uninit();
        // SAFETY: a live stream, one call at a time; the out-struct is valid for writes, and afterwards it was written.
        let (code, out) = unsafe {
            out.as_mut_ptr().write_bytes(0xAA, 1);
            let code = callback.unwrap()(self.raw(), out.as_mut_ptr());
            (code, out.assume_init())
        };
        if code != 0 {
            assert!(out.is_released(), "a failure left something in the out-struct");
            return Err(code);
        }
        // SAFETY: after success it is released, or a live struct that is the consumer's.
        Ok(unsafe { Owned::from_raw(out) }.ok())
    }

    pub fn schema(&mut self) -> Result<OwnedSchema, c_int> {
        let callback = StreamStruct::get_schema(&*self.0);
        self.call::<ArrowSchema>(callback).map(|schema| schema.expect("a schema is never the end"))
    }

    pub fn next(&mut self) -> Result<Option<Owned<S::Array>>, c_int> {
        let callback = StreamStruct::get_next(&*self.0);
        self.call(callback)
    }

    /// The length of the next array, or −1 at the end.
    pub fn next_length(&mut self) -> Result<i64, c_int> {
        self.next().map(|array| array.map_or(-1, |array| S::length(array.as_raw())))
    }

    pub fn last_error(&mut self) -> Option<String> {
        // SAFETY: a live stream, one call at a time.
        let text = unsafe { StreamStruct::get_last_error(&*self.0).unwrap()(self.raw()) };
        // SAFETY: the text ends in NUL and lives until the next callback.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
    }

    pub fn release(mut self) {
        let stream = self.raw();
        // SAFETY: a live stream, and the last call; no reference is held during it.
        unsafe {
            S::release_of(stream).unwrap()(stream);
            assert!((*stream).is_released());
        }
    }
}
