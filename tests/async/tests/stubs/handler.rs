//! A handler that answers as the test says, and logs what it is called with.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use std::sync::{Arc, Mutex};

use arrow_device_abi::raw::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceType, ArrowSchema,
};
use arrow_device_abi::{AsyncHandler, Metadata, OwnedDeviceArray, OwnedSchema};

/// What the handler was called with, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The schema's format, and the producer's device type.
    Schema(String, ArrowDeviceType),
    /// A batch of so many rows.
    Batch(i64),
    /// A task that was kept or refused.
    Task,
    End,
    Error(c_int, String),
    Release,
}

/// What a handler does with a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Take {
    #[default]
    Extract,
    /// Keeps a copy, to be extracted later.
    Keep,
    Discard,
    /// Leaves it alone, to be refused.
    Leave,
}

/// A task that was kept.
pub struct Kept(pub ArrowAsyncTask);

// SAFETY: a task may be extracted on any thread.
unsafe impl Send for Kept {}

impl Kept {
    pub fn extract(mut self) -> Result<OwnedDeviceArray, c_int> {
        extract(&mut self.0)
    }
}

fn extract(task: *mut ArrowAsyncTask) -> Result<OwnedDeviceArray, c_int> {
    let mut out = core::mem::MaybeUninit::uninit();
    // SAFETY: a live task, which is extracted here only.
    let code = unsafe { (*task).extract_data.unwrap()(task, out.as_mut_ptr()) };
    // SAFETY: written on success, with a live array that is ours.
    if code == 0 { Ok(unsafe { OwnedDeviceArray::from_raw(out.assume_init()) }.unwrap()) } else { Err(code) }
}

/// The producer, as the handler's callbacks use it.
#[derive(Clone, Copy)]
pub struct Upstream(pub *mut ArrowAsyncProducer);

// SAFETY: cancel may be called from any thread, and a test calls request on one at a time.
unsafe impl Send for Upstream {}

impl Upstream {
    pub fn request(self, n: i64) {
        // SAFETY: a live producer.
        unsafe { (*self.0).request.unwrap()(self.0, n) };
    }

    pub fn cancel(self) {
        // SAFETY: a live producer.
        unsafe { (*self.0).cancel.unwrap()(self.0) };
    }
}

/// What a handler is to do. The hooks are called with the producer in each call of their callback.
#[derive(Default)]
pub struct Script {
    pub on_schema: Option<Box<dyn FnMut(Upstream) -> c_int + Send>>,
    pub on_task: Option<Box<dyn FnMut(Upstream) -> c_int + Send>>,
    pub on_end: c_int,
    pub take: Take,
    pub leaves_schema: bool,
}

impl Script {
    /// Asks for so many when the schema comes.
    pub fn requesting(n: i64) -> Self {
        Self {
            on_schema: Some(Box::new(move |producer| {
                producer.request(n);
                0
            })),
            ..Self::default()
        }
    }

    pub fn on_task(mut self, hook: impl FnMut(Upstream) -> c_int + Send + 'static) -> Self {
        self.on_task = Some(Box::new(hook));
        self
    }
}

struct Private {
    script: Script,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    events: Vec<Event>,
    metadata: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    kept: Vec<Kept>,
    schema: Option<OwnedSchema>,
    producer: Option<Upstream>,
    busy: bool,
}

/// The log of a handler, which outlives it.
#[derive(Clone)]
pub struct Called(Arc<Mutex<Book>>);

impl Called {
    /// What was called since this was last asked.
    pub fn take(&self) -> Vec<Event> {
        core::mem::take(&mut self.0.lock().unwrap().events)
    }

    pub fn metadata(&self) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
        core::mem::take(&mut self.0.lock().unwrap().metadata)
    }

    pub fn kept(&self) -> Vec<Kept> {
        core::mem::take(&mut self.0.lock().unwrap().kept)
    }

    pub fn schema(&self) -> Option<OwnedSchema> {
        self.0.lock().unwrap().schema.take()
    }

    /// Gone once the handler is released.
    pub fn producer(&self) -> Option<Upstream> {
        self.0.lock().unwrap().producer
    }
}

/// A live handler in a box of its own, which its release frees: nobody may look at it afterwards.
pub fn handler(script: Script) -> (AsyncHandler, Called) {
    let book = Arc::new(Mutex::new(Book::default()));
    let private = Box::new(Private { script, book: Arc::clone(&book) });
    let handler = Box::new(ArrowAsyncDeviceStreamHandler {
        on_schema: Some(on_schema),
        on_next_task: Some(on_next_task),
        on_error: Some(on_error),
        release: Some(release),
        // What a consumer leaves there is for the producer to replace.
        producer: crate::common::nowhere().cast(),
        private_data: Box::into_raw(private).cast(),
    });
    // SAFETY: a live handler that nobody else calls, in a box that lives until its release.
    (unsafe { AsyncHandler::from_raw(Box::into_raw(handler)) }.unwrap(), Called(book))
}

/// Notes a call. The callbacks of one handler never overlap (A14).
///
/// # Safety
///
/// - `handler` is one of `handler`, live.
unsafe fn entered<R>(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    call: impl FnOnce(&mut Script, &mut dyn FnMut(&mut dyn FnMut(&mut Book)), Upstream) -> R,
) -> R {
    // SAFETY: as the caller promises; one call at a time.
    let (private, producer) =
        unsafe { (&mut *(*handler).private_data.cast::<Private>(), (*handler).producer) };
    let book = Arc::clone(&private.book);
    let mut with = |f: &mut dyn FnMut(&mut Book)| f(&mut book.lock().unwrap_or_else(|p| p.into_inner()));
    with(&mut |book| assert!(!core::mem::replace(&mut book.busy, true), "calls overlap"));
    let result = call(&mut private.script, &mut with, Upstream(producer));
    with(&mut |book| book.busy = false);
    result
}

unsafe extern "C" fn on_schema(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    schema: *mut ArrowSchema,
) -> c_int {
    // SAFETY: called on a live handler.
    unsafe {
        entered(handler, |script, with, producer| {
            // SAFETY: from now to release there is a live producer (A1).
            let device_type = (*producer.0).device_type;
            // SAFETY: null or in the encoding.
            let pairs = Metadata::from_ptr((*producer.0).additional_metadata).unwrap();
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            // SAFETY: a live schema.
            let format = CStr::from_ptr((*schema).format).to_str().unwrap().to_owned();
            // SAFETY: a live schema, which is the handler's.
            let mut taken = (!script.leaves_schema).then(|| OwnedSchema::take(schema).unwrap());
            with(&mut |book| {
                book.events.push(Event::Schema(format.clone(), device_type));
                book.metadata.push(pairs.clone());
                book.schema = taken.take();
                book.producer = Some(producer);
            });
            script.on_schema.as_mut().map_or(0, |hook| hook(producer))
        })
    }
}

unsafe extern "C" fn on_next_task(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    task: *mut ArrowAsyncTask,
    metadata: *const c_char,
) -> c_int {
    // SAFETY: called on a live handler.
    unsafe {
        entered(handler, |script, with, producer| {
            if task.is_null() {
                with(&mut |book| book.events.push(Event::End));
                return script.on_end;
            }
            // SAFETY: null or in the encoding.
            let pairs = Metadata::from_ptr(metadata).unwrap();
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            let mut kept = None;
            let event = match script.take {
                Take::Extract => {
                    let array = extract(task).unwrap();
                    assert_eq!(extract(task).unwrap_err(), arrow_device_abi::errno::EINVAL, "a second time");
                    Event::Batch(super::length(&array))
                }
                Take::Keep => {
                    // SAFETY: a copy of a live task.
                    kept = Some(Kept(task.read()));
                    Event::Task
                }
                Take::Discard => {
                    // SAFETY: a live task; a null out-struct discards it.
                    assert_eq!((*task).extract_data.unwrap()(task, ptr::null_mut()), 0);
                    Event::Task
                }
                Take::Leave => Event::Task,
            };
            with(&mut |book| {
                book.events.push(event.clone());
                book.metadata.push(pairs.clone());
                book.kept.extend(kept.take());
            });
            script.on_task.as_mut().map_or(0, |hook| hook(producer))
        })
    }
}

unsafe extern "C" fn on_error(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    code: c_int,
    message: *const c_char,
    metadata: *const c_char,
) {
    assert!(metadata.is_null());
    // SAFETY: called on a live handler, with a text that ends in NUL.
    unsafe {
        entered(handler, |_, with, producer| {
            assert!(!producer.0.is_null());
            let message = CStr::from_ptr(message).to_str().unwrap().to_owned();
            with(&mut |book| book.events.push(Event::Error(code, message.clone())));
        });
    }
}

unsafe extern "C" fn release(handler: *mut ArrowAsyncDeviceStreamHandler) {
    // SAFETY: called once on a live handler, of these two boxes.
    let (handler, private) = unsafe {
        let handler = Box::from_raw(handler);
        let private = Box::from_raw(handler.private_data.cast::<Private>());
        (handler, private)
    };
    drop(handler);
    let mut book = private.book.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(!book.busy, "calls overlap");
    book.events.push(Event::Release);
    book.producer = None;
}
