//! Driving: what the handler is called with, in which order, and how much of it. How it ends otherwise: `drive_ends.rs`.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use std::sync::{Arc, Mutex};
use std::thread;

use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{AsyncBatch, Drive, Driven, MetadataBuf, OwnedDeviceArray, SchemaNode, StreamFailure};

use common::{Counter, schema};
use stubs::handler::{Event, Script, Take, Upstream, handler};
use stubs::source::{Source, made, source};
use stubs::{CUDA, Task, length, ready};

fn opened() -> Event {
    Event::Schema("+s".to_owned(), CUDA.device_type)
}

fn batches(
    lengths: impl IntoIterator<Item = i64>,
    released: &Counter,
) -> Vec<Result<OwnedDeviceArray, StreamFailure>> {
    lengths.into_iter().map(|length| Ok(made(length, released))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> MetadataBuf {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
    let schema = SchemaNode { metadata: &pairs, ..SchemaNode::default() }.export().unwrap();
    schema.view().unwrap().metadata().unwrap().into()
}

/// A1, A2, A4, A9, A11: the producer first, then the schema, each batch, the end, release; everything is freed once.
#[test]
fn a_whole_stream() {
    let [arrays, schemas] = [Counter::new(), Counter::new()];
    let (handler, called) = handler(Script::requesting(9));
    let schema = schema(c"+s").counted(&schemas).own();
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive_iter(CUDA.device_type, schema, batches([3, 0, 5], &arrays)) };
    assert_eq!(called.take(), [], "nothing before it is polled");
    let task = Task::default();
    assert_eq!(ready(task.poll(&mut drive)), Driven::Complete);
    let batch = Event::Batch;
    assert_eq!(called.take(), [opened(), batch(3), batch(0), batch(5), Event::End, Event::Release]);
    assert_eq!((arrays.get(), schemas.get(), task.woken()), (3, 0, 0));
    drop(called.schema());
    assert_eq!(schemas.get(), 1);
    assert_eq!(ready(task.poll(&mut drive)), Driven::Complete, "polled again it says the same");
    drop(drive);
    assert_eq!(called.take(), []);
}

/// A5: nothing is passed before a request, and never more than the sum of them; one batch is made ahead.
#[test]
fn no_more_than_requested() {
    let (handler, called) = handler(Script::default());
    let (source, feed) = source();
    let released = Counter::new();
    for length in 0..7 {
        feed.batch(length, &released);
    }
    feed.end();
    // SAFETY: the arrays are of this schema.
    let mut drive: Drive<Source> = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
    let task = Task::default();
    assert!(task.poll(&mut drive).is_pending());
    assert_eq!((called.take(), feed.left(), task.woken()), (vec![opened()], 7, 0));
    let producer = called.producer().unwrap();
    let mut passed = 0;
    for (wakes, n) in [(1, 1), (2, 2), (3, 3)] {
        producer.request(n);
        assert_eq!(task.woken(), wakes, "once for each request that it waits for");
        for _ in 0..2 {
            assert!(task.poll(&mut drive).is_pending());
        }
        let expected: Vec<_> = (passed..passed + n).map(Event::Batch).collect();
        passed += n;
        assert_eq!((called.take(), feed.left() as i64), (expected, 7 - passed));
    }
    producer.request(i64::MAX);
    producer.request(i64::MAX);
    assert_eq!(ready(task.poll(&mut drive)), Driven::Complete);
    let rest: Vec<_> = (passed..7).map(Event::Batch).chain([Event::End, Event::Release]).collect();
    assert_eq!((called.take(), released.get(), feed.dropped.get()), (rest, 7, 1));
}

/// A5, A9: the end needs no request: not after the last batch that was asked for, and not of an empty stream.
#[test]
fn the_end_needs_no_request() {
    for n in [0, 1, 3] {
        let (handler, called) = handler(if n == 0 { Script::default() } else { Script::requesting(n) });
        let released = Counter::new();
        // SAFETY: the arrays are of this schema.
        let drive =
            unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), batches(0..n, &released)) };
        assert_eq!(drive.wait(), Driven::Complete);
        let expected: Vec<_> = core::iter::once(opened())
            .chain((0..n).map(Event::Batch))
            .chain([Event::End, Event::Release])
            .collect();
        assert_eq!((called.take(), released.get() as i64), (expected, n));
    }
}

/// A6, C11: a request within `on_next_task` calls nothing, however deep it would go: 100,000 batches, each asked for in the
/// callback of the one before, on a stack of 64 KiB.
#[test]
fn requests_within_callbacks_do_not_grow_the_stack() {
    const MANY: i64 = if cfg!(miri) { 100 } else { 100_000 };
    let run = || {
        let released = Counter::new();
        let script = Script::requesting(1).on_task(|producer| {
            producer.request(1);
            0
        });
        let (handler, called) = handler(script);
        let count = released.clone();
        let batches = (0..MANY).map(move |length| Ok::<_, StreamFailure>(made(length, &count)));
        // SAFETY: the arrays are of this schema.
        let mut drive = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), batches) };
        assert_eq!(ready(Task::default().poll(&mut drive)), Driven::Complete);
        let events = called.take();
        assert_eq!((events.len() as i64, released.get() as i64), (MANY + 3, MANY));
        assert_eq!(events[MANY as usize], Event::Batch(MANY - 1));
    };
    thread::Builder::new().stack_size(64 << 10).spawn(run).unwrap().join().unwrap();
}

/// A4, A14: a source that has nothing yet and a consumer that wants nothing yet are both waited for, on any thread.
#[test]
fn a_source_that_waits() {
    let (handler, called) = handler(Script::requesting(1));
    let (source, feed) = source();
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
    let task = Task::default();
    assert!(task.poll(&mut drive).is_pending());
    feed.batch(1, &Counter::new());
    assert_eq!(task.woken(), 1);
    // The rest on another thread, from which the callbacks come then.
    thread::spawn(move || {
        let task = Task::default();
        assert!(task.poll(&mut drive).is_pending());
        assert_eq!(called.take(), [opened(), Event::Batch(1)]);
        let producer = called.producer().unwrap();
        producer.request(1);
        assert_eq!(task.woken(), 1, "it waits for the source, and for requests, which may be the last");
        assert!(task.poll(&mut drive).is_pending());
        feed.end();
        assert_eq!(ready(task.poll(&mut drive)), Driven::Complete);
        assert_eq!(called.take(), [Event::End, Event::Release]);
    })
    .join()
    .unwrap();
}

/// A10: tasks that are kept can be extracted after release, on any thread, once; and a consumer that asks the producer for
/// more then, as Arrow C++ does, finds it there while it has a task.
#[test]
fn tasks_outlive_the_stream() {
    let producer = Arc::new(Mutex::new(None::<Upstream>));
    let seen = Arc::clone(&producer);
    let script = Script::requesting(3).on_task(move |producer| {
        *seen.lock().unwrap() = Some(producer);
        0
    });
    let (handler, called) = handler(Script { take: Take::Keep, ..script });
    let released = Counter::new();
    // SAFETY: the arrays are of this schema.
    let drive =
        unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), batches(1..=3, &released)) };
    assert_eq!(drive.wait(), Driven::Complete);
    let mut kept = called.kept();
    assert_eq!((kept.len(), released.get()), (3, 0));
    let producer = producer.lock().unwrap().take().unwrap();
    producer.request(1);
    producer.cancel();
    let array = kept.remove(1).extract().unwrap();
    assert_eq!(length(&array), 2);
    thread::spawn(move || {
        for task in kept {
            drop(task.extract().unwrap());
        }
    })
    .join()
    .unwrap();
    assert_eq!(released.get(), 2);
    drop(array);
    assert_eq!(released.get(), 3);
}

/// A10: a batch that is discarded is released.
#[test]
fn discarded_batches_are_released() {
    let (handler, called) = handler(Script { take: Take::Discard, ..Script::requesting(3) });
    let released = Counter::new();
    // SAFETY: the arrays are of this schema.
    let drive =
        unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), batches(1..=3, &released)) };
    assert_eq!(drive.wait(), Driven::Complete);
    assert_eq!((called.take().len(), released.get()), (6, 3));
}

/// A4, A13: what there is to tell of the stream and of each batch is passed with them, and null where there is nothing.
#[test]
fn metadata() {
    let (handler, called) = handler(Script::requesting(2));
    let told = AsyncBatch { array: made(1, &Counter::new()), metadata: pairs(&[("row", "7"), ("", "")]) };
    let untold = AsyncBatch::from(made(2, &Counter::new()));
    let batches = [told, untold].map(Ok::<_, StreamFailure>);
    // SAFETY: the arrays are of this schema.
    let drive = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), batches) }
        .with_metadata(pairs(&[("rows", "3")]));
    assert_eq!(drive.wait(), Driven::Complete);
    let owned = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(called.metadata(), [vec![owned("rows", "3")], vec![owned("row", "7"), owned("", "")], vec![]]);
}

/// S1: a device type without a name is as good as any other.
#[test]
fn an_unknown_device_type() {
    let device = arrow_device_abi::Device::new(ArrowDeviceType(99), 7);
    let array = common::own(common::on_device(common::array(1), device, None));
    let (handler, called) = handler(Script::requesting(2));
    // SAFETY: the arrays are of this schema.
    let drive = unsafe {
        handler.drive_iter(device.device_type, schema(c"+s").own(), [Ok::<_, StreamFailure>(array)])
    };
    assert_eq!(drive.wait(), Driven::Complete);
    assert_eq!(called.take()[0], Event::Schema("+s".to_owned(), device.device_type));
}
