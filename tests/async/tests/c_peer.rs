//! The rules against an asynchronous producer and an asynchronous handler written in C: `tests/support/c/async_*`. They
//! free what they release, so that AddressSanitizer and valgrind see a use after it, a double release, and a leak.

#[path = "../../common/mod.rs"]
mod common;
#[path = "../../common/peer.rs"]
#[allow(dead_code, reason = "the streams are not used here")]
mod peer;
mod stubs;

use core::ffi::{CStr, c_char};
use core::ptr;
use std::thread;

use arrow_device_abi::errno::{EINVAL, EIO};
use arrow_device_abi::raw::ArrowAsyncDeviceStreamHandler;
use arrow_device_abi::{AsyncHandler, AsyncReceiver, Blocking, Demand, Driven, StreamError, StreamFailure};

use peer::{Books, Counts, c_device_array, c_schema};
use stubs::{CUDA, length};

const MANY: i64 = 1000;

/// `struct async_script`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Script {
    batches: i64,
    message: *const c_char,
    code: i32,
    bad_task: i32,
}

// SAFETY: the text is a literal.
unsafe impl Send for Script {}

/// `struct async_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct AsyncBooks {
    requested: i64,
    requests: i64,
    cancels: i64,
    schemas: i64,
    tasks: i64,
    extracted: i64,
    discarded: i64,
    ends: i64,
    errors: i64,
    released: i64,
    rows: i64,
    faults: i64,
    refused: i32,
    text: Text,
}

#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Text([c_char; 64]);

impl Default for Text {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Text {
    fn get(&self) -> &str {
        // SAFETY: C ends it with NUL.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }.to_str().unwrap()
    }
}

/// `struct async_answers`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Answers {
    first: i64,
    each: i64,
    cancel_at: i64,
    refuse_at: i64,
    code: i32,
    refuses_schema: i32,
    leaves_refused: i32,
}

unsafe extern "C" {
    fn async_produce(
        handler: *mut ArrowAsyncDeviceStreamHandler,
        script: *const Script,
        counts: *mut AsyncBooks,
        arrays: *const Counts,
    );
    fn async_make_handler(
        answers: *const Answers,
        counts: *mut AsyncBooks,
    ) -> *mut ArrowAsyncDeviceStreamHandler;
}

/// Lets C produce on a thread of its own while `consume` runs; then nothing is forbidden, and released is each struct
/// that was made.
fn received(script: Script, demand: Demand, consume: impl FnOnce(AsyncReceiver)) -> AsyncBooks {
    let (handler, receive) = AsyncReceiver::prepare(demand);
    let producing = thread::spawn(move || {
        let (mut counts, arrays) = (Box::new(AsyncBooks::default()), Box::new(Counts::default()));
        // SAFETY: a live handler, and books that outlive the producer and its arrays: those of the consumer are gone when
        // this thread is joined, and the boxes are given on.
        unsafe { async_produce(handler.into_raw(), &raw const script, &raw mut *counts, &raw const *arrays) };
        (counts, arrays)
    });
    consume(receive.wait().unwrap());
    let (counts, arrays) = producing.join().unwrap();
    let made = arrays.get();
    let extracted =
        counts.extracted - i64::from(script.bad_task != 0 && counts.extracted >= script.bad_task.into());
    assert_eq!((counts.faults, counts.schemas, counts.released), (0, 1, 1));
    assert_eq!(counts.extracted + counts.discarded, counts.tasks, "each task once");
    assert!(counts.tasks <= counts.requested);
    // The schema's root is counted with the arrays'.
    assert_eq!((made.released[0], made.events_destroyed), (extracted + 1, extracted));
    *counts
}

fn script(batches: i64) -> Script {
    Script { batches, message: ptr::null(), code: 0, bad_task: 0 }
}

/// A2, A4, A5, A9, A10, A11: a whole stream of C, a thousand batches, for each prefetch depth.
#[test]
fn a_stream_of_c() {
    for depth in [1, 2, 7, 2000] {
        let books = received(script(MANY), Demand::Prefetch(depth), |receiver| {
            assert_eq!(receiver.schema().view().unwrap().n_children(), 2);
            let arrays = Blocking::new(receiver.into_arrays());
            let seen = arrays.map(|array| {
                let array = array.unwrap();
                assert_eq!(length(&array), 4);
                array.device().device_id
            });
            assert!(seen.eq(1..=MANY));
        });
        assert_eq!((books.ends, books.errors, books.cancels, books.extracted), (1, 0, 0, MANY));
    }
}

/// A8, C11: an error of C in the middle; its text is spoiled after the call.
#[test]
fn an_error_of_c() {
    let script = Script { message: c"disk gone".as_ptr(), code: 42, ..script(3) };
    received(script, Demand::Prefetch(2), |receiver| {
        let mut arrays = Blocking::new(receiver.into_arrays());
        assert_eq!(arrays.by_ref().take(3).filter(Result::is_ok).count(), 3);
        let error = arrays.next().unwrap().unwrap_err();
        assert_eq!((error.code(), error.message()), (Some(42), Some("disk gone")));
        assert!(arrays.next().is_none());
    });
}

/// A10: C fails to extract, leaves garbage, and then reports an error, or finds itself cancelled.
#[test]
fn a_task_of_c_that_fails() {
    let script = Script { message: c"cannot decode".as_ptr(), code: 42, bad_task: 2, ..script(2) };
    received(script, Demand::Prefetch(3), |receiver| {
        let mut arrays = Blocking::new(receiver.into_arrays());
        assert!(arrays.next().unwrap().is_ok());
        let error = arrays.next().unwrap().unwrap_err();
        let extracting = StreamError::Failed { callback: "extract_data", code: EIO, message: None };
        assert!(error == extracting || error.message() == Some("cannot decode"), "{error}");
        assert!(arrays.next().is_none());
    });
}

/// A7, A10, C11: dropped early, whatever C has passed by then, and while it goes on.
#[test]
fn an_early_drop() {
    for taken in 0..8 {
        let books = received(script(i64::MAX), Demand::Prefetch(3), |receiver| {
            let arrays = Blocking::new(receiver.into_arrays());
            assert_eq!(arrays.take(taken).map(Result::unwrap).count(), taken);
        });
        assert_eq!((books.cancels, books.ends, books.errors, books.extracted), (1, 0, 0, taken as i64));
    }
}

/// A5, A7: by hand; and cancelled from another thread, while C waits for a request or passes batches.
#[test]
fn steered_by_hand() {
    let books = received(script(i64::MAX), Demand::ByHand, |receiver| {
        let control = receiver.control().clone();
        control.request(3);
        let mut arrays = Blocking::new(receiver.into_arrays());
        assert_eq!(arrays.by_ref().take(3).map(Result::unwrap).count(), 3);
        control.request(50);
        let cancelling = thread::spawn(move || control.cancel());
        assert!(arrays.map(Result::unwrap).count() <= 50);
        cancelling.join().unwrap();
    });
    assert_eq!((books.requested, books.cancels, books.discarded), (53, 1, 0));
}

/// Drives `batches`, then perhaps an error, into a handler of C; nothing that is forbidden happens to it, and every struct
/// is released.
fn driven(answers: Answers, batches: i64, failure: Option<StreamFailure>) -> (Driven, AsyncBooks) {
    let (mut books, arrays) = (Box::new(AsyncBooks::default()), Box::new(Counts::default()));
    let mut made = 0;
    let schema = c_schema(&arrays);
    let items = (0..batches).map(|id| {
        made += 1;
        Ok(c_device_array(arrow_device_abi::Device::new(CUDA.device_type, id), &arrays))
    });
    let items = items.chain(failure.map(Err));
    // SAFETY: a live handler, which nobody else calls, and books that outlive it.
    let handler = unsafe { AsyncHandler::from_raw(async_make_handler(&raw const answers, &raw mut *books)) };
    // SAFETY: the arrays are of this schema.
    let end = unsafe { handler.unwrap().drive_iter(CUDA.device_type, schema, items) }.wait();
    let Books { released, events_destroyed, .. } = arrays.get();
    // The schema's root is counted with the arrays'.
    assert_eq!((released[0], events_destroyed), (made + 1, made));
    assert_eq!((books.faults, books.schemas, books.released), (0, 1, 1));
    (end, *books)
}

/// A1, A2, A4, A5, A6, A9, A10, A14: a thousand batches into a handler of C, asked for within its callbacks.
#[test]
fn a_handler_of_c() {
    for (first, each) in [(MANY, 0), (1, 1), (3, 7)] {
        let (end, books) = driven(Answers { first, each, ..Answers::default() }, MANY, None);
        assert_eq!(end, Driven::Complete);
        assert_eq!((books.tasks, books.ends, books.errors), (MANY, 1, 0));
        assert_eq!((books.extracted, books.discarded, books.rows), (MANY / 2, MANY / 2, MANY * 2));
    }
}

/// A3: C refuses the schema, or a task that it has extracted or left alone: release alone follows.
#[test]
fn a_handler_of_c_refuses() {
    let answers = Answers { refuses_schema: 1, code: 7, ..Answers::default() };
    let (end, books) = driven(answers, 3, None);
    assert_eq!(end, Driven::Refused { callback: "on_schema", code: 7 });
    assert_eq!((books.tasks, books.ends, books.errors), (0, 0, 0));
    for leaves_refused in [0, 1] {
        let answers = Answers { first: 9, refuse_at: 3, code: -7, leaves_refused, ..Answers::default() };
        let (end, books) = driven(answers, 9, None);
        assert_eq!(end, Driven::Refused { callback: "on_next_task", code: -7 });
        assert_eq!((books.tasks, books.ends, books.errors), (3, 0, 0));
    }
}

/// A7, C11: C cancels three times within a callback, and asks on: release alone follows.
#[test]
fn a_handler_of_c_cancels() {
    let answers = Answers { first: 9, each: 1, cancel_at: 4, ..Answers::default() };
    let (end, books) = driven(answers, 99, None);
    assert_eq!(end, Driven::Cancelled);
    assert_eq!((books.tasks, books.ends, books.errors, books.cancels), (4, 0, 0, 3));
}

/// A6, A8, C11: C asks for less than one batch, and is told of an error; so it is of the source's error.
#[test]
fn a_handler_of_c_is_told_of_errors() {
    for n in [-1, i64::MIN] {
        let (end, books) = driven(Answers { first: n, ..Answers::default() }, 3, None);
        let text = format!("the consumer requested {n} batches");
        assert_eq!(end, Driven::Failed(StreamFailure::new(EINVAL, &text)));
        assert_eq!((books.errors, books.refused, books.text.get()), (1, EINVAL, text.as_str()));
    }
    let failure = StreamFailure::new(99, "größe unbekannt");
    let (end, books) = driven(Answers { first: 9, ..Answers::default() }, 2, Some(failure.clone()));
    assert_eq!(end, Driven::Failed(failure));
    assert_eq!((books.tasks, books.refused, books.text.get()), (2, 99, "größe unbekannt"));
}
