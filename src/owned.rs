//! The only owner, and the only `Drop`.

use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;

use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};

/// A C struct with a release callback: null once released or moved away.
///
/// Implemented for the five releasable structs of the C interfaces.
///
/// # Safety
///
/// [`Owned`] believes every implementation:
/// - `released` gives a struct that holds nothing, for which `is_released` is true;
/// - `is_released` is true exactly if there is no callback left to call, and reads nothing but the struct itself;
/// - `mark_released` makes `is_released` true and frees nothing;
/// - the struct can be moved by copying its bytes (B6), and `Self` has no `Drop`.
pub unsafe trait Release: Sized {
    /// A struct that holds nothing.
    fn released() -> Self;

    /// Whether there is nothing to release.
    fn is_released(&self) -> bool;

    /// Makes the struct a released one without calling anything, as after its bytes were copied elsewhere.
    fn mark_released(&mut self);

    /// Calls the release callback, if there is one, and leaves a released struct even if the callback does not.
    ///
    /// # Safety
    ///
    /// - `this` is valid for reads and writes, aligned and initialised.
    /// - If it has a callback, the struct is a live one that obeys the C interface, the caller owns it, and nothing
    ///   that it gave out is used any more.
    unsafe fn release(this: *mut Self);
}

macro_rules! impl_release {
    ($($name:ident $(. $inner:ident)?),+ $(,)?) => { $(
        // SAFETY: `release` of these structs is the callback and null means released (D16 for the device array,
        // whose callback is that of its `array`); they move by copy (B6), and `raw` proves that none has a `Drop`.
        unsafe impl Release for $name {
            fn released() -> Self {
                Self::released()
            }

            fn is_released(&self) -> bool {
                self.is_released()
            }

            fn mark_released(&mut self) {
                self$(.$inner)?.release = None;
            }

            #[inline]
            unsafe fn release(this: *mut Self) {
                // SAFETY: valid and initialised, as the caller promises. Raw pointers throughout: while foreign code
                // runs, no reference of ours claims the struct.
                unsafe {
                    let inner = &raw mut (*this)$(.$inner)?;
                    if let Some(release) = (*inner).release {
                        release(inner);
                        (*inner).release = None;
                    }
                }
            }
        }
    )+ };
}
impl_release!(ArrowSchema, ArrowArray, ArrowArrayStream, ArrowDeviceArray.array, ArrowDeviceArrayStream);

/// The owner of a C struct: releases it when dropped, once.
///
/// Made by `unsafe` functions only, whose contract is the specification's; everything else is safe because of it.
/// The five aliases are [`OwnedSchema`], [`OwnedArray`], [`OwnedArrayStream`], [`OwnedDeviceArray`] and
/// [`OwnedDeviceArrayStream`].
///
/// An `Owned` may hold a released struct, [from the start](Self::released) or because C moved the contents out through
/// [`as_mut_ptr`](Self::as_mut_ptr); dropping it then does nothing.
///
/// Arrays and schemas are `Send` and `Sync`, streams `Send` only: their calls have to be made one at a time (S7).
#[repr(transparent)]
pub struct Owned<T: Release>(T);

/// Owner of an [`ArrowSchema`].
pub type OwnedSchema = Owned<ArrowSchema>;
/// Owner of an [`ArrowArray`].
pub type OwnedArray = Owned<ArrowArray>;
/// Owner of an [`ArrowArrayStream`].
pub type OwnedArrayStream = Owned<ArrowArrayStream>;
/// Owner of an [`ArrowDeviceArray`], with its event.
pub type OwnedDeviceArray = Owned<ArrowDeviceArray>;
/// Owner of an [`ArrowDeviceArrayStream`].
pub type OwnedDeviceArrayStream = Owned<ArrowDeviceArrayStream>;

impl<T: Release> Owned<T> {
    /// Moves the struct at `src` out and marks `src` as released
    /// ([moving](https://arrow.apache.org/docs/format/CDataInterface.html#moving-an-array), B6, D13).
    ///
    /// Afterwards the `Owned` is the owner; the memory at `src` stays the caller's (D12) and holds a released struct.
    /// `src` is marked before anything can fail, so that it is never owned twice.
    ///
    /// # Errors
    ///
    /// [`TakeError::Null`] if `src` is null, [`TakeError::Released`] if it holds nothing live. `src` is as it was.
    ///
    /// # Safety
    ///
    /// If `src` is not null:
    /// - it is [valid](ptr#safety) for reads and writes, aligned and initialised; `reserved` and padding may hold
    ///   anything;
    /// - if its release callback is not null, it is a live struct that obeys the C interface of its kind;
    /// - nobody else releases, moves or uses it during the call or afterwards;
    /// - the struct may be used and its callbacks called from any thread, for a stream from one at a time.
    pub unsafe fn take(src: *mut T) -> Result<Self, TakeError> {
        let mut taken = MaybeUninit::uninit();
        // SAFETY: `src` is as the caller promises, and `taken` is valid for writes.
        unsafe { Self::move_between(src, taken.as_mut_ptr()) }?;
        // SAFETY: the move succeeded, so it wrote a live struct, and its source is released.
        Ok(Self(unsafe { taken.assume_init() }))
    }

    /// Moves the struct at `src` to `dst` and marks `src` as released, with no owner in between.
    ///
    /// Afterwards whoever owns the memory at `dst` has to release the struct. What was there is overwritten without
    /// being read or released.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take); `src` and `dst` are as they were.
    ///
    /// # Safety
    ///
    /// - For `src` as for [`take`](Self::take).
    /// - `dst` is [valid](ptr#safety) for writes, aligned, and does not overlap `src`. It need not be initialised.
    pub unsafe fn move_between(src: *mut T, dst: *mut T) -> Result<(), TakeError> {
        if src.is_null() {
            return Err(TakeError::Null);
        }
        // SAFETY: `src` is valid for reads, as the caller promises, and null `release` makes no further claim.
        if unsafe { (*src).is_released() } {
            return Err(TakeError::Released);
        }
        // SAFETY: valid for one struct and without overlap, as the caller promises. There are two owners only until
        // the original is marked, and nothing can fail before that.
        unsafe { ptr::copy_nonoverlapping(src, dst, 1) };
        // SAFETY: `src` is valid for reads and writes, and nobody else uses it during the call.
        unsafe { (*src).mark_released() };
        Ok(())
    }

    /// Becomes the owner of a struct held by value.
    ///
    /// # Errors
    ///
    /// [`TakeError::Released`] if it holds nothing live.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take): the struct is released, or it is a live one that obeys the C interface of its
    /// kind, may be used from any thread (a stream from one at a time), and no other copy of it is used or released.
    pub unsafe fn from_raw(raw: T) -> Result<Self, TakeError> {
        if raw.is_released() { Err(TakeError::Released) } else { Ok(Self(raw)) }
    }

    /// An owner of nothing, for functions that fill one in.
    #[must_use]
    pub fn released() -> Self {
        Self(T::released())
    }

    /// [`from_raw`](Self::from_raw) without the question.
    ///
    /// # Safety
    ///
    /// - As for [`from_raw`](Self::from_raw).
    pub(crate) unsafe fn adopt(raw: T) -> Self {
        Self(raw)
    }

    /// Gives the struct up, live, to be released by whoever gets it.
    #[must_use = "dropping the raw struct leaks what its producer holds"]
    pub fn into_raw(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so the copy is the only owner.
        unsafe { ptr::read(&raw const this.0) }
    }

    /// Moves the struct to `dst`, whose owner releases it from then on.
    ///
    /// What was at `dst` is overwritten without being read or released: C gives out-structs uninitialised.
    ///
    /// # Safety
    ///
    /// - `dst` is [valid](ptr#safety) for writes and aligned. It need not be initialised.
    /// - It holds no live struct, or its loss is meant.
    pub unsafe fn export_to(self, dst: *mut T) {
        // SAFETY: valid for writes as the caller promises; `write` neither reads nor drops what is there.
        unsafe { dst.write(self.into_raw()) }
    }

    /// The struct, to read. Its fields are as public as in C, and what they point to is only for `unsafe` code.
    #[must_use]
    pub fn as_raw(&self) -> &T {
        &self.0
    }

    /// A pointer to lend to C, which may move the contents out by the specification's rules; the pointer is valid
    /// while `self` is borrowed.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        &raw mut self.0
    }

    /// Releases what is held, if anything, and holds nothing afterwards.
    pub fn release(&mut self) {
        // SAFETY: `self.0` is either released, or live and ours by the contract of `take` and `from_raw`; `&mut` means
        // that nothing borrows from it, and afterwards it is released.
        unsafe { T::release(&raw mut self.0) };
    }

    /// Lets go of what is held without releasing it, and holds nothing, zeroes, afterwards.
    pub(crate) fn forget(&mut self) {
        self.0 = T::released();
    }

    /// Whether nothing is held: it was [made so](Self::released), or C moved it out.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.0.is_released()
    }
}

impl<T: Release> Default for Owned<T> {
    fn default() -> Self {
        Self::released()
    }
}

impl<T: Release> Drop for Owned<T> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<T: Release + fmt::Debug> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owned").field(&self.0).finish()
    }
}

macro_rules! cross_threads {
    ($($name:ident),+) => { $(
        // SAFETY: `take` made its caller promise that the struct may be used and released on any thread.
        unsafe impl Send for Owned<$name> {}
    )+ };
}
cross_threads!(ArrowSchema, ArrowArray, ArrowDeviceArray, ArrowArrayStream, ArrowDeviceArrayStream);

macro_rules! share_between_threads {
    ($($name:ident),+) => { $(
        // SAFETY: these structs have no callback but release, which needs `&mut`; through a shared reference there
        // are only reads of immutable data (D14).
        unsafe impl Sync for Owned<$name> {}
    )+ };
}
share_between_threads!(ArrowSchema, ArrowArray, ArrowDeviceArray);

assert_impl_all!(OwnedSchema: Send, Sync);
assert_impl_all!(OwnedArray: Send, Sync);
assert_impl_all!(OwnedDeviceArray: Send, Sync);
assert_impl_all!(OwnedArrayStream: Send);
assert_impl_all!(OwnedDeviceArrayStream: Send);
assert_not_impl_any!(OwnedArrayStream: Sync);
assert_not_impl_any!(OwnedDeviceArrayStream: Sync);
assert_not_impl_any!(OwnedSchema: Copy, Clone);
assert_not_impl_any!(OwnedArray: Copy, Clone);
assert_not_impl_any!(OwnedDeviceArray: Copy, Clone);
assert_not_impl_any!(OwnedArrayStream: Copy, Clone);
assert_not_impl_any!(OwnedDeviceArrayStream: Copy, Clone);

/// Why a struct could not be taken; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeError {
    /// The pointer is null.
    Null,
    /// The struct is released: its release callback is null, so there is nothing to own.
    Released,
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "the pointer to the struct is null",
            Self::Released => "the struct is released or was moved away",
        })
    }
}

impl core::error::Error for TakeError {}
