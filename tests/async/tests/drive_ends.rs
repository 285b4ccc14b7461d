//! Driving to an end that is not the source's: cancelled, refused, failed, dropped. Each is followed by release, once, and
//! everything is freed, once.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::thread;

use arrow_device_abi::errno::{EINVAL, EIO};
use arrow_device_abi::{Driven, OwnedDeviceArray, OwnedSchema, StreamFailure};
use futures_core::Stream;

use common::{Counter, own, schema};
use stubs::handler::{Event, Script, Take, Upstream, handler};
use stubs::source::{Feed, made, source};
use stubs::{CUDA, Task, ready};

fn opened() -> Event {
    Event::Schema("+s".to_owned(), CUDA.device_type)
}

fn failed(code: i32, text: &str) -> Driven {
    Driven::Failed(StreamFailure::new(code, text))
}

/// Drives a source with batches of 1, 2, 3 … rows that are all there, and says how it ended, and with which calls.
fn ends(script: Script, batches: i64) -> (Driven, Vec<Event>) {
    let (handler, called) = handler(script);
    let (source, feed) = source();
    let [arrays, schemas] = [Counter::new(), Counter::new()];
    for length in 1..=batches {
        feed.batch(length, &arrays);
    }
    feed.end();
    let schema = schema(c"+s").counted(&schemas).own();
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive(CUDA.device_type, schema, source) };
    let task = Task::default();
    let end = ready(task.poll(&mut drive));
    assert_eq!(feed.dropped.get(), 1, "the source goes with the end");
    drop((called.schema(), feed));
    assert_eq!((arrays.get() as i64, schemas.get()), (batches, 1));
    assert_eq!(ready(task.poll(&mut drive)), end);
    drop(drive);
    (end, called.take())
}

type Hook = fn(Upstream) -> i32;

fn script(on_schema: Hook, on_task: Hook) -> Script {
    Script { on_schema: Some(Box::new(on_schema)), ..Script::default() }.on_task(on_task)
}

/// A7, C11: cancelled within a callback: no error, no further batch though more were asked for, release.
#[test]
fn cancelled_within_callbacks() {
    let ask: Hook = |producer| {
        producer.request(9);
        0
    };
    let cancel: Hook = |producer| {
        producer.cancel();
        producer.cancel();
        // After cancel a request does nothing, not even an impossible one.
        producer.request(3);
        producer.request(-3);
        0
    };
    let (end, events) = ends(script(cancel, ask), 2);
    assert_eq!((end, events), (Driven::Cancelled, vec![opened(), Event::Release]));
    let (end, events) = ends(script(ask, cancel), 2);
    assert_eq!((end, events), (Driven::Cancelled, vec![opened(), Event::Batch(1), Event::Release]));
}

/// A7, C11: cancelled three times, from two other threads, while it waits for a request, for the source, or for nothing.
#[test]
fn cancelled_from_other_threads() {
    for (requested, sent) in [(0, 2), (9, 0), (9, 5)] {
        let (handler, called) = handler(Script::requesting(requested.max(1)));
        let (source, feed) = source();
        let released = Counter::new();
        let sent = if requested == 0 { sent + 1 } else { sent };
        for length in 0..sent {
            feed.batch(length, &released);
        }
        // SAFETY: the arrays are of this schema.
        let mut drive = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
        let task = Task::default();
        assert!(task.poll(&mut drive).is_pending());
        let producer = called.producer().unwrap();
        let first = thread::spawn(move || {
            producer.cancel();
            producer.cancel();
        });
        thread::spawn(move || producer.cancel()).join().unwrap();
        first.join().unwrap();
        assert_eq!(task.woken(), 1);
        assert_eq!(ready(task.poll(&mut drive)), Driven::Cancelled);
        let events = called.take();
        assert_eq!(events.last(), Some(&Event::Release));
        assert_eq!(events.iter().filter(|event| **event == Event::Release).count(), 1);
        assert!(!events.iter().any(|event| matches!(event, Event::Error(..) | Event::End)), "{events:?}");
        drop(drive);
        assert_eq!((released.get() + feed.left(), feed.dropped.get()), (sent as usize, 1));
    }
}

/// A6, X8, C11: a request for less than one is an error through `on_error`, from a callback and from elsewhere, and the end.
#[test]
fn impossible_requests() {
    let nothing: Hook = |_| 0;
    let none: Hook = |producer| {
        producer.request(0);
        producer.request(4);
        0
    };
    let negative: Hook = |producer| {
        producer.request(-1);
        0
    };
    let ask: Hook = |producer| {
        producer.request(1);
        0
    };
    for (script, n, passed) in [
        (script(none, nothing), 0, vec![]),
        (script(negative, nothing), -1, vec![]),
        (script(ask, negative), -1, vec![Event::Batch(1)]),
        (script(ask, none), 0, vec![Event::Batch(1)]),
    ] {
        let (end, events) = ends(script, 2);
        let text = format!("the consumer requested {n} batches");
        assert_eq!(end, failed(EINVAL, &text));
        let expected = [vec![opened()], passed, vec![Event::Error(EINVAL, text), Event::Release]].concat();
        assert_eq!(events, expected);
    }

    let (handler, called) = handler(Script::default());
    let (source, _feed) = source();
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
    let task = Task::default();
    assert!(task.poll(&mut drive).is_pending());
    called.producer().unwrap().request(i64::MIN);
    assert_eq!((called.take(), task.woken()), (vec![opened()], 1), "nothing is called within request (X8)");
    assert!(matches!(ready(task.poll(&mut drive)), Driven::Failed(_)));
    assert!(matches!(&called.take()[..], [Event::Error(EINVAL, _), Event::Release]));
}

/// A3: a schema, a task or an end that is refused is followed by release alone, whatever was asked for meanwhile; a task
/// that is refused is freed if it was not extracted, and only then.
#[test]
fn refused() {
    let ask: Hook = |producer| {
        producer.request(9);
        0
    };
    let refuse: Hook = |producer| {
        producer.request(0);
        7
    };
    let refused = |callback, code| Driven::Refused { callback, code };
    for leaves_schema in [false, true] {
        let (end, events) = ends(Script { leaves_schema, ..script(refuse, ask) }, 2);
        assert_eq!((end, events), (refused("on_schema", 7), vec![opened(), Event::Release]));
    }
    for (take, event) in
        [(Take::Extract, Event::Batch(1)), (Take::Discard, Event::Task), (Take::Leave, Event::Task)]
    {
        let (end, events) = ends(Script { take, ..script(ask, refuse) }, 3);
        assert_eq!((end, events), (refused("on_next_task", 7), vec![opened(), event, Event::Release]));
    }
    let (end, events) = ends(Script { on_end: -1, ..script(ask, ask) }, 1);
    assert_eq!(end, refused("on_next_task", -1));
    assert_eq!(events, [opened(), Event::Batch(1), Event::End, Event::Release]);
}

/// A11: a handler that neither moves nor releases the schema leaves it to be released here.
#[test]
fn a_schema_that_is_left() {
    let (end, _) = ends(Script { leaves_schema: true, ..Script::requesting(2) }, 2);
    assert_eq!(end, Driven::Complete);
}

/// Drives what `fill` feeds, to its end, and says how that was, and the last calls.
fn fails(fill: impl FnOnce(&Feed)) -> (Driven, Vec<Event>) {
    let (handler, called) = handler(Script::requesting(9));
    let (source, feed) = source();
    fill(&feed);
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
    let end = ready(Task::default().poll(&mut drive));
    assert_eq!(feed.dropped.get(), 1);
    (end, called.take())
}

/// A8, B10: an error of the source comes after the batches before it, with code and text, and only release follows.
#[test]
fn errors_of_the_source() {
    let released = Counter::new();
    let (end, events) = fails(|feed| {
        feed.batch(1, &released);
        feed.error(StreamFailure::new(123, "disk gone"));
        feed.batch(2, &released);
    });
    assert_eq!(end, failed(123, "disk gone"));
    let error = Event::Error(123, "disk gone".to_owned());
    assert_eq!(events, [opened(), Event::Batch(1), error, Event::Release]);
    assert_eq!(released.get(), 2, "one was passed, and one went with what fed it");

    // Any error will do, and is told without a request.
    let (handler, called) = handler(Script::default());
    let items = [Err::<OwnedDeviceArray, _>(io::Error::from_raw_os_error(EIO))];
    // SAFETY: the arrays are of this schema.
    let drive = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), items) };
    let text = io::Error::from_raw_os_error(EIO).to_string();
    assert_eq!(drive.wait(), failed(EIO, &text));
    assert_eq!(called.take(), [opened(), Event::Error(EIO, text), Event::Release]);
}

/// S1, S3: an array on another type of device, and a released one, never leave: an error, and the array released.
#[test]
fn arrays_that_may_not_leave() {
    let other = arrow_device_abi::Device::CPU;
    let released = Counter::new();
    let array = own(common::on_device(common::array(1).counted(&released), other, None));
    for (array, text) in [
        (array, "an array on device type CPU in a stream of device type CUDA"),
        (OwnedDeviceArray::released(), "the producer of the stream gave a released array"),
    ] {
        let (handler, called) = handler(Script::requesting(9));
        let drive =
            // SAFETY: the arrays are of this schema.
            unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), [Ok::<_, StreamFailure>(array)]) };
        assert_eq!(drive.wait(), failed(EINVAL, text));
        assert_eq!(called.take(), [opened(), Event::Error(EINVAL, text.to_owned()), Event::Release]);
    }
    assert_eq!(released.get(), 1);
}

/// A2, A8: a schema that is released is an error without a schema before it; so is a callback that is missing.
#[test]
fn nothing_to_call() {
    let items = || [Ok::<_, StreamFailure>(made(1, &Counter::new()))];
    let (handled, called) = handler(Script::requesting(9));
    // SAFETY: the arrays are of this schema.
    let end = unsafe { handled.drive_iter(CUDA.device_type, OwnedSchema::released(), items()) }.wait();
    let text = "the schema of the stream is released";
    assert_eq!(end, failed(EINVAL, text));
    assert_eq!(called.take(), [Event::Error(EINVAL, text.to_owned()), Event::Release]);

    for (callback, batches) in [("on_schema", 1), ("on_next_task", 1), ("on_next_task", 0)] {
        let (handler, called) = handler(Script::requesting(9));
        let raw = handler.as_ptr();
        // SAFETY: a live handler that nobody calls yet.
        unsafe {
            match callback {
                "on_schema" => (*raw).on_schema = None,
                _ => (*raw).on_next_task = None,
            }
        }
        let items = items().into_iter().take(batches);
        // SAFETY: the arrays are of this schema.
        let end = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), items) }.wait();
        let text = format!("the handler has no {callback}");
        assert_eq!(end, failed(EINVAL, &text));
        let events = called.take();
        assert_eq!(events[events.len() - 2..], [Event::Error(EINVAL, text), Event::Release]);
    }

    let (handler, called) = handler(Script::requesting(9));
    // SAFETY: a live handler that nobody calls yet.
    unsafe { (*handler.as_ptr()).on_error = None };
    let items = [Err::<OwnedDeviceArray, _>(StreamFailure::new(1, "nobody hears of"))];
    // SAFETY: the arrays are of this schema.
    let end = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), items) }.wait();
    assert_eq!((end, called.take()), (failed(1, "nobody hears of"), vec![opened(), Event::Release]));
}

/// A source that panics where it is told to.
struct Panics {
    after: usize,
    in_drop: bool,
}

impl Stream for Panics {
    type Item = Result<OwnedDeviceArray, StreamFailure>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.after.checked_sub(1) {
            Some(left) => self.after = left,
            None if self.in_drop => return Poll::Ready(None),
            // As a panic would, but without a report on standard error.
            None => std::panic::resume_unwind(Box::new("no more".to_owned())),
        }
        Poll::Ready(Some(Ok(made(1, &Counter::new()))))
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if self.in_drop {
            std::panic::resume_unwind(Box::new("not even now"));
        }
    }
}

/// C9, A8: a panic of the source is an error, and one of its end is nothing that the consumer sees.
#[test]
fn panics_of_the_source() {
    let (handled, called) = handler(Script::requesting(9));
    let panics = Panics { after: 1, in_drop: false };
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handled.drive(CUDA.device_type, schema(c"+s").own(), panics) };
    let text = "the producer of the stream panicked: no more";
    assert_eq!(ready(Task::default().poll(&mut drive)), failed(EIO, text));
    let error = Event::Error(EIO, text.to_owned());
    assert_eq!(called.take(), [opened(), Event::Batch(1), error, Event::Release]);

    let (handler, called) = handler(Script::requesting(9));
    // SAFETY: the arrays are of this schema.
    let drive =
        unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), Panics { after: 1, in_drop: true }) };
    assert_eq!(drive.wait(), Driven::Complete);
    assert_eq!(called.take(), [opened(), Event::Batch(1), Event::End, Event::Release]);
}

/// C9, A6: a waker that panics does so in the consumer's request, and no further.
#[test]
fn panics_of_the_waker() {
    struct Panicking;
    impl std::task::Wake for Panicking {
        fn wake(self: std::sync::Arc<Self>) {
            std::panic::resume_unwind(Box::new("woken"));
        }
    }
    let (handler, called) = handler(Script::default());
    let items = [Ok::<_, StreamFailure>(made(1, &Counter::new()))];
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), items) };
    let waker = std::sync::Arc::new(Panicking).into();
    let mut context = Context::from_waker(&waker);
    assert!(Future::poll(Pin::new(&mut drive), &mut context).is_pending());
    called.producer().unwrap().request(1);
    assert_eq!(drive.wait(), Driven::Complete);
}

/// A1, A8, A9: a driver that is dropped tells of it and releases the handler, also if it has called nothing before; after
/// cancel there is nothing to tell. A handler that nobody drives is released alone.
#[test]
fn dropped() {
    let error = Event::Error(EIO, "the producer was dropped before the end of the stream".to_owned());
    for polled in [false, true] {
        let (handler, called) = handler(Script::default());
        let (source, feed) = source();
        let [arrays, schemas] = [Counter::new(), Counter::new()];
        feed.batch(1, &arrays);
        let schema = schema(c"+s").counted(&schemas).own();
        // SAFETY: the arrays are of this schema.
        let mut drive = unsafe { handler.drive(CUDA.device_type, schema, source) };
        let first = if polled {
            assert!(Task::default().poll(&mut drive).is_pending());
            vec![opened()]
        } else {
            vec![]
        };
        drop(drive);
        assert_eq!(called.take(), [first, vec![error.clone(), Event::Release]].concat());
        drop(called.schema());
        assert_eq!((arrays.get() + feed.left(), schemas.get(), feed.dropped.get()), (1, 1, 1));
    }

    let (handled, called) = handler(Script::default());
    let (source, _feed) = source();
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handled.drive(CUDA.device_type, schema(c"+s").own(), source) };
    assert!(Task::default().poll(&mut drive).is_pending());
    called.producer().unwrap().cancel();
    drop(drive);
    assert_eq!(called.take(), [opened(), Event::Release]);

    let (handler, called) = handler(Script::default());
    drop(handler);
    assert_eq!(called.take(), [Event::Release]);
}
