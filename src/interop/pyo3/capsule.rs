//! Capsules: a struct in a box, under the name that the protocol gives its kind (P1).

use alloc::boxed::Box;
use alloc::format;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::PyAnyMethods;
use pyo3::{Bound, PyAny, PyErr, PyResult, Python, ffi};

use super::compat::{assume_attached, detach};
use crate::owned::{Owned, OwnedSchema, Release, TakeError};
use crate::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};

mod sealed {
    pub trait Sealed {}
}

/// One of the five structs that travel in capsules.
pub trait CapsuleStruct: Release + sealed::Sealed {
    /// Name of the capsules that hold it.
    const NAME: &'static CStr;

    /// Where the release callback stands.
    ///
    /// # Safety
    ///
    /// - `this` is valid for reads and writes, and aligned.
    #[doc(hidden)]
    unsafe fn callback(this: *mut Self) -> *mut *mut c_void;

    /// Releases and frees without holding the GIL.
    #[doc(hidden)]
    fn drop_detached(py: Python<'_>, owned: Box<Owned<Self>>);
}

/// A struct that travels with its schema, as a pair of capsules.
pub trait CapsuleArray: CapsuleStruct {}

macro_rules! capsule_struct {
    ($($name:ident $(. $inner:ident)?, $capsule:literal;)+) => { $(
        impl sealed::Sealed for $name {}

        impl CapsuleStruct for $name {
            const NAME: &'static CStr = $capsule;

            unsafe fn callback(this: *mut Self) -> *mut *mut c_void {
                // SAFETY: valid, as the caller promises, and so are its fields.
                let release = unsafe { &raw mut (*this)$(.$inner)?.release };
                release.cast()
            }

            fn drop_detached(py: Python<'_>, owned: Box<Owned<Self>>) {
                detach(py, move || drop(owned));
            }
        }
    )+ };
}
capsule_struct!(
    ArrowSchema, c"arrow_schema";
    ArrowArray, c"arrow_array";
    ArrowArrayStream, c"arrow_array_stream";
    ArrowDeviceArray.array, c"arrow_device_array";
    ArrowDeviceArrayStream, c"arrow_device_array_stream";
);
impl CapsuleArray for ArrowArray {}
impl CapsuleArray for ArrowDeviceArray {}

/// Puts a struct into a new capsule, whose first consumer moves it out.
///
/// If nobody does, the capsule's end releases it (P3), without the GIL: its release may wait for threads that need it,
/// and is one that may be called on any thread. An exception that is being raised meanwhile stays as it is.
///
/// # Errors
///
/// `ValueError` if the struct is released, as one is that was given away before; `MemoryError`. The struct is released
/// then.
pub fn to_capsule<T: CapsuleStruct>(py: Python<'_>, owned: Owned<T>) -> PyResult<Bound<'_, PyAny>> {
    if owned.is_released() {
        return Err(consumed::<T>());
    }
    let place = Box::into_raw(Box::new(owned));
    // SAFETY: attached, as `py` shows; the pointer is not null, the name is static, the destructor is for this type.
    let capsule = unsafe { ffi::PyCapsule_New(place.cast(), T::NAME.as_ptr(), Some(destroy::<T>)) };
    if capsule.is_null() {
        let error = PyErr::fetch(py);
        // SAFETY: made from a box above, and no capsule has it.
        T::drop_detached(py, unsafe { Box::from_raw(place) });
        return Err(error);
    }
    // SAFETY: a new object, of which this is the only reference.
    Ok(unsafe { Bound::from_owned_ptr(py, capsule) })
}

/// The end of a capsule of ours.
#[allow(deprecated, reason = "what replaces these two is not in Python before 3.12")]
unsafe extern "C" fn destroy<T: CapsuleStruct>(capsule: *mut ffi::PyObject) {
    // Whatever name it has by now: it is the struct of `to_capsule` still.
    // SAFETY: Python calls this for a live capsule, attached.
    let name = unsafe { ffi::PyCapsule_GetName(capsule) };
    // SAFETY: as above, with the capsule's own name, so that no exception is raised.
    let place = unsafe { ffi::PyCapsule_GetPointer(capsule, name) };
    if place.is_null() {
        return;
    }
    // SAFETY: `to_capsule` made it from a box of this type (`Owned` is its struct, to consumers), and it ends here.
    let owned = unsafe { Box::from_raw(place.cast::<Owned<T>>()) };
    if owned.is_released() {
        return;
    }
    let mut pending = [ptr::null_mut(); 3];
    let [kind, value, traceback] = &mut pending;
    // SAFETY: attached; three places to write to.
    unsafe { ffi::PyErr_Fetch(kind, value, traceback) };
    // SAFETY: Python called this attached, and the token ends before that does.
    T::drop_detached(unsafe { assume_attached() }, owned);
    let [kind, value, traceback] = pending;
    // What the release left behind goes, what was there before comes back, which may be nothing.
    // SAFETY: attached; the three are as `PyErr_Fetch` gave them, and are given away.
    unsafe { ffi::PyErr_Restore(kind, value, traceback) };
}

/// The struct in a capsule of the right name, if it has not been taken.
///
/// # Safety
///
/// - As for `from_capsule`.
unsafe fn place<T: CapsuleStruct>(capsule: &Bound<'_, PyAny>) -> PyResult<*mut T> {
    let object = capsule.as_ptr();
    // SAFETY: a live object, attached as `capsule` shows; the name ends in NUL.
    if unsafe { ffi::PyCapsule_IsValid(object, T::NAME.as_ptr()) } == 0 {
        return Err(unexpected::<T>(capsule));
    }
    // SAFETY: as above, and it is a capsule of this name.
    let place = unsafe { ffi::PyCapsule_GetPointer(object, T::NAME.as_ptr()) }.cast::<T>();
    // SAFETY: no capsule's pointer is null, and one of this name points to such a struct, as the caller promises.
    let callback = unsafe { release_of(place) };
    if callback.load(Ordering::Acquire).is_null() { Err(consumed::<T>()) } else { Ok(place) }
}

fn unexpected<T: CapsuleStruct>(object: &Bound<'_, PyAny>) -> PyErr {
    // SAFETY: a live object.
    if unsafe { ffi::PyCapsule_CheckExact(object.as_ptr()) } == 0 {
        let class = object.get_type();
        return PyTypeError::new_err(format!("a capsule named {:?} was expected, this is {class}", T::NAME));
    }
    // SAFETY: a capsule, attached as `object` shows.
    let name = unsafe { ffi::PyCapsule_GetName(object.as_ptr()) };
    // SAFETY: not null, so it ends in NUL and lives as long as the capsule.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    PyValueError::new_err(format!("a capsule named {:?} was expected, this one's name is {name:?}", T::NAME))
}

/// What a second consumer gets to hear.
fn consumed<T: CapsuleStruct>() -> PyErr {
    PyValueError::new_err(format!("{:?}: {}, and can be used only once", T::NAME, TakeError::Released))
}

/// The release callback of a struct that more than one thread may reach.
///
/// # Safety
///
/// - `place` is valid for reads and writes for `'a`, aligned, and holds a struct, live or released.
/// - During `'a` its callback is changed through this function only, or by who holds the GIL.
unsafe fn release_of<'a, T: CapsuleStruct>(place: *mut T) -> &'a AtomicPtr<c_void> {
    // SAFETY: as the caller promises.
    let callback = unsafe { T::callback(place) };
    // SAFETY: valid and aligned; whatever else changes it does not do so at the same time.
    unsafe { AtomicPtr::from_ptr(callback) }
}

/// Moves the struct at `place` out and marks it there (P4), unless another thread was first.
///
/// As [`Owned::take`], which must not be called on two threads at once: without a GIL any two that have the capsule may
/// come here at the same time, and one of them swaps the callback for null. The other may be in another extension
/// module, with a copy of this crate of its own.
///
/// # Safety
///
/// - As for `release_of`; the struct obeys the C interface and may be used from any thread.
unsafe fn claim<T: CapsuleStruct>(place: *mut T) -> PyResult<Owned<T>> {
    // SAFETY: as the caller promises.
    let callback = unsafe { release_of(place) };
    let release = callback.load(Ordering::Acquire);
    let take = || callback.compare_exchange(release, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed);
    if release.is_null() || take().is_err() {
        return Err(consumed::<T>());
    }
    // SAFETY: valid and initialised. Only one thread gets the callback and comes here; those that do not have only read
    // it.
    let mut taken = unsafe { ptr::read(place) };
    // SAFETY: a struct of this function's own.
    let callback = unsafe { T::callback(&raw mut taken) };
    // SAFETY: the callback goes back to its field, which is of one size with a pointer, and null for none.
    unsafe { callback.write(release) };
    // SAFETY: live, and the original is marked, so that this is its only owner.
    Ok(unsafe { Owned::adopt(taken) })
}

/// Moves the struct out of a capsule.
///
/// The capsule stays, holding a released struct: it is consumed, before anything can fail (P4). Two threads that try at
/// once are no danger with Python's GIL or without: one of them gets the struct.
///
/// # Errors
///
/// `TypeError` if it is no capsule; `ValueError` if its name is not [`T::NAME`](CapsuleStruct::NAME), and its pointer
/// was not looked at then, or if it is consumed (C10).
///
/// # Safety
///
/// If the capsule's name is `T::NAME`:
/// - it points to a struct of that kind, released or live and obeying the C interface, as the protocol promises of
///   every capsule of that name;
/// - the struct may be used and its callbacks called from any thread, for a stream from one at a time;
/// - on a Python without GIL no consumer of another make takes the same capsule at the same time.
pub unsafe fn from_capsule<T: CapsuleStruct>(capsule: &Bound<'_, PyAny>) -> PyResult<Owned<T>> {
    // SAFETY: as the caller promises.
    let place = unsafe { place::<T>(capsule) }?;
    // SAFETY: a struct of the kind that the name says, as the caller promises; the capsule keeps it.
    unsafe { claim(place) }
}

/// Puts an array and its schema into the pair of capsules that `__arrow_c_array__` and `__arrow_c_device_array__`
/// return, as the type of the array says (P1).
///
/// # Errors
///
/// As [`to_capsule`]; both structs are released then.
///
/// # Safety
///
/// - `array` is one of `schema` (D15), by which whoever takes the pair will read its buffers.
pub unsafe fn to_capsules<A: CapsuleArray>(
    py: Python<'_>,
    schema: OwnedSchema,
    array: Owned<A>,
) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    match to_capsule(py, schema) {
        Ok(schema) => Ok((schema, to_capsule(py, array)?)),
        Err(error) => {
            A::drop_detached(py, Box::new(array));
            Err(error)
        }
    }
}

/// Moves schema and array out of a pair of capsules, both or neither.
///
/// # Errors
///
/// As [`from_capsule`], for either of them, and neither is consumed then; `TypeError` or `ValueError` if it is no tuple
/// of two. If another thread takes one of the two at the same time, the other is released.
///
/// # Safety
///
/// - As for [`from_capsule`], for both.
pub unsafe fn from_capsules<A: CapsuleArray>(pair: &Bound<'_, PyAny>) -> PyResult<(OwnedSchema, Owned<A>)> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
    // Not even the first is moved unless both can be.
    // SAFETY: as the caller promises.
    let schema_place = unsafe { place::<ArrowSchema>(&schema) }?;
    // SAFETY: as the caller promises.
    let array_place = unsafe { place::<A>(&array) }?;
    // SAFETY: structs of these kinds, as the caller promises, which the capsules keep.
    let schema = unsafe { claim(schema_place) }?;
    // SAFETY: as above.
    match unsafe { claim(array_place) } {
        Ok(array) => Ok((schema, array)),
        Err(error) => {
            ArrowSchema::drop_detached(pair.py(), Box::new(schema));
            Err(error)
        }
    }
}
