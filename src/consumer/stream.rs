//! Draining host and device streams, through one implementation.

use alloc::string::String;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::iter::FusedIterator;

use super::{Invalid, Limits};
use crate::owned::{Owned, OwnedSchema, Release};
use crate::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use crate::stream_error::StreamError;
use crate::view::SchemaView;

mod sealed {
    pub trait Sealed {}
}

type GetSchema<S> = unsafe extern "C" fn(*mut S, *mut ArrowSchema) -> c_int;
type GetNext<S> = unsafe extern "C" fn(*mut S, *mut <S as StreamStruct>::Array) -> c_int;
type GetLastError<S> = unsafe extern "C" fn(*mut S) -> *const c_char;

/// One of the two stream structs: [`ArrowArrayStream`] and [`ArrowDeviceArrayStream`].
pub trait StreamStruct: Release + sealed::Sealed {
    /// The struct that the stream yields.
    type Array: Release + fmt::Debug;

    #[doc(hidden)]
    fn get_schema(&self) -> Option<GetSchema<Self>>;
    #[doc(hidden)]
    fn get_next(&self) -> Option<GetNext<Self>>;
    #[doc(hidden)]
    fn get_last_error(&self) -> Option<GetLastError<Self>>;
    /// What the stream itself promises of every array (S1).
    #[doc(hidden)]
    fn check(&self, array: &Self::Array) -> Result<(), StreamError>;
    #[doc(hidden)]
    fn validate(array: &Owned<Self::Array>, schema: SchemaView<'_>, limits: &Limits) -> Result<(), Invalid>;
}

macro_rules! stream_struct {
    ($name:ident, $array:ident, |$stream:ident, $item:ident| $check:expr) => {
        impl sealed::Sealed for $name {}

        impl StreamStruct for $name {
            type Array = $array;

            fn get_schema(&self) -> Option<GetSchema<Self>> {
                self.get_schema
            }

            fn get_next(&self) -> Option<GetNext<Self>> {
                self.get_next
            }

            fn get_last_error(&self) -> Option<GetLastError<Self>> {
                self.get_last_error
            }

            fn check(&self, $item: &Self::Array) -> Result<(), StreamError> {
                let $stream = self;
                $check
            }

            fn validate(
                array: &Owned<$array>,
                schema: SchemaView<'_>,
                limits: &Limits,
            ) -> Result<(), Invalid> {
                array.validate(schema, limits)
            }
        }
    };
}
stream_struct!(ArrowArrayStream, ArrowArray, |_stream, _item| Ok(()));
stream_struct!(ArrowDeviceArrayStream, ArrowDeviceArray, |stream, item| {
    if item.device_type == stream.device_type {
        Ok(())
    } else {
        Err(StreamError::DeviceType { stream: stream.device_type, array: item.device_type })
    }
});

/// Drains a stream: its schema, then one array after the other
/// ([interface](https://arrow.apache.org/docs/format/CStreamInterface.html)).
///
/// Owns the stream and releases it when dropped, also early. Schema and arrays that it gave out live on (S6). Can be
/// sent to another thread, not shared between threads: calls are made one at a time (S7).
///
/// As an [`Iterator`] it yields each array, or the one error that ends it.
#[derive(Debug)]
pub struct StreamReader<S: StreamStruct> {
    stream: Owned<S>,
    done: bool,
}

/// Drains an [`ArrowArrayStream`].
pub type ArrayStreamReader = StreamReader<ArrowArrayStream>;
/// Drains an [`ArrowDeviceArrayStream`].
pub type DeviceArrayStreamReader = StreamReader<ArrowDeviceArrayStream>;

impl<S: StreamStruct> StreamReader<S> {
    /// Starts to read; calls nothing yet.
    #[must_use]
    pub const fn new(stream: Owned<S>) -> Self {
        Self { stream, done: false }
    }

    /// The schema of all arrays, in host memory (S8). Can be asked for at any time, also after the end.
    ///
    /// # Errors
    ///
    /// A [`StreamError`]; the stream can be read on.
    pub fn schema(&mut self) -> Result<OwnedSchema, StreamError> {
        let get_schema = self.stream.as_raw().get_schema();
        let mut schema = OwnedSchema::released();
        self.call("get_schema", get_schema, &mut schema)?;
        if schema.is_released() { Err(StreamError::ReleasedSchema) } else { Ok(schema) }
    }

    /// The next array, or `None` at the end and ever after.
    ///
    /// # Errors
    ///
    /// A [`StreamError`]; after that there is nothing more, only `None`.
    pub fn next_array(&mut self) -> Result<Option<Owned<S::Array>>, StreamError> {
        self.next().transpose()
    }

    /// The next array into `array`, whose old contents are released first: [`next_array`](Self::next_array) without
    /// moving the struct around, for streams of very small batches.
    ///
    /// `false` is the end; `array` is released then, as after an error.
    ///
    /// # Errors
    ///
    /// As [`next_array`](Self::next_array).
    pub fn read_into(&mut self, array: &mut Owned<S::Array>) -> Result<bool, StreamError> {
        array.release();
        if self.done {
            return Ok(false);
        }
        let more = self.get_next(array);
        if !matches!(more, Ok(true)) {
            self.done = true;
        }
        more
    }

    fn get_next(&mut self, array: &mut Owned<S::Array>) -> Result<bool, StreamError> {
        let get_next = self.stream.as_raw().get_next();
        self.call("get_next", get_next, array)?;
        if array.is_released() {
            return Ok(false);
        }
        // An array that breaks the stream's promise does not get further than here.
        self.stream.as_raw().check(array.as_raw()).inspect_err(|_| array.release()).map(|()| true)
    }

    /// The stream, as far as it has been read.
    #[must_use]
    pub fn into_inner(self) -> Owned<S> {
        self.stream
    }

    /// Calls one of the callbacks that fill an out-struct: `out`, which holds nothing, and still does after a failure.
    #[inline]
    fn call<T: Release>(
        &mut self,
        name: &'static str,
        callback: Option<unsafe extern "C" fn(*mut S, *mut T) -> c_int>,
        out: &mut Owned<T>,
    ) -> Result<(), StreamError> {
        if self.stream.is_released() {
            return Err(StreamError::Released);
        }
        let Some(callback) = callback else {
            return Err(StreamError::MissingCallback { callback: name });
        };
        // Zeroed for producers that look before they write (C5).
        out.forget();
        // SAFETY: the stream is live and `&mut self` serialises its calls; `out` is valid for writes. On success it is
        // released, or a live struct that is now ours: it may be used from any thread because the stream may, and
        // schema and arrays do not hang on it (S6).
        let code = unsafe { callback(self.stream.as_mut_ptr(), out.as_mut_ptr()) };
        if code == 0 {
            return Ok(());
        }
        // The return code alone decides; whatever was left in `out` is not ours to read or release.
        out.forget();
        Err(self.failure(name, code))
    }

    #[cold]
    fn failure(&mut self, callback: &'static str, code: c_int) -> StreamError {
        StreamError::Failed { callback, code, message: self.last_error() }
    }

    /// The text of the failure that the last callback reported (S4).
    fn last_error(&mut self) -> Option<String> {
        let get_last_error = self.stream.as_raw().get_last_error()?;
        if self.stream.is_released() {
            // The callback that failed has released its own stream, and S2 holds for what is released.
            return None;
        }
        // SAFETY: the stream is live, `&mut self` serialises its calls, and its last callback failed.
        let message = unsafe { get_last_error(self.stream.as_mut_ptr()) };
        if message.is_null() {
            return None;
        }
        // SAFETY: not null, so it ends in NUL and is valid until the next callback; it is copied before that.
        Some(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned())
    }
}

impl DeviceArrayStreamReader {
    /// Type of the device that every array is on (S1).
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.stream.as_raw().device_type
    }
}

impl<S: StreamStruct> From<Owned<S>> for StreamReader<S> {
    fn from(stream: Owned<S>) -> Self {
        Self::new(stream)
    }
}

impl<S: StreamStruct> Iterator for StreamReader<S> {
    type Item = Result<Owned<S::Array>, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut array = Owned::released();
        match self.read_into(&mut array) {
            Ok(true) => Some(Ok(array)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl<S: StreamStruct> FusedIterator for StreamReader<S> {}
