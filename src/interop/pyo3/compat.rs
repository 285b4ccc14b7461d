//! What pyo3 renamed in 0.26, for every version.
//!
//! A method of pyo3's own goes before one of a trait. So each pair of names is a trait too, in which one stands for the
//! other: of the two that are called, one at least is pyo3's.

use pyo3::Python;
use pyo3::marker::Ungil;

/// Runs `f` without the GIL.
#[allow(deprecated, dead_code, reason = "pyo3 has the one name, the other, or both")]
pub(super) fn detach<T: Ungil>(py: Python<'_>, f: impl Ungil + FnOnce() -> T) -> T {
    trait Detach: Sized {
        fn detach<T: Ungil>(self, f: impl Ungil + FnOnce() -> T) -> T;
        fn allow_threads<T: Ungil>(self, f: impl Ungil + FnOnce() -> T) -> T;
    }
    impl Detach for Python<'_> {
        fn detach<T: Ungil>(self, f: impl Ungil + FnOnce() -> T) -> T {
            self.allow_threads(f)
        }
        fn allow_threads<T: Ungil>(self, f: impl Ungil + FnOnce() -> T) -> T {
            self.detach(f)
        }
    }
    py.detach(f)
}

/// A token, out of nothing.
///
/// # Safety
///
/// - This thread holds the GIL as long as the token is used.
#[allow(deprecated, dead_code, reason = "pyo3 has the one name, the other, or both")]
pub(super) unsafe fn assume_attached<'py>() -> Python<'py> {
    trait Assume {
        unsafe fn assume_attached() -> Self;
        unsafe fn assume_gil_acquired() -> Self;
    }
    impl<'py> Assume for Python<'py> {
        unsafe fn assume_attached() -> Self {
            // SAFETY: as the caller promises.
            unsafe { Python::<'py>::assume_gil_acquired() }
        }
        unsafe fn assume_gil_acquired() -> Self {
            // SAFETY: as the caller promises.
            unsafe { Python::<'py>::assume_attached() }
        }
    }
    // SAFETY: as the caller promises.
    unsafe { Python::assume_attached() }
}
