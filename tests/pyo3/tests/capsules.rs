//! Making capsules, taking them, and their end.

#[path = "../../common/mod.rs"]
mod common;
mod python;

use std::ffi::CStr;

use arrow_device_abi::interop::pyo3::{CapsuleStruct, from_capsule, from_capsules, to_capsule, to_capsules};
use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use arrow_device_abi::{Owned, OwnedSchema};
use common::{Bare, Counter, for_each_struct, nowhere, own};
use pyo3::types::PyAnyMethods;
use pyo3::{Bound, PyAny, PyErr, PyResult, ffi};
use python::{attach, builtin, capsule, is, name_of, tuple};

fn bare<T: Bare>(released: &Counter) -> Owned<T> {
    own(T::bare(released, true))
}

fn take<T: CapsuleStruct>(capsule: &Bound<'_, PyAny>) -> PyResult<Owned<T>> {
    // SAFETY: a capsule of the right name holds a stub.
    unsafe { from_capsule(capsule) }
}

fn take_pair(pair: &Bound<'_, PyAny>) -> PyResult<(OwnedSchema, Owned<ArrowDeviceArray>)> {
    // SAFETY: as for `take`.
    unsafe { from_capsules(pair) }
}

/// P1: one name a kind.
#[test]
fn every_capsule_has_its_name() {
    fn check<T: CapsuleStruct + Bare>(name: &CStr) {
        attach(|py| {
            let released = Counter::new();
            let capsule = to_capsule(py, bare::<T>(&released)).unwrap();
            assert_eq!(name_of(&capsule), name);
            assert_eq!(T::NAME, name);
        });
    }
    check::<ArrowSchema>(c"arrow_schema");
    check::<ArrowArray>(c"arrow_array");
    check::<ArrowArrayStream>(c"arrow_array_stream");
    check::<ArrowDeviceArray>(c"arrow_device_array");
    check::<ArrowDeviceArrayStream>(c"arrow_device_array_stream");
}

/// P3: a capsule that nobody consumed releases its struct, once, even if the callback forgets to clear itself.
#[test]
fn an_unused_capsule_releases() {
    fn check<T: CapsuleStruct + Bare>() {
        for clears_itself in [true, false] {
            let released = Counter::new();
            attach(|py| {
                let capsule = to_capsule(py, own(T::bare(&released, clears_itself))).unwrap();
                assert_eq!(released.get(), 0);
                drop(capsule);
            });
            assert_eq!(released.get(), 1);
        }
    }
    for_each_struct!(check);
}

/// P3, P4, C10: the struct moves out, and the capsule's end calls nothing. A second use is an ordinary error.
#[test]
fn a_capsule_is_consumed_once() {
    fn check<T: CapsuleStruct + Bare>() {
        let released = Counter::new();
        attach(|py| {
            let capsule = to_capsule(py, bare::<T>(&released)).unwrap();
            let taken = take::<T>(&capsule).unwrap();
            assert!(!taken.is_released());
            let error = take::<T>(&capsule).unwrap_err();
            is(&error, "ValueError", "released or was moved away, and can be used only once");
            drop(capsule);
            assert_eq!(released.get(), 0);
            drop(taken);
        });
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(check);
}

/// P4: the struct comes out as it went in, callback and all, and the one in the capsule is marked in place, as foreign
/// consumers and destructors will look at it.
#[test]
fn a_foreign_capsule_is_marked() {
    let released = Counter::new();
    let mut array = ArrowDeviceArray {
        array: ArrowArray { length: 5, offset: 2, null_count: -1, ..Bare::bare(&released, true) },
        device_id: 7,
        sync_event: nowhere(),
        reserved: [1, 2, 3],
        ..ArrowDeviceArray::released()
    };
    let (callback, private) = (array.array.release.unwrap(), array.array.private_data);
    attach(|py| {
        let taken =
            take::<ArrowDeviceArray>(&capsule(py, Some(c"arrow_device_array"), &raw mut array)).unwrap();
        let raw = taken.as_raw();
        assert_eq!((raw.array.length, raw.array.offset, raw.array.null_count), (5, 2, -1));
        assert_eq!((raw.device_id, raw.sync_event, raw.reserved), (7, nowhere(), [1, 2, 3]));
        assert!(std::ptr::fn_addr_eq(raw.array.release.unwrap(), callback));
        assert_eq!(raw.array.private_data, private);
    });
    assert!(array.is_released());
    assert_eq!((array.array.length, array.device_id), (5, 7));
    assert_eq!(released.get(), 1);
}

/// C10: the pointer behind another name is not looked at.
#[test]
fn another_name_is_refused() {
    fn check<T: CapsuleStruct + Bare>() {
        attach(|py| {
            for name in [Some(c"arrow_tensor"), Some(c""), None, Some(c"arrow_array_strea")] {
                let error = take::<T>(&capsule(py, name, nowhere())).unwrap_err();
                is(&error, "ValueError", &format!("{:?} was expected, this one's name is {name:?}", T::NAME));
            }
            let error = take::<T>(&builtin(py, "dict").call0().unwrap()).unwrap_err();
            is(&error, "TypeError", "was expected, this is <class 'dict'>");
        });
    }
    for_each_struct!(check);
}

/// P1, C10: no struct is taken for another.
#[test]
fn a_struct_of_another_kind_is_refused() {
    let released = Counter::new();
    attach(|py| {
        let host = to_capsule(py, bare::<ArrowArray>(&released)).unwrap();
        is(&take::<ArrowDeviceArray>(&host).unwrap_err(), "ValueError", "\"arrow_array\"");
        is(&take::<ArrowSchema>(&host).unwrap_err(), "ValueError", "\"arrow_array\"");
        assert_eq!(released.get(), 0);
        take::<ArrowArray>(&host).unwrap();
    });
    assert_eq!(released.get(), 1);
}

/// P4: what was given away before makes no capsule.
#[test]
fn a_released_struct_makes_no_capsule() {
    fn check<T: CapsuleStruct + Bare>() {
        let error = attach(|py| to_capsule(py, Owned::<T>::released()).unwrap_err());
        is(&error, "ValueError", "can be used only once");
    }
    for_each_struct!(check);
}

/// P1: the pair goes in and comes out.
#[test]
fn pairs() {
    let (schemas, arrays) = (Counter::new(), Counter::new());
    attach(|py| {
        // SAFETY: the array is one of this schema.
        let (schema, array) =
            unsafe { to_capsules(py, bare(&schemas), bare::<ArrowDeviceArray>(&arrays)) }.unwrap();
        let pair = tuple(py, &[&schema, &array]);
        assert_eq!((name_of(&schema), name_of(&array)), (c"arrow_schema", c"arrow_device_array"));
        drop(take_pair(&pair).unwrap());
        assert_eq!((schemas.get(), arrays.get()), (1, 1));
        is(&take_pair(&pair).unwrap_err(), "ValueError", "\"arrow_schema\"");
    });
    assert_eq!((schemas.get(), arrays.get()), (1, 1));
}

/// C10: a pair that fails half-way, whichever half, leaves the other half to be used, and leaks nothing.
#[test]
fn a_pair_is_taken_whole_or_not_at_all() {
    let (schemas, arrays) = (Counter::new(), Counter::new());
    attach(|py| {
        let schema = || to_capsule(py, bare::<ArrowSchema>(&schemas)).unwrap();
        let array = || to_capsule(py, bare::<ArrowDeviceArray>(&arrays)).unwrap();
        let used = array();
        drop(take::<ArrowDeviceArray>(&used).unwrap());
        let host = to_capsule(py, bare::<ArrowArray>(&arrays)).unwrap();
        let text = builtin(py, "str").call0().unwrap();
        for second in [&used, &host, &text] {
            let first = schema();
            take_pair(&tuple(py, &[&first, second])).unwrap_err();
            assert!(!take::<ArrowSchema>(&first).unwrap().is_released());
        }
        let used = schema();
        drop(take::<ArrowSchema>(&used).unwrap());
        for first in [&used, &text] {
            let second = array();
            take_pair(&tuple(py, &[first, &second])).unwrap_err();
            assert!(!take::<ArrowDeviceArray>(&second).unwrap().is_released());
        }
        for items in [vec![], vec![schema()], vec![schema(), array(), array()]] {
            take_pair(&tuple(py, &items.iter().collect::<Vec<_>>())).unwrap_err();
        }
        is(&take_pair(&text).unwrap_err(), "TypeError", "");
    });
    assert_eq!((schemas.get(), arrays.get()), (6, 6));
}

/// P3: half a pair that cannot be made is released.
#[test]
fn half_a_pair_is_released() {
    let released = Counter::new();
    attach(|py| {
        // SAFETY: the array is one of this schema.
        unsafe { to_capsules(py, bare(&released), Owned::<ArrowArray>::released()) }.unwrap_err();
        // SAFETY: the array is one of this schema.
        unsafe { to_capsules(py, Owned::released(), bare::<ArrowArray>(&released)) }.unwrap_err();
    });
    assert_eq!(released.get(), 2);
}

/// P3, C10: a capsule may end while an exception is on its way, and its struct's release may itself leave one. The first
/// goes on unchanged, the second goes nowhere.
#[test]
fn an_exception_in_flight_goes_on() {
    unsafe extern "C" fn raise(array: *mut ArrowArray) {
        attach(|_| {
            // SAFETY: attached; a class and a text.
            unsafe { ffi::PyErr_SetString(ffi::PyExc_KeyError, c"of the release".as_ptr()) };
        });
        // SAFETY: a live struct, whose private data is a `Counter` that outlives it.
        unsafe { (*(*array).private_data.cast::<Counter>()).add() };
        // SAFETY: valid for writes.
        unsafe { (*array).release = None };
    }
    let mut released = Counter::new();
    attach(|py| {
        for in_flight in [false, true] {
            let private_data = (&raw mut released).cast();
            let raising = ArrowArray { release: Some(raise), private_data, ..ArrowArray::released() };
            let capsule = to_capsule(py, own(raising)).unwrap();
            if in_flight {
                // SAFETY: attached; a class and a text.
                unsafe { ffi::PyErr_SetString(ffi::PyExc_OSError, c"on its way".as_ptr()) };
            }
            drop(capsule);
            let error = PyErr::take(py).map(|error| error.to_string());
            assert_eq!(error.as_deref(), in_flight.then_some("OSError: on its way"));
        }
    });
    assert_eq!(released.get(), 2);
}
