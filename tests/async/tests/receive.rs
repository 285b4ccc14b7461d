//! Receiving: what comes in which order, and how it ends. What is asked for: `demand.rs`. Callbacks one after the other on one thread,
//! against a stub in Rust.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use arrow_device_abi::raw::{ArrowAsyncDeviceStreamHandler, ArrowSchema};
use arrow_device_abi::{AsyncReceiver, Blocking, Demand, OwnedDeviceArray, StreamError};
use futures_core::FusedStream;

use common::{Counter, schema};
use stubs::producer::{Call, StubProducer};
use stubs::{CUDA, OK, Task, encoded, length, opened, ready};

fn rows(array: Option<Result<OwnedDeviceArray, StreamError>>) -> Option<Result<i64, StreamError>> {
    array.map(|array| array.map(|array| length(&array)))
}

fn reported(code: i32, text: Option<&str>) -> StreamError {
    let message = text.map(str::to_owned);
    StreamError::Reported { code, message, metadata: Default::default() }
}

/// A2, A11: the schema comes first, and wakes; it is moved out, and lives longer than the stream.
#[test]
fn the_schema_comes_first() {
    let (handler, mut receive) = AsyncReceiver::prepare(Demand::ByHand);
    let (mut producer, _) = StubProducer::new(handler);
    let task = Task::default();
    assert!(task.poll(&mut receive).is_pending());
    assert!(task.poll(&mut receive).is_pending());

    let released = Counter::new();
    assert_eq!(producer.offer().schema(&released), OK);
    assert_eq!(task.woken(), 1);
    let receiver = ready(task.poll(&mut receive)).unwrap();
    assert_eq!(ready(task.poll(&mut receive)).unwrap_err(), StreamError::Released, "asked again");
    assert_eq!(receiver.device_type(), CUDA.device_type);
    assert!(receiver.metadata().unwrap().is_empty());
    producer.release();
    assert_eq!(receiver.schema().view().unwrap().format(), Ok("+s"));
    assert_eq!(released.get(), 0);
    drop(receiver);
    assert_eq!(released.get(), 1);
}

/// A1, A2, A3, C11: what is wrong with the schema or the producer is an error, answered by a code; only release follows.
#[test]
fn a_schema_that_is_refused() {
    let missing = |callback| StreamError::MissingCallback { callback };
    type Wrong = fn(&mut StubProducer) -> i32;
    let cases: [(StreamError, Wrong); 5] = [
        (StreamError::ReleasedSchema, |producer| producer.offer().pass_schema(core::ptr::null_mut())),
        (StreamError::ReleasedSchema, |producer| producer.offer().pass_schema(&mut ArrowSchema::released())),
        (missing("producer"), |producer| producer.schema(&Counter::new())),
        (missing("request"), |producer| {
            producer.raw().request = None;
            producer.offer().schema(&Counter::new())
        }),
        (missing("cancel"), |producer| {
            producer.raw().cancel = None;
            producer.offer().schema(&Counter::new())
        }),
    ];
    for (expected, pass) in cases {
        let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(1));
        let (mut producer, _) = StubProducer::new(handler);
        assert_eq!(pass(&mut producer), arrow_device_abi::errno::EINVAL);
        let asked = producer.release();
        assert_eq!(receive.wait().unwrap_err(), expected);
        assert_eq!(asked.take(), []);
    }
}

/// A2: a second schema is refused, and released; the stream goes on with the first.
#[test]
fn a_second_schema_is_refused() {
    let (mut producer, _, receiver) = opened(Demand::Prefetch(2));
    let released = Counter::new();
    assert_ne!(producer.schema(&released), OK);
    assert_eq!(released.get(), 1);
    assert_eq!(producer.batch(4, &Counter::new()), OK);
    producer.end();
    producer.release();
    assert_eq!(Blocking::new(receiver.into_arrays()).map(|array| length(&array.unwrap())).sum::<i64>(), 4);
}

/// C11: an error without a schema before it, its text spoiled afterwards: the future ends once, with the right result.
#[test]
fn an_error_before_the_schema() {
    for schema_first in [false, true] {
        let (handler, mut receive) = AsyncReceiver::prepare(Demand::Prefetch(2));
        let (mut producer, asked) = StubProducer::new(handler);
        let task = Task::default();
        assert!(task.poll(&mut receive).is_pending());
        producer.offer();
        if schema_first {
            assert_eq!(producer.schema(&Counter::new()), OK);
        }
        producer.error(5, Some(c"x"), None);
        producer.release();
        assert_eq!(task.woken(), 1);
        if schema_first {
            let mut receiver = ready(task.poll(&mut receive)).unwrap();
            assert_eq!(ready(task.next(&mut receiver)).unwrap().unwrap_err(), reported(5, Some("x")));
            assert!(ready(task.next(&mut receiver)).is_none());
        } else {
            let error = ready(task.poll(&mut receive)).unwrap_err();
            assert_eq!(error, reported(5, Some("x")));
            assert_eq!((error.code(), error.errno(), error.message()), (Some(5), 5, Some("x")));
            assert_eq!(error.to_string(), "the producer reported code 5: x");
            assert_eq!(asked.take(), []);
        }
    }
}

/// C11, A4, A9: the schema, tasks asked for in its callback, a null task, release: every batch, then the end, once.
#[test]
fn a_whole_stream() {
    let (mut producer, asked, receiver) = opened(Demand::Prefetch(2));
    assert_eq!(asked.take(), [Call::Request(2)], "within on_schema");
    let released = Counter::new();
    for length in [3, 0] {
        assert_eq!(producer.batch(length, &released), OK);
    }
    assert_eq!(producer.end(), OK);
    let extracted = producer.extracted.clone();
    producer.release();

    let task = Task::default();
    let mut arrays = receiver.into_arrays();
    assert_eq!(rows(ready(task.next(&mut arrays))), Some(Ok(3)));
    assert!(!arrays.is_terminated());
    assert_eq!(rows(ready(task.next(&mut arrays))), Some(Ok(0)), "an empty batch is no end");
    for _ in 0..2 {
        assert_eq!(rows(ready(task.next(&mut arrays))), None);
        assert!(arrays.is_terminated());
    }
    assert_eq!((task.woken(), extracted.counts(), released.get()), (0, (2, 0), 2));
    drop(arrays);
    assert_eq!(asked.take(), [], "nothing is asked for after the end");
}

/// A4, A14: the consumer is woken by a task, by the end and by an error, once for each time that it waited.
#[test]
fn what_comes_wakes() {
    let (mut producer, _, mut receiver) = opened(Demand::Prefetch(9));
    let task = Task::default();
    assert!(task.next(&mut receiver).is_pending());
    producer.batch(1, &Counter::new());
    producer.batch(2, &Counter::new());
    assert_eq!(task.woken(), 1);
    drop(ready(task.next(&mut receiver)));
    drop(ready(task.next(&mut receiver)));

    // The waker that is woken is that of the last poll.
    let other = Task::default();
    assert!(other.next(&mut receiver).is_pending());
    assert!(task.next(&mut receiver).is_pending());
    producer.end();
    assert_eq!((task.woken(), other.woken()), (2, 0));
    producer.release();
    assert!(ready(task.next(&mut receiver)).is_none());

    let (mut producer, _, mut receiver) = opened(Demand::Prefetch(9));
    assert!(task.next(&mut receiver).is_pending());
    producer.error(1, None, None);
    assert_eq!(task.woken(), 3);
    producer.release();
    assert!(ready(task.next(&mut receiver)).unwrap().is_err());
}

/// A8, C6: an error is seen once, after the batches that came before it, with text and metadata copied.
#[test]
fn an_error_comes_after_the_batches() {
    let (mut producer, asked, receiver) = opened(Demand::Prefetch(2));
    asked.take();
    producer.batch(1, &Counter::new());
    producer.batch(2, &Counter::new());
    let pairs = encoded(&[(b"retry", b"no"), (b"\xFF", b"")]);
    producer.error(-7, Some(c"disk \xFF gone"), Some(&pairs));
    producer.release();

    let task = Task::default();
    let mut arrays = receiver.into_arrays();
    assert_eq!(rows(ready(task.next(&mut arrays))), Some(Ok(1)));
    assert_eq!(rows(ready(task.next(&mut arrays))), Some(Ok(2)));
    let error = ready(task.next(&mut arrays)).unwrap().unwrap_err();
    assert_eq!((error.code(), error.errno(), error.message()), (Some(-7), -7, Some("disk \u{FFFD} gone")));
    let pairs: Vec<_> = error.metadata().iter().collect();
    assert_eq!(pairs, [(&b"retry"[..], &b"no"[..]), (b"\xFF", b"")]);
    assert!(ready(task.next(&mut arrays)).is_none());
    drop(arrays);
    assert_eq!(asked.take(), [], "after on_error the producer is not called");
}

/// A8, C6: neither text nor well-formed metadata has to come with an error, and only the first counts.
#[test]
fn an_error_without_text() {
    let (mut producer, _, mut receiver) = opened(Demand::Prefetch(2));
    producer.error(0, None, Some(&(-1_i32).to_ne_bytes()));
    producer.error(6, Some(c"second"), None);
    assert_ne!(producer.batch(1, &Counter::new()), OK, "nothing may follow but release");
    assert_ne!(producer.end(), OK);
    producer.release();
    let task = Task::default();
    let error = ready(task.next(&mut receiver)).unwrap().unwrap_err();
    assert_eq!(error, reported(0, None));
    assert_eq!(error.to_string(), "the producer reported code 0");
    assert!(ready(task.next(&mut receiver)).is_none());
}

/// A9: release alone, at any time before the end, is an error, and not taken for an end.
#[test]
fn release_before_the_end() {
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(1));
    drop(handler);
    let error = receive.wait().unwrap_err();
    assert_eq!(error, StreamError::Unfinished);
    assert_eq!(
        (error.to_string().as_str(), error.errno()),
        ("the producer released the handler before the end of the stream", arrow_device_abi::errno::EIO)
    );

    let (mut producer, _, mut receiver) = opened(Demand::Prefetch(1));
    producer.batch(1, &Counter::new());
    producer.release();
    let task = Task::default();
    assert!(ready(task.next(&mut receiver)).unwrap().is_ok());
    assert_eq!(ready(task.next(&mut receiver)).unwrap().unwrap_err(), StreamError::Unfinished);
    assert!(ready(task.next(&mut receiver)).is_none());
}

/// A4: a task or an end where there can be none is refused, and such a task stays the producer's.
#[test]
fn tasks_out_of_place_are_refused() {
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(1));
    let (mut producer, _) = StubProducer::new(handler);
    let released = Counter::new();
    assert_ne!(producer.offer().batch(1, &released), OK, "before the schema");
    assert_ne!(producer.end(), OK);
    assert_eq!((producer.extracted.counts(), released.get()), ((0, 0), 1));
    assert_eq!(producer.schema(&Counter::new()), OK);
    assert_eq!(producer.end(), OK);
    assert_ne!(producer.batch(1, &released), OK, "after the end");
    assert_eq!((producer.extracted.counts(), released.get()), ((0, 0), 2));
    producer.release();
    assert!(Blocking::new(receive.wait().unwrap()).next().is_none());
}

/// C4, A12: in the caller's memory the handler is filled in over whatever is there; its release clears it, is called once,
/// and leaves the producer's private data alone.
#[test]
fn a_handler_at_a_place() {
    let mut place = core::mem::MaybeUninit::<ArrowAsyncDeviceStreamHandler>::uninit();
    let handler = place.as_mut_ptr();
    // SAFETY: valid for writes.
    unsafe { handler.write_bytes(0xAA, 1) };
    // SAFETY: valid until the end of the test, and nobody else uses it.
    let receive = unsafe { AsyncReceiver::prepare_at(handler, Demand::Prefetch(1)) };
    // SAFETY: a live handler, that nobody else releases.
    let owned = unsafe { arrow_device_abi::AsyncHandler::from_raw(handler) }.unwrap();
    assert_eq!(owned.as_ptr(), handler);
    let (mut producer, _) = StubProducer::opened(owned);
    let private = producer.raw().private_data;
    // SAFETY: initialised by now.
    let ours = unsafe { (*handler).private_data };
    assert!(!ours.is_null() && ours != private);
    producer.end();
    assert_eq!(producer.raw().private_data, private);
    producer.release();
    // SAFETY: initialised by now.
    assert!(unsafe { (*handler).is_released() && (*handler).private_data.is_null() });
    assert!(Blocking::new(receive.wait().unwrap()).next().is_none());

    // SAFETY: valid for reads.
    let refused = unsafe { arrow_device_abi::AsyncHandler::from_raw(handler) };
    assert_eq!(refused.unwrap_err(), arrow_device_abi::TakeError::Released);
    // SAFETY: null.
    let refused = unsafe { arrow_device_abi::AsyncHandler::from_raw(core::ptr::null_mut()) };
    assert_eq!(refused.unwrap_err(), arrow_device_abi::TakeError::Null);
}

/// A13: what the producer says of the stream is copied with the schema, and may be malformed.
#[test]
fn additional_metadata() {
    let (handler, receive) = AsyncReceiver::prepare(Demand::ByHand);
    let (mut producer, _) = StubProducer::new(handler);
    producer.with_metadata(encoded(&[(b"rows", b"12")]));
    producer.offer().schema(&Counter::new());
    producer.with_metadata(encoded(&[(b"rows", b"--")]));
    producer.end();
    producer.release();
    let receiver = receive.wait().unwrap();
    assert_eq!(receiver.metadata().unwrap().get(b"rows"), Some(&b"12"[..]));

    let (handler, receive) = AsyncReceiver::prepare(Demand::ByHand);
    let (mut producer, _) = StubProducer::new(handler);
    producer.with_metadata((-3_i32).to_ne_bytes().to_vec());
    assert_eq!(producer.offer().schema(&Counter::new()), OK);
    producer.end();
    producer.release();
    let error = receive.wait().unwrap().metadata().unwrap_err();
    assert_eq!(error, arrow_device_abi::ViewError::Metadata { at: 0, value: -3 });
}

/// A14: a released or null handler is nothing to call.
#[test]
fn callbacks_of_nothing() {
    let (handler, _receive) = AsyncReceiver::prepare(Demand::ByHand);
    // SAFETY: a live handler.
    let copy = unsafe { core::ptr::read(handler.as_ptr()) };
    let mut released = ArrowAsyncDeviceStreamHandler::released();
    for nothing in [core::ptr::null_mut(), &raw mut released] {
        let mut passed = schema(c"i").build();
        // SAFETY: the callbacks refuse a handler that is null or released.
        unsafe {
            assert_ne!(copy.on_schema.unwrap()(nothing, &raw mut passed), OK);
            assert_ne!(copy.on_next_task.unwrap()(nothing, core::ptr::null_mut(), core::ptr::null()), OK);
            copy.on_error.unwrap()(nothing, 1, core::ptr::null(), core::ptr::null());
            copy.release.unwrap()(nothing);
        }
        assert!(passed.is_released());
    }
}
