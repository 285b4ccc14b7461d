//! A producer that does what the test says, one callback after the other, and logs what it is asked.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use std::sync::{Arc, Mutex};

use arrow_device_abi::AsyncHandler;
use arrow_device_abi::raw::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, ArrowDeviceType,
    ArrowSchema,
};

use super::CUDA;
use crate::common::{Counter, nowhere, schema};

/// What the consumer did, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Request(i64),
    Cancel,
    /// A call after release: the producer would be freed memory.
    TooLate,
}

/// What the producer does within a call, once.
pub type Hook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Book {
    calls: Vec<Call>,
    gone: bool,
    on_request: Option<Hook>,
    on_cancel: Option<Hook>,
    /// The producer once it has released its handler: freed for the consumer, but so that a call too late is a wrong log
    /// and no crash.
    grave: Option<Grave>,
}

struct Grave {
    _raw: Box<ArrowAsyncProducer>,
}

// SAFETY: nobody uses what it holds.
unsafe impl Send for Grave {}

/// The log of a producer, which outlives it.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Book>>);

impl Asked {
    /// What was asked since this was last asked.
    pub fn take(&self) -> Vec<Call> {
        core::mem::take(&mut self.0.lock().unwrap().calls)
    }

    pub fn on_request(&self, hook: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().on_request = Some(Box::new(hook));
    }

    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().on_cancel = Some(Box::new(hook));
    }
}

/// # Safety
///
/// - `producer` is one of a stub whose log the test holds.
unsafe fn note(producer: *mut ArrowAsyncProducer, call: Call) {
    // SAFETY: as the caller promises.
    let book = unsafe { &*(*producer).private_data.cast::<Mutex<Book>>() };
    let mut book = book.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let call = if book.gone { Call::TooLate } else { call };
    book.calls.push(call);
    let hook = match call {
        Call::Request(_) => book.on_request.take(),
        Call::Cancel => book.on_cancel.take(),
        Call::TooLate => None,
    };
    drop(book);
    if let Some(hook) = hook {
        hook();
    }
}

unsafe extern "C" fn request(producer: *mut ArrowAsyncProducer, n: i64) {
    // SAFETY: called on a stub.
    unsafe { note(producer, Call::Request(n)) };
}

unsafe extern "C" fn cancel(producer: *mut ArrowAsyncProducer) {
    // SAFETY: called on a stub.
    unsafe { note(producer, Call::Cancel) };
}

/// A task to pass, and what comes of it.
pub struct TaskStub {
    pub array: ArrowDeviceArray,
    /// What extracting returns, leaving the array as garbage if it is not 0.
    pub code: c_int,
    pub metadata: Option<Vec<u8>>,
    pub has_callback: bool,
}

/// How often tasks were extracted and discarded.
#[derive(Debug, Clone, Default)]
pub struct Extracted {
    pub extracted: Counter,
    pub discarded: Counter,
}

impl Extracted {
    pub fn counts(&self) -> (usize, usize) {
        (self.extracted.get(), self.discarded.get())
    }
}

struct Private {
    array: ArrowDeviceArray,
    code: c_int,
    extracted: Extracted,
}

unsafe extern "C" fn extract_data(task: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: called once on a copy of a task that `StubProducer::task` made, of a box.
    let private = unsafe { Box::from_raw((*task).private_data.cast::<Private>()) };
    // SAFETY: the task is the producer's to write to, too, and this was its one use.
    unsafe { (*task).private_data = nowhere() };
    let Private { array, code, extracted } = *private;
    if out.is_null() {
        extracted.discarded.add();
        // SAFETY: a live array, or a released one.
        drop(unsafe { arrow_device_abi::OwnedDeviceArray::from_raw(array) });
        return 0;
    }
    extracted.extracted.add();
    // SAFETY: valid for reads: a consumer that zeroed it has also initialised it.
    assert!(unsafe { (*out).is_released() }, "the out-struct is not zeroed");
    // SAFETY: valid for writes.
    unsafe { out.write(array) };
    code
}

/// A producer, its handler in hand. `producer` of the handler is set by [`offer`](Self::offer).
pub struct StubProducer {
    raw: Box<ArrowAsyncProducer>,
    asked: Asked,
    handler: *mut ArrowAsyncDeviceStreamHandler,
    pub extracted: Extracted,
    metadata: Vec<u8>,
}

// SAFETY: its handler's callbacks may be called from any thread.
unsafe impl Send for StubProducer {}

impl StubProducer {
    /// The producer, and the log that outlives it.
    pub fn new(handler: AsyncHandler) -> (Self, Asked) {
        let asked = Asked::default();
        let raw = Box::new(ArrowAsyncProducer {
            device_type: CUDA.device_type,
            request: Some(request),
            cancel: Some(cancel),
            additional_metadata: ptr::null(),
            private_data: Arc::as_ptr(&asked.0).cast_mut().cast::<c_void>(),
        });
        let handler = handler.into_raw();
        let extracted = Extracted::default();
        (Self { raw, asked: asked.clone(), handler, extracted, metadata: Vec::new() }, asked)
    }

    /// A producer that has passed its schema.
    pub fn opened(handler: AsyncHandler) -> (Self, Asked) {
        let (mut producer, asked) = Self::new(handler);
        assert_eq!(producer.offer().schema(&Counter::new()), 0);
        (producer, asked)
    }

    pub fn raw(&mut self) -> &mut ArrowAsyncProducer {
        &mut self.raw
    }

    pub fn handler(&self) -> *mut ArrowAsyncDeviceStreamHandler {
        self.handler
    }

    pub fn with_metadata(&mut self, bytes: Vec<u8>) {
        self.metadata = bytes;
        self.raw.additional_metadata = self.metadata.as_ptr().cast();
    }

    /// A1: what has to be there before the schema.
    pub fn offer(&mut self) -> &mut Self {
        let producer = &raw mut *self.raw;
        // SAFETY: a live handler.
        unsafe { (*self.handler).producer = producer };
        self
    }

    /// Passes a schema and says what the handler answered. It has to be moved out, whatever the answer.
    pub fn schema(&mut self, released: &Counter) -> c_int {
        let mut schema = schema(c"+s").counted(released).build();
        let code = self.pass_schema(&raw mut schema);
        assert!(schema.is_released(), "neither moved nor released");
        code
    }

    pub fn pass_schema(&mut self, schema: *mut ArrowSchema) -> c_int {
        // SAFETY: a live handler; one call at a time.
        unsafe { (*self.handler).on_schema.unwrap()(self.handler, schema) }
    }

    pub fn batch(&mut self, length: i64, released: &Counter) -> c_int {
        self.task(TaskStub {
            array: super::batch(length, released),
            code: 0,
            metadata: None,
            has_callback: true,
        })
    }

    /// Passes a task, then spoils what was valid during the call only (A4).
    pub fn task(&mut self, stub: TaskStub) -> c_int {
        let TaskStub { array, code, metadata, has_callback } = stub;
        let private = Box::new(Private { array, code, extracted: self.extracted.clone() });
        let private = Box::into_raw(private);
        let mut task = ArrowAsyncTask {
            extract_data: has_callback.then_some(extract_data),
            private_data: private.cast(),
        };
        let mut metadata = metadata;
        let pairs = metadata.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: a live handler; one call at a time.
        let answer = unsafe { (*self.handler).on_next_task.unwrap()(self.handler, &raw mut task, pairs) };
        if answer != 0 || !has_callback {
            // A refused task stays the producer's.
            // SAFETY: the box from above, which nobody has extracted.
            let Private { array, .. } = *unsafe { Box::from_raw(private) };
            // SAFETY: a live array, or a released one.
            drop(unsafe { arrow_device_abi::OwnedDeviceArray::from_raw(array) });
        }
        task.extract_data = None;
        task.private_data = nowhere();
        core::hint::black_box(&mut task);
        if let Some(bytes) = &mut metadata {
            bytes.fill(0xFF);
            core::hint::black_box(bytes);
        }
        answer
    }

    pub fn end(&mut self) -> c_int {
        // SAFETY: a live handler; one call at a time.
        unsafe { (*self.handler).on_next_task.unwrap()(self.handler, ptr::null_mut(), ptr::null()) }
    }

    /// Reports an error, then spoils its text and metadata (A8).
    pub fn error(&mut self, code: c_int, text: Option<&CStr>, metadata: Option<&[u8]>) {
        let mut text = text.map(|text| text.to_bytes_with_nul().to_vec());
        let mut metadata = metadata.map(<[u8]>::to_vec);
        let at = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: a live handler; one call at a time.
        unsafe { (*self.handler).on_error.unwrap()(self.handler, code, at(&text), at(&metadata)) };
        for bytes in [&mut text, &mut metadata].into_iter().flatten() {
            bytes.fill(b'#');
            core::hint::black_box(bytes);
        }
    }

    /// A9: the last call. The producer is freed, and its log says if it is called all the same.
    pub fn release(self) -> Asked {
        // SAFETY: a live handler, and the last call.
        unsafe { (*self.handler).release.unwrap()(self.handler) };
        let mut book = self.asked.0.lock().unwrap();
        book.gone = true;
        book.grave = Some(Grave { _raw: self.raw });
        drop(book);
        self.asked
    }
}
