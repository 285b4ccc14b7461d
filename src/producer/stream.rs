//! Streams out of iterators.

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::ToString;
use core::ffi::{CStr, c_char, c_int};
use core::{fmt, ptr};

use crate::errno::{EINVAL, EIO, ENOMEM};
use crate::owned::{
    Owned, OwnedArray, OwnedArrayStream, OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema, Release,
};
use crate::panics::{Panic, contain};
use crate::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use crate::stream_error::StreamError;

/// Why a stream failed: the code that its callback returns, and the text that `get_last_error` gives.
///
/// Any error converts into one with its text. Its code is the one of the first among the error and its sources that has
/// one: a [`StreamError`] that is passed on, or with feature `std` a
/// [`std::io::Error`](https://doc.rust-lang.org/std/io/struct.Error.html); else it is [`EIO`]. For another code, make it
/// with [`new`](Self::new).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFailure {
    code: c_int,
    message: CString,
}

impl StreamFailure {
    /// A failure with this code, which is [`EIO`] if `code` is 0, since 0 would be success (B10).
    ///
    /// A NUL byte in `message` would end it for C: it is replaced.
    #[must_use]
    pub fn new(code: c_int, message: &str) -> Self {
        let message = CString::new(message)
            .or_else(|_| CString::new(message.replace('\0', "\u{fffd}")))
            .unwrap_or_default();
        Self { code: if code == 0 { EIO } else { code }, message }
    }

    /// The code.
    #[must_use]
    pub const fn code(&self) -> c_int {
        self.code
    }

    /// The text.
    #[must_use]
    pub fn message(&self) -> &CStr {
        &self.message
    }
}

impl<E: core::error::Error + 'static> From<E> for StreamFailure {
    fn from(error: E) -> Self {
        Self::new(code_of(&error), &error.to_string())
    }
}

impl fmt::Display for StreamFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}: {}", self.code, self.message.to_string_lossy())
    }
}

fn code_of(error: &(dyn core::error::Error + 'static)) -> c_int {
    let mut causes = core::iter::successors(Some(error), |error| error.source());
    causes
        .find_map(|cause| match cause.downcast_ref::<StreamError>() {
            Some(error) => Some(error.errno()),
            None => code_of_io(cause),
        })
        .unwrap_or(EIO)
}

#[cfg(feature = "std")]
fn code_of_io(error: &(dyn core::error::Error + 'static)) -> Option<c_int> {
    use std::io;
    let error = error.downcast_ref::<io::Error>()?;
    Some(error.raw_os_error().unwrap_or_else(|| match error.kind() {
        io::ErrorKind::OutOfMemory => ENOMEM,
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => EINVAL,
        _ => EIO,
    }))
}

#[cfg(not(feature = "std"))]
fn code_of_io(_: &(dyn core::error::Error + 'static)) -> Option<c_int> {
    None
}

impl From<Panic> for StreamFailure {
    fn from(panic: Panic) -> Self {
        Self::new(EIO, &format!("the producer of the stream panicked: {}", panic.text()))
    }
}

/// One of the two stream structs, as a producer sees it.
pub(super) trait Produced: Release + 'static {
    type Array: Release;

    /// A live struct with the callbacks of `source`, which it owns.
    fn over<I>(source: Box<Source<Self, I>>) -> Self
    where
        I: Iterator<Item = Item<Self>> + Send + 'static;

    /// Where the struct's `Source` is.
    fn source<I>(&self) -> *mut Source<Self, I>;

    /// Whether `array` may leave a stream of this device type (S1).
    fn admit(device_type: ArrowDeviceType, array: &Self::Array) -> Result<(), StreamFailure>;
}

pub(super) type Item<S> = Result<Owned<<S as Produced>::Array>, StreamFailure>;

/// What a produced stream holds.
pub(super) struct Source<S: ?Sized, I> {
    device_type: ArrowDeviceType,
    schema: OwnedSchema,
    /// Gone after the end or a failure.
    items: Option<I>,
    /// What ended the stream, to be reported ever after: a consumer that asks again must not see an ordinary end.
    failed: Option<StreamFailure>,
    /// What the last callback reported, alive until the next one (S4).
    last: Option<StreamFailure>,
    stream: core::marker::PhantomData<fn(S)>,
}

impl<S: Produced, I: Iterator<Item = Item<S>>> Source<S, I> {
    fn next(&mut self) -> Result<Option<Owned<S::Array>>, StreamFailure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        let next = self.items.as_mut().map_or(Ok(None), |items| {
            let item = contain(|| items.next())?.transpose()?;
            item.map(|array| S::admit(self.device_type, array.as_raw()).map(|()| array)).transpose()
        });
        if !matches!(next, Ok(Some(_))) {
            let items = self.items.take();
            // The stream is over either way: a panic of the iterator's `Drop` has nobody left to tell.
            contain(|| drop(items)).ok();
        }
        self.failed = next.as_ref().err().cloned();
        next
    }

    fn schema(&self) -> Result<OwnedSchema, StreamFailure> {
        self.schema.try_clone().map_err(|kind| {
            let code = if kind == super::ExportErrorKind::OutOfMemory { ENOMEM } else { EINVAL };
            StreamFailure::new(code, &kind.to_string())
        })
    }
}

/// The source of a live stream.
///
/// # Safety
///
/// - `stream` is null, released, or a struct that `Produced::over` made with this `I`, and nobody else calls it for
///   `'a` (S7).
unsafe fn source<'a, S: Produced, I>(stream: *mut S) -> Option<&'a mut Source<S, I>> {
    // SAFETY: null or valid, as the caller promises.
    let stream = unsafe { stream.as_ref() }?;
    // SAFETY: live, so its source is, and calls are made one at a time.
    (!stream.is_released()).then(|| unsafe { &mut *stream.source() })
}

/// Does what a callback with an out-struct does: writes `out` without reading it (C5), keeps the failure.
///
/// # Safety
///
/// - `stream` as for `source`; `out` is null or valid for writes.
unsafe fn answer<S: Produced, I: 'static, T: Release>(
    stream: *mut S,
    out: *mut T,
    get: impl FnOnce(&mut Source<S, I>) -> Result<Option<Owned<T>>, StreamFailure>,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(source) = (unsafe { source::<S, I>(stream) }) else {
        return EINVAL;
    };
    source.last = None;
    if out.is_null() {
        return EINVAL;
    }
    let (value, code) = match get(source) {
        Ok(value) => (value.map_or_else(T::released, Owned::into_raw), 0),
        Err(failure) => {
            let code = failure.code;
            source.last = Some(failure);
            (T::released(), code)
        }
    };
    // SAFETY: not null, so valid for writes.
    unsafe { out.write(value) };
    code
}

unsafe extern "C" fn get_schema<S: Produced, I>(stream: *mut S, out: *mut ArrowSchema) -> c_int
where
    I: Iterator<Item = Item<S>> + 'static,
{
    // SAFETY: the consumer passes its own stream and a place to write to, and makes one call at a time.
    unsafe { answer::<S, I, _>(stream, out, |source| source.schema().map(Some)) }
}

unsafe extern "C" fn get_next<S: Produced, I>(stream: *mut S, out: *mut S::Array) -> c_int
where
    I: Iterator<Item = Item<S>> + 'static,
{
    // SAFETY: the consumer passes its own stream and a place to write to, and makes one call at a time.
    unsafe { answer::<S, I, _>(stream, out, Source::next) }
}

unsafe extern "C" fn get_last_error<S: Produced, I>(stream: *mut S) -> *const c_char {
    // SAFETY: the consumer passes its own stream and makes one call at a time.
    let source = unsafe { source::<S, I>(stream) };
    source.and_then(|source| source.last.as_ref()).map_or(ptr::null(), |failure| failure.message.as_ptr())
}

unsafe extern "C" fn release<S: Produced, I>(stream: *mut S) {
    // SAFETY: the consumer passes its own stream, and this is its last call.
    let Some(source) = (unsafe { source::<S, I>(stream) }) else {
        return;
    };
    let source: *mut Source<S, I> = source;
    // SAFETY: live a moment ago, and before anything can fail it is marked.
    unsafe { (*stream).mark_released() };
    // SAFETY: made from a box by `over`, and freed only here, once, since the stream is marked.
    let source = unsafe { Box::from_raw(source) };
    contain(|| drop(source)).ok();
}

macro_rules! produced {
    ($name:ident, $array:ident, { $($device_type:ident)? }, |$expected:ident, $item:ident| $admit:expr) => {
        impl Produced for $name {
            type Array = $array;

            fn over<I>(source: Box<Source<Self, I>>) -> Self
            where
                I: Iterator<Item = Item<Self>> + Send + 'static,
            {
                Self {
                    $($device_type: source.$device_type,)?
                    get_schema: Some(get_schema::<Self, I>),
                    get_next: Some(get_next::<Self, I>),
                    get_last_error: Some(get_last_error::<Self, I>),
                    release: Some(release::<Self, I>),
                    private_data: Box::into_raw(source).cast(),
                }
            }

            fn source<I>(&self) -> *mut Source<Self, I> {
                self.private_data.cast()
            }

            fn admit($expected: ArrowDeviceType, $item: &Self::Array) -> Result<(), StreamFailure> {
                if $item.is_released() {
                    return Err(StreamFailure::new(EINVAL, "the producer of the stream gave a released array"));
                }
                $admit
            }
        }
    };
}
produced!(ArrowArrayStream, ArrowArray, {}, |_expected, item| Ok(()));
produced!(ArrowDeviceArrayStream, ArrowDeviceArray, { device_type }, |expected, item| {
    if item.device_type == expected {
        return Ok(());
    }
    Err(StreamFailure::new(
        EINVAL,
        &format!("an array on device type {} in a stream of device type {expected}", item.device_type),
    ))
});

/// # Safety
///
/// - The arrays are of the schema.
unsafe fn stream<S: Produced, I, E>(device_type: ArrowDeviceType, schema: OwnedSchema, items: I) -> Owned<S>
where
    I: Iterator<Item = Result<Owned<S::Array>, E>> + Send + 'static,
    E: Into<StreamFailure>,
{
    let source = Source {
        device_type,
        schema,
        items: Some(items.map(|item| item.map_err(Into::into))),
        failed: None,
        last: None,
        stream: core::marker::PhantomData,
    };
    let raw = S::over(Box::new(source));
    // SAFETY: a live stream that obeys the interface, with arrays of its schema as the caller promises, and nobody else
    // has it. It may be driven from any thread, one call at a time, because the iterator can be sent and the schema and
    // arrays are anybody's.
    unsafe { Owned::adopt(raw) }
}

impl OwnedArrayStream {
    /// A stream of the arrays that `items` yields, all in host memory and of this schema.
    ///
    /// The first error ends it, and is reported as often as the consumer asks on. So does a panic with feature `std`;
    /// without, it aborts. The iterator is dropped at the end, or when the stream is released. It is called on whatever
    /// thread the consumer is on, one call at a time.
    ///
    /// # Safety
    ///
    /// - Every array that `items` yields is one of `schema` (D15), by which consumers will read its buffers: of its type,
    ///   node by node, as is promised of one that is exported. Nobody can see that of an array.
    #[must_use]
    pub unsafe fn from_iter<I, E>(schema: OwnedSchema, items: I) -> Self
    where
        I: IntoIterator<Item = Result<OwnedArray, E>>,
        I::IntoIter: Send + 'static,
        E: Into<StreamFailure> + 'static,
    {
        // SAFETY: as the caller promises.
        unsafe { stream(ArrowDeviceType::CPU, schema, items.into_iter()) }
    }
}

impl OwnedDeviceArrayStream {
    /// A stream of the arrays that `items` yields, all on this type of device and of this schema.
    ///
    /// As [`OwnedArrayStream::from_iter`]; an array on another type of device is released, and ends the stream with an
    /// error (S1).
    ///
    /// # Safety
    ///
    /// - As for [`OwnedArrayStream::from_iter`].
    #[must_use]
    pub unsafe fn from_iter<I, E>(device_type: ArrowDeviceType, schema: OwnedSchema, items: I) -> Self
    where
        I: IntoIterator<Item = Result<OwnedDeviceArray, E>>,
        I::IntoIter: Send + 'static,
        E: Into<StreamFailure> + 'static,
    {
        // SAFETY: as the caller promises.
        unsafe { stream(device_type, schema, items.into_iter()) }
    }
}
