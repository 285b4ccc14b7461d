//! The driver and the receiver of this crate against each other: on two threads, on two executors, on one.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use core::future::poll_fn;
use core::pin::Pin;
use std::thread;
use std::time::Duration;

use arrow_device_abi::{
    AsyncArrays, AsyncBatch, AsyncReceiver, Blocking, Demand, Driven, MetadataBuf, OwnedDeviceArray,
    StreamError, StreamFailure,
};
use futures_core::Stream;

use common::{Counter, schema};
use stubs::source::{made, source};
use stubs::{CUDA, Task, length, ready};

const MANY: i64 = if cfg!(miri) { 20 } else { 2000 };

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

fn counted(
    count: i64,
    released: &Counter,
) -> impl Iterator<Item = Result<OwnedDeviceArray, StreamFailure>> + use<> {
    let released = released.clone();
    (0..count).map(move |length| Ok(made(length, &released)))
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A5, A14: a thousand batches and more from one thread to another, with every prefetch depth.
#[test]
fn on_two_threads() {
    for depth in [1, 2, 3, 16, 4096] {
        let released = Counter::new();
        let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(depth));
        // SAFETY: the arrays are of this schema.
        let drive =
            unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), counted(MANY, &released)) };
        let driving = thread::spawn(move || drive.wait());
        let receiver = receive.wait().unwrap();
        assert_eq!(receiver.device_type(), CUDA.device_type);
        let lengths = Blocking::new(receiver.into_arrays()).map(|array| length(&array.unwrap()));
        assert!(lengths.eq(0..MANY));
        assert_eq!(driving.join().unwrap(), Driven::Complete);
        assert_eq!(released.get() as i64, MANY);
    }
}

async fn drain(mut arrays: AsyncArrays) -> i64 {
    let mut expected = 0;
    while let Some(array) = next(&mut arrays).await {
        assert_eq!(length(&array.unwrap()), expected);
        expected += 1;
        if expected % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    expected
}

/// A14: an executor on each of two threads, and both ends on one.
#[test]
fn on_executors() {
    for together in [false, true] {
        let released = Counter::new();
        let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(3));
        // SAFETY: the arrays are of this schema.
        let drive =
            unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), counted(MANY, &released)) };
        let drained = async { drain(receive.await.unwrap().into_arrays()).await };
        let (end, taken) = if together {
            block_on(async {
                let driving = tokio::spawn(drive);
                let taken = drained.await;
                (driving.await.unwrap(), taken)
            })
        } else {
            let driving = thread::spawn(move || block_on(drive));
            let taken = block_on(drained);
            (driving.join().unwrap(), taken)
        };
        assert_eq!((end, taken, released.get() as i64), (Driven::Complete, MANY, MANY));
    }
}

/// A8, B10: an error in the middle arrives with code and text, after the batches before it; and passed on by another
/// stream it keeps them.
#[test]
fn an_error_in_the_middle() {
    let (source, feed) = source();
    let released = Counter::new();
    feed.batch(1, &released);
    feed.batch(2, &released);
    feed.error(StreamFailure::new(-5, "größe unbekannt"));
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(1));
    // SAFETY: the arrays are of this schema.
    let drive = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
    let driving = thread::spawn(move || drive.wait());
    let mut arrays = Blocking::new(receive.wait().unwrap().into_arrays());
    assert_eq!(length(&arrays.next().unwrap().unwrap()), 1);
    assert_eq!(length(&arrays.next().unwrap().unwrap()), 2);
    let error = arrays.next().unwrap().unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-5), Some("größe unbekannt")));
    assert!(arrays.next().is_none());
    assert_eq!(driving.join().unwrap(), Driven::Failed(StreamFailure::new(-5, "größe unbekannt")));
    assert_eq!(StreamFailure::from(error).code(), -5);
    assert_eq!((released.get(), feed.dropped.get()), (2, 1));
}

/// A7: the receiver is dropped at any point: the driver ends as cancelled, and every batch is released once.
#[test]
fn an_early_drop() {
    for taken in [0, 1, 5] {
        for depth in [1, 4] {
            let released = Counter::new();
            let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(depth));
            let endless = counted(i64::MAX, &released);
            let made = Counter::new();
            let count = made.clone();
            let endless = endless.inspect(move |_| count.add());
            // SAFETY: the arrays are of this schema.
            let drive = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), endless) };
            let driving = thread::spawn(move || drive.wait());
            let mut arrays = Blocking::new(receive.wait().unwrap().into_arrays());
            for _ in 0..taken {
                drop(arrays.next().unwrap().unwrap());
            }
            drop(arrays);
            assert_eq!(driving.join().unwrap(), Driven::Cancelled);
            assert_eq!(released.get(), made.get());
            assert!(made.get() <= taken + depth as usize + 1, "no more than asked for, and one ahead");
        }
    }

    // Before the schema was taken, and before it was passed.
    for first in [true, false] {
        let released = Counter::new();
        let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(2));
        // SAFETY: the arrays are of this schema.
        let mut drive =
            unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), counted(9, &released)) };
        let task = Task::default();
        if first {
            assert!(task.poll(&mut drive).is_pending());
        }
        drop(receive);
        assert_eq!(ready(task.poll(&mut drive)), Driven::Cancelled);
    }
}

/// A5, A7: a consumer that steers by hand, slowly, and cancels from a third thread; a producer that is slow.
#[test]
fn slow_ends() {
    let wait = || thread::sleep(Duration::from_millis(1));
    let released = Counter::new();
    let (handler, receive) = AsyncReceiver::prepare(Demand::ByHand);
    let slow = counted(i64::MAX, &released).inspect(move |_| wait());
    // SAFETY: the arrays are of this schema.
    let drive = unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), slow) };
    let driving = thread::spawn(move || drive.wait());
    let receiver = receive.wait().unwrap();
    let control = receiver.control().clone();
    let mut tasks = Blocking::new(receiver);
    for expected in 0..5 {
        control.request(1);
        wait();
        let array = tasks.next().unwrap().unwrap().extract().unwrap();
        assert_eq!(length(&array), expected);
    }
    control.request(1);
    let cancelling = thread::spawn(move || control.cancel());
    let rest = tasks.map(Result::unwrap).count();
    cancelling.join().unwrap();
    assert!(rest <= 1, "{rest}");
    assert_eq!(driving.join().unwrap(), Driven::Cancelled);
}

/// A9: a driver that is dropped in the middle is an error, not an end.
#[test]
fn the_driver_goes() {
    let (source, feed) = source();
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(2));
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive(CUDA.device_type, schema(c"+s").own(), source) };
    feed.batch(1, &Counter::new());
    let task = Task::default();
    assert!(task.poll(&mut drive).is_pending());
    drop(drive);
    let mut arrays = Blocking::new(receive.wait().unwrap().into_arrays());
    assert_eq!(length(&arrays.next().unwrap().unwrap()), 1);
    let error = arrays.next().unwrap().unwrap_err();
    assert_eq!(error.message(), Some("the producer was dropped before the end of the stream"));
}

/// A4, A13: received and driven on: what was told with the stream and with its batches is told again.
#[test]
fn metadata_is_passed_on() {
    let told = || {
        let schema = common::schema(c"i").metadata(&stubs::encoded(&[(b"k", b"v")]), 0).own();
        MetadataBuf::from(schema.view().unwrap().metadata().unwrap())
    };
    assert_eq!(format!("{:?}", told()), r#"{"k": "v"}"#);
    assert_eq!(told(), told().clone());
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(2));
    let batch = AsyncBatch { array: made(1, &Counter::new()), metadata: told() };
    // SAFETY: the arrays are of this schema.
    let drive =
        unsafe { handler.drive_iter(CUDA.device_type, schema(c"+s").own(), [Ok::<_, StreamFailure>(batch)]) }
            .with_metadata(told());
    assert_eq!(drive.wait(), Driven::Complete);
    let receiver = receive.wait().unwrap();

    let (handler, again) = AsyncReceiver::prepare(Demand::Prefetch(2));
    let metadata = receiver.metadata().unwrap().into();
    let schema = receiver.schema().try_clone().unwrap();
    let batches = Blocking::new(receiver).map(|task| {
        let task = task?;
        let metadata = task.metadata().unwrap().into();
        Ok::<_, StreamError>(AsyncBatch { array: task.extract()?, metadata })
    });
    // SAFETY: the arrays are of this schema.
    let drive = unsafe { handler.drive_iter(CUDA.device_type, schema, batches) }.with_metadata(metadata);
    assert_eq!(drive.wait(), Driven::Complete);
    let receiver = again.wait().unwrap();
    assert_eq!(receiver.metadata().unwrap().get(b"k"), Some(&b"v"[..]));
    let task = Blocking::new(receiver).next().unwrap().unwrap();
    assert_eq!(task.metadata().unwrap().get(b"k"), Some(&b"v"[..]));
}
