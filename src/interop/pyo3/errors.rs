//! The crate's errors as Python's.

use alloc::string::{String, ToString};
use core::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};

use crate::consumer::{NotHostReady, SyncError, SyncErrorKind};
use crate::device::UnexpectedEvent;
use crate::errno::{EINVAL, ENOMEM};
use crate::owned::TakeError;
use crate::producer::{ExportError, ExportErrorKind};
use crate::stream_error::StreamError;
use crate::view::ViewError;

/// `MemoryError` for `ENOMEM`, `OSError` with its `errno` for any other code of a producer but `EINVAL`; `ValueError`
/// for that, and for what this crate found.
impl From<StreamError> for PyErr {
    fn from(error: StreamError) -> Self {
        let text = error.to_string();
        match error.errno() {
            EINVAL => PyValueError::new_err(text),
            ENOMEM => PyMemoryError::new_err(text),
            code => PyOSError::new_err((code, text)),
        }
    }
}

/// `MemoryError` if there is none left, else `ValueError`.
impl From<ExportErrorKind> for PyErr {
    fn from(error: ExportErrorKind) -> Self {
        let text = error.to_string();
        if error == ExportErrorKind::OutOfMemory {
            PyMemoryError::new_err(text)
        } else {
            PyValueError::new_err(text)
        }
    }
}

/// As its kind; the keep-alive is dropped.
impl<K> From<ExportError<K>> for PyErr {
    fn from(error: ExportError<K>) -> Self {
        error.kind.into()
    }
}

/// `RuntimeError` if the waiter failed, else `ValueError`; the array is released where the error is converted, so convert
/// it within [`Python::detach`](pyo3::Python::detach) if its release may wait for others that need the GIL.
impl<E: Display> From<SyncError<E>> for PyErr {
    fn from(error: SyncError<E>) -> Self {
        let text = error.to_string();
        match error.kind {
            SyncErrorKind::Wait(_) => PyRuntimeError::new_err(text),
            SyncErrorKind::Released | SyncErrorKind::UnexpectedEvent(_) => PyValueError::new_err(text),
        }
    }
}

macro_rules! raised_as {
    ($($error:ident: $exception:ident, $doc:literal;)+) => { $(
        #[doc = $doc]
        impl From<$error> for PyErr {
            fn from(error: $error) -> Self {
                $exception::new_err::<String>(error.to_string())
            }
        }
    )+ };
}
raised_as!(
    ViewError: PyValueError, "`ValueError`.";
    TakeError: PyValueError, "`ValueError`.";
    UnexpectedEvent: PyValueError, "`ValueError`.";
    NotHostReady: PyBufferError, "`BufferError`; the array is released, as that of a [`SyncError`] is.";
);
