//! Python in the test's own process, under the same names in every version of pyo3, and small pieces of Python code.
#![allow(
    dead_code,
    deprecated,
    reason = "each test program uses a part; pyo3 has an old name, a new one, or both"
)]

#[path = "../../../../src/interop/pyo3/compat.rs"]
mod compat;

use std::ffi::CStr;

use pyo3::marker::Ungil;
use pyo3::types::PyAnyMethods;
use pyo3::{Bound, PyAny, PyErr, Python, ffi};

/// Runs `f` with the GIL.
pub fn attach<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
    trait Attach {
        fn attach<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R;
        fn with_gil<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R;
    }
    impl Attach for Python<'_> {
        fn attach<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
            Python::with_gil(f)
        }
        fn with_gil<R>(f: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
            Python::attach(f)
        }
    }
    Python::attach(f)
}

/// Runs `f` without the GIL.
pub fn detach<T: Ungil>(py: Python<'_>, f: impl Ungil + FnOnce() -> T) -> T {
    compat::detach(py, f)
}

/// A function of Python's own.
pub fn builtin<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyAny> {
    // SAFETY: attached; the name ends in NUL.
    let builtins = unsafe { ffi::PyImport_ImportModule(c"builtins".as_ptr()) };
    // SAFETY: a new reference, or null and an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, builtins) }.unwrap().getattr(name).unwrap()
}

/// What `name` is once `code` has run, which sees `given` as that.
pub fn run<'py>(code: &str, name: &str, given: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let globals = builtin(given.py(), "dict").call0().unwrap();
    globals.set_item("given", given).unwrap();
    builtin(given.py(), "exec").call1((code, &globals)).unwrap();
    globals.get_item(name).unwrap()
}

/// An object with one method, which takes any arguments and gives `given`.
pub fn object<'py>(method: &str, given: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    run(&format!("class Class:\n def {method}(self, *_, **__): return given\nit = Class()"), "it", given)
}

pub fn tuple<'py>(py: Python<'py>, items: &[&Bound<'py, PyAny>]) -> Bound<'py, PyAny> {
    builtin(py, "tuple").call1((items.to_vec(),)).unwrap()
}

pub fn none(py: Python<'_>) -> Bound<'_, PyAny> {
    builtin(py, "dict").call0().unwrap().call_method1("get", (0,)).unwrap()
}

/// A capsule with this name and pointer, and nothing that frees it.
pub fn capsule<'py, T>(py: Python<'py>, name: Option<&'static CStr>, pointer: *mut T) -> Bound<'py, PyAny> {
    let name = name.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: attached; the name is null or a literal.
    let capsule = unsafe { ffi::PyCapsule_New(pointer.cast(), name, None) };
    // SAFETY: a new reference, or null and an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.unwrap()
}

pub fn name_of<'a>(capsule: &'a Bound<'_, PyAny>) -> &'a CStr {
    // SAFETY: a capsule, attached.
    let name = unsafe { ffi::PyCapsule_GetName(capsule.as_ptr()) };
    assert!(!name.is_null());
    // SAFETY: ends in NUL and lives as long as the capsule.
    unsafe { CStr::from_ptr(name) }
}

/// Checks class and text of an exception.
#[track_caller]
pub fn is(error: &PyErr, class: &str, text: &str) {
    let error = error.to_string();
    assert!(error.starts_with(&format!("{class}: ")) && error.contains(text), "{error}");
}
