//! Streams that answer from a script and log what is called.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use arrow_device_abi::{Device, Owned, Release, StreamReader, StreamStruct};

use super::tree::{Stub, array, on_device, schema};
use super::{Bare, Counter, nowhere, own};

/// The names of the callbacks that were called, in order, and what was wrong with a call.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn add(&self, call: &'static str) {
        // A panic in one test is no reason to abort in a callback.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(call);
    }

    /// What was logged since this was last asked.
    pub fn take(&self) -> Vec<&'static str> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An answer that is not a success.
pub struct Fail<T> {
    pub code: c_int,
    /// For `get_last_error`.
    pub text: Option<&'static CStr>,
    /// Left in the out-struct.
    pub garbage: Option<Box<T>>,
}

impl<T> Fail<T> {
    pub fn new(code: c_int, text: Option<&'static CStr>) -> Self {
        Self { code, text, garbage: None }
    }
}

type Answer<T> = Result<T, Fail<T>>;

/// What a stream answers, call by call: then every schema is `i`, and every array the end.
pub struct Script<S: StreamStub> {
    pub schemas: VecDeque<Answer<ArrowSchema>>,
    pub arrays: VecDeque<Answer<S::Array>>,
    pub log: Log,
    text: Option<Vec<u8>>,
}

impl<S: StreamStub> Script<S> {
    pub fn new(arrays: impl IntoIterator<Item = Answer<S::Array>>) -> (Self, Log) {
        let log = Log::default();
        let arrays = arrays.into_iter().collect();
        (Self { schemas: VecDeque::new(), arrays, log: log.clone(), text: None }, log)
    }

    /// Notes a call, and takes back the text that was valid until this one (S4).
    fn enter(&mut self, call: &'static str) {
        self.log.add(call);
        if let Some(text) = &mut self.text {
            let (_nul, text) = text.split_last_mut().unwrap();
            text.fill(b'#');
        }
    }

    fn answer<T: Release>(&mut self, out: *mut T, answer: Answer<T>) -> c_int {
        let (code, written) = match answer {
            Ok(value) => (0, Some(value)),
            Err(Fail { code, text, garbage }) => {
                self.text = text.map(|text| text.to_bytes_with_nul().to_vec());
                (code, garbage.map(|garbage| *garbage))
            }
        };
        if let Some(value) = written {
            // SAFETY: an out-struct is valid for writes.
            unsafe { out.write(value) };
        }
        code
    }
}

/// The two stream structs, for tests that are the same for both.
pub trait StreamStub: StreamStruct<Array: Bare> + Bare {
    /// A live stream over the script, with all callbacks.
    fn assemble(script: *mut c_void) -> Self;
    /// # Safety
    ///
    /// - `this` is valid for reads.
    unsafe fn private(this: *const Self) -> *mut c_void;
    /// A released stream whose other callbacks are still there.
    ///
    /// # Safety
    ///
    /// - `this` is valid for writes.
    unsafe fn clear(this: *mut Self);
    fn remove(&mut self, callback: &str);
    /// The stub as an array of this stream.
    fn item(stub: Stub<ArrowArray>) -> Self::Array;
    fn array(item: &Self::Array) -> &ArrowArray;
    /// What a producer may leave at the end: released, and the rest nonsense.
    fn end() -> Self::Array;
    fn is_zeroed(out: &Self::Array) -> bool;
}

/// A live stream that answers from `script`.
pub fn stream<S: StreamStub>(script: Script<S>) -> S {
    S::assemble(Box::into_raw(Box::new(script)).cast())
}

/// # Safety
///
/// - `stream` is a live stream of [`stream`], and its callbacks are called one at a time (S7).
unsafe fn script<'a, S: StreamStub>(stream: *mut S) -> &'a mut Script<S> {
    // SAFETY: the private data of a live stream is the box of `stream`, and no other call uses it.
    unsafe { &mut *S::private(stream).cast::<Script<S>>() }
}

unsafe extern "C" fn get_schema<S: StreamStub>(stream: *mut S, out: *mut ArrowSchema) -> c_int {
    // SAFETY: called on a live stream, one call at a time.
    let script = unsafe { script(stream) };
    script.enter("get_schema");
    // SAFETY: valid for reads; a consumer that zeroed it has also initialised it.
    if !schema_is_zeroed(unsafe { &*out }) {
        script.log.add("the out-struct is not zeroed");
    }
    let answer = script.schemas.pop_front().unwrap_or_else(|| Ok(schema(c"i").build()));
    script.answer(out, answer)
}

unsafe extern "C" fn get_next<S: StreamStub>(stream: *mut S, out: *mut S::Array) -> c_int {
    // SAFETY: called on a live stream, one call at a time.
    let script = unsafe { script(stream) };
    script.enter("get_next");
    // SAFETY: as in `get_schema`.
    if !S::is_zeroed(unsafe { &*out }) {
        script.log.add("the out-struct is not zeroed");
    }
    let answer = script.arrays.pop_front().unwrap_or_else(|| Ok(S::end()));
    script.answer(out, answer)
}

unsafe extern "C" fn get_last_error<S: StreamStub>(stream: *mut S) -> *const c_char {
    // SAFETY: called on a live stream, one call at a time.
    let script = unsafe { script(stream) };
    script.log.add("get_last_error");
    script.text.as_ref().map_or(ptr::null(), |text| text.as_ptr().cast())
}

/// Also releases what the script still holds, which is the producer's.
unsafe extern "C" fn release<S: StreamStub>(stream: *mut S) {
    // SAFETY: called once on a live stream, whose private data is the box of `stream`.
    let script = unsafe { Box::from_raw(S::private(stream).cast::<Script<S>>()) };
    script.log.add("release");
    let Script { schemas, arrays, .. } = *script;
    schemas.into_iter().flatten().for_each(|left| drop(own(left)));
    arrays.into_iter().flatten().for_each(|left| drop(own(left)));
    // SAFETY: valid for writes, as every released struct is.
    unsafe { S::clear(stream) };
}

pub fn reader<S: StreamStub>(script: Script<S>) -> StreamReader<S> {
    StreamReader::new(own(stream(script)))
}

/// A reader over batches with these lengths; each release is counted.
pub fn batches<S: StreamStub>(lengths: &[i64], released: &Counter) -> (StreamReader<S>, Log) {
    let (script, log) =
        Script::new(lengths.iter().map(|&length| Ok(S::item(array(length).counted(released)))));
    (reader(script), log)
}

pub fn length<S: StreamStub>(array: &Owned<S::Array>) -> i64 {
    S::array(array.as_raw()).length
}

/// Runs a generic test for both kinds of stream.
macro_rules! for_both_streams {
    ($test:ident) => {
        $test::<ArrowArrayStream>();
        $test::<ArrowDeviceArrayStream>();
    };
}
pub(crate) use for_both_streams;

fn schema_is_zeroed(out: &ArrowSchema) -> bool {
    matches!(out, ArrowSchema { flags: 0, n_children: 0, release: None, .. })
        && [out.format, out.name, out.metadata].iter().all(|text| text.is_null())
        && out.children.is_null()
        && out.dictionary.is_null()
        && out.private_data.is_null()
}

fn array_is_zeroed(out: &ArrowArray) -> bool {
    [out.length, out.null_count, out.offset, out.n_buffers, out.n_children] == [0; 5]
        && out.buffers.is_null()
        && out.children.is_null()
        && out.dictionary.is_null()
        && out.release.is_none()
        && out.private_data.is_null()
}

fn ended() -> ArrowArray {
    ArrowArray { length: 7, n_buffers: i64::MAX, buffers: nowhere().cast(), ..ArrowArray::released() }
}

macro_rules! stream_stub {
    ($name:ident { $($device_type:tt)* }, $($rest:item)+) => {
        impl StreamStub for $name {
            fn assemble(script: *mut c_void) -> Self {
                Self {
                    $($device_type)*
                    get_schema: Some(get_schema::<Self>),
                    get_next: Some(get_next::<Self>),
                    get_last_error: Some(get_last_error::<Self>),
                    release: Some(release::<Self>),
                    private_data: script,
                }
            }

            unsafe fn private(this: *const Self) -> *mut c_void {
                // SAFETY: valid for reads as the caller promises.
                unsafe { (*this).private_data }
            }

            unsafe fn clear(this: *mut Self) {
                // SAFETY: valid for writes as the caller promises.
                unsafe { (*this).release = None };
            }

            fn remove(&mut self, callback: &str) {
                match callback {
                    "get_schema" => self.get_schema = None,
                    "get_next" => self.get_next = None,
                    "get_last_error" => self.get_last_error = None,
                    other => panic!("no callback {other}"),
                }
            }

            $($rest)+
        }
    };
}

stream_stub! {
    ArrowArrayStream {},
    fn item(stub: Stub<ArrowArray>) -> ArrowArray {
        stub.build()
    }
    fn array(item: &ArrowArray) -> &ArrowArray {
        item
    }
    fn end() -> ArrowArray {
        ended()
    }
    fn is_zeroed(out: &ArrowArray) -> bool {
        array_is_zeroed(out)
    }
}

stream_stub! {
    ArrowDeviceArrayStream { device_type: ArrowDeviceType::CUDA, },
    fn item(stub: Stub<ArrowArray>) -> ArrowDeviceArray {
        on_device(stub, Device::new(ArrowDeviceType::CUDA, 0), None)
    }
    fn array(item: &ArrowDeviceArray) -> &ArrowArray {
        &item.array
    }
    fn end() -> ArrowDeviceArray {
        ArrowDeviceArray {
            array: ended(),
            device_id: i64::MIN,
            device_type: ArrowDeviceType::HEXAGON,
            sync_event: nowhere(),
            reserved: [-1; 3],
        }
    }
    fn is_zeroed(out: &ArrowDeviceArray) -> bool {
        array_is_zeroed(&out.array)
            && out.device_id == 0
            && out.device_type == ArrowDeviceType(0)
            && out.sync_event.is_null()
            && out.reserved == [0; 3]
    }
}
