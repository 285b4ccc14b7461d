//! Trees: schemas and arrays, and arrays on devices.

use core::any::Any;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use arrow_device_abi::raw::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use arrow_device_abi::{Device, Owned, Release};

use super::{Counter, nowhere, own};

type Callback<T> = unsafe extern "C" fn(*mut T);

/// What schemas and arrays have in common.
pub trait Tree: Release + 'static {
    fn link(&mut self, private: &mut Private<Self>);
    fn set_private(&mut self, private_data: *mut c_void, release: Callback<Self>);
    /// A released struct with nonsense in all other fields.
    fn spoiled() -> Self;
    /// # Safety
    ///
    /// - `this` is valid for reads.
    unsafe fn private(this: *const Self) -> (*mut c_void, Option<Callback<Self>>);
}

/// What the private data of a node points to.
pub struct Private<T> {
    buffers: Box<[*const c_void]>,
    children: Box<[*mut T]>,
    dictionary: *mut T,
    released: Counter,
    _keep: Option<Box<dyn Any>>,
}

macro_rules! tree {
    ($($name:ident, |$raw:ident, $private:ident| $link:block, { $($nonsense:tt)* })+) => { $(
        impl Tree for $name {
            fn link(&mut self, $private: &mut Private<Self>) {
                let $raw = self;
                if !$private.children.is_empty() {
                    $raw.n_children = $private.children.len() as i64;
                    $raw.children = $private.children.as_mut_ptr();
                }
                $raw.dictionary = $private.dictionary;
                $link
            }

            fn set_private(&mut self, private_data: *mut c_void, release: Callback<Self>) {
                self.private_data = private_data;
                self.release = Some(release);
            }

            fn spoiled() -> Self {
                Self {
                    n_children: i64::MIN,
                    children: nowhere().cast(),
                    dictionary: nowhere().cast(),
                    private_data: nowhere(),
                    release: None,
                    $($nonsense)*
                }
            }

            unsafe fn private(this: *const Self) -> (*mut c_void, Option<Callback<Self>>) {
                // SAFETY: valid for reads as the caller promises.
                unsafe { ((*this).private_data, (*this).release) }
            }
        }
    )+ };
}
tree! {
    ArrowSchema, |_raw, private| { assert!(private.buffers.is_empty()) }, {
        format: nowhere().cast(),
        name: nowhere().cast(),
        metadata: nowhere().cast(),
        flags: i64::MIN,
    }
    ArrowArray, |raw, private| {
        if !private.buffers.is_empty() {
            raw.n_buffers = private.buffers.len() as i64;
            raw.buffers = private.buffers.as_mut_ptr();
        }
    }, {
        length: i64::MIN,
        null_count: i64::MIN,
        offset: i64::MIN,
        n_buffers: i64::MIN,
        buffers: nowhere().cast(),
    }
}

/// Releases what is left of the children and the dictionary, then the struct (B4), and spoils what may not be read
/// afterwards (B3).
unsafe extern "C" fn release<T: Tree>(this: *mut T) {
    // SAFETY: C calls this on a live struct of `Stub::build`, wherever it was moved; its private data is a box.
    let private = unsafe { Box::from_raw(T::private(this).0.cast::<Private<T>>()) };
    let nodes = private.children.iter().chain([&private.dictionary]);
    for &node in nodes.filter(|node| !node.is_null()) {
        // SAFETY: each is a box of `Stub::build`, live or moved out (B5).
        unsafe {
            if let (_, Some(release)) = T::private(node) {
                release(node);
            }
            drop(Box::from_raw(node));
        }
    }
    private.released.add();
    // SAFETY: the struct is the caller's and valid for writes.
    unsafe { this.write(T::spoiled()) };
}

/// A box that others point into: moving this does not claim its contents, as moving a `Box` does.
struct Kept<T: ?Sized>(*mut T);

impl<T: ?Sized> Kept<T> {
    fn new(contents: Box<T>) -> (*mut T, Self) {
        let contents = Box::into_raw(contents);
        (contents, Self(contents))
    }
}

impl<T: ?Sized> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: a box of `new`, dropped here only.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// A tree to be made: each node is an allocation of its own, and has a count of its own.
#[must_use]
pub struct Stub<T> {
    raw: T,
    buffers: Vec<*const c_void>,
    children: Vec<Self>,
    dictionary: Option<Box<Self>>,
    released: Counter,
    keep: Option<Box<dyn Any>>,
}

impl<T: Tree> Stub<T> {
    fn new(raw: T) -> Self {
        Self {
            raw,
            buffers: Vec::new(),
            children: Vec::new(),
            dictionary: None,
            released: Counter::new(),
            keep: None,
        }
    }

    pub fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    pub fn dictionary(mut self, dictionary: Self) -> Self {
        self.dictionary = Some(Box::new(dictionary));
        self
    }

    /// Counts this node's release.
    pub fn counted(mut self, released: &Counter) -> Self {
        self.released = released.clone();
        self
    }

    /// Keeps something alive until this node is released.
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }

    pub fn build(self) -> T {
        let node = |stub: Self| Box::into_raw(Box::new(stub.build()));
        let private = Box::into_raw(Box::new(Private {
            buffers: self.buffers.into(),
            children: self.children.into_iter().map(node).collect(),
            dictionary: self.dictionary.map_or(ptr::null_mut(), |stub| node(*stub)),
            released: self.released,
            _keep: self.keep,
        }));
        let mut raw = self.raw;
        // SAFETY: just made, and used by nobody else yet.
        raw.link(unsafe { &mut *private });
        raw.set_private(private.cast(), release::<T>);
        raw
    }

    pub fn own(self) -> Owned<T> {
        own(self.build())
    }
}

/// An array without buffers.
pub fn array(length: i64) -> Stub<ArrowArray> {
    Stub::new(ArrowArray { length, ..ArrowArray::released() })
}

impl Stub<ArrowArray> {
    pub fn nulls(mut self, null_count: i64) -> Self {
        self.raw.null_count = null_count;
        self
    }

    pub fn offset(mut self, offset: i64) -> Self {
        self.raw.offset = offset;
        self
    }

    pub fn buffer<V>(self, values: &'static [V]) -> Self {
        self.buffer_at(values.as_ptr().cast())
    }

    pub fn no_buffer(self) -> Self {
        self.buffer_at(ptr::null())
    }

    pub fn buffer_at(mut self, address: *const c_void) -> Self {
        self.buffers.push(address);
        self
    }
}

/// A schema without name and metadata.
pub fn schema(format: &'static CStr) -> Stub<ArrowSchema> {
    Stub::new(ArrowSchema { format: format.as_ptr(), ..ArrowSchema::released() })
}

impl Stub<ArrowSchema> {
    pub fn name(mut self, name: &'static CStr) -> Self {
        self.raw.name = name.as_ptr();
        self
    }

    pub fn flags(mut self, flags: i64) -> Self {
        self.raw.flags = flags;
        self
    }

    /// The bytes of the metadata, `at` bytes behind an address that is aligned to 16.
    pub fn metadata(mut self, bytes: &[u8], at: usize) -> Self {
        let (blocks, keep) = Kept::new(vec![0u128; (at + bytes.len()).div_ceil(16)].into_boxed_slice());
        // SAFETY: the blocks have room for `at` bytes and these after them.
        let place = unsafe { blocks.cast::<u8>().add(at) };
        // SAFETY: as above, and they do not overlap.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.raw.metadata = place.cast_const().cast::<c_char>();
        self.keeping(keep)
    }
}

/// An event that counts its end. A device array's `sync_event` points to the handle.
pub struct Event {
    handle: *mut c_void,
    destroyed: Counter,
}

impl Event {
    pub fn new(handle: *mut c_void, destroyed: &Counter) -> Self {
        Self { handle, destroyed: destroyed.clone() }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.destroyed.add();
    }
}

/// An array on a device. `reserved` is garbage, as pyarrow leaves it.
pub fn on_device(stub: Stub<ArrowArray>, device: Device, event: Option<Event>) -> ArrowDeviceArray {
    let (stub, sync_event) = match event {
        None => (stub, ptr::null_mut()),
        Some(event) => {
            let (event, keep) = Kept::new(Box::new(event));
            // SAFETY: just made, so valid.
            let handle = unsafe { &raw mut (*event).handle };
            (stub.keeping(keep), handle.cast())
        }
    };
    ArrowDeviceArray {
        array: stub.build(),
        device_id: device.device_id,
        device_type: device.device_type,
        sync_event,
        reserved: [i64::MIN, -1, 0x5A5A],
    }
}
