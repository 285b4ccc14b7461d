//! Tasks: extracted once, somewhere, some time; and what can go wrong with that.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use std::thread;

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{AsyncTask, Blocking, Demand, Device, StreamError, ViewError};
use futures_core::FusedStream;

use common::{Bare, Counter, array, on_device};
use stubs::producer::{Call, TaskStub};
use stubs::{OK, Task, batch, encoded, length, opened, ready};

fn stub(array: ArrowDeviceArray) -> TaskStub {
    TaskStub { array, code: 0, metadata: None, has_callback: true }
}

/// A4, A10: tasks are copies: extracted once or discarded once, in any order, on any thread, after release too.
#[test]
fn each_is_extracted_once() {
    let (mut producer, _, receiver) = opened(Demand::Prefetch(9));
    let released = Counter::new();
    for length in 1..=4 {
        assert_eq!(producer.batch(length, &released), OK);
    }
    producer.end();
    let extracted = producer.extracted.clone();
    let mut tasks: Vec<AsyncTask> = Blocking::new(receiver).map(Result::unwrap).collect();
    producer.release();
    assert_eq!(extracted.counts(), (0, 0));

    let last = tasks.pop().unwrap();
    let array = thread::spawn(move || last.extract().unwrap()).join().unwrap();
    assert_eq!((length(&array), extracted.counts(), released.get()), (4, (1, 0), 0));
    drop(tasks.pop());
    assert_eq!((extracted.counts(), released.get()), ((1, 1), 1));
    thread::spawn(move || drop(tasks)).join().unwrap();
    assert_eq!((extracted.counts(), released.get()), ((1, 3), 3));
    drop(array);
    assert_eq!(released.get(), 4, "arrays are released on their own");
}

/// A4: what comes with a task is copied, and none at all, or malformed, is told apart; the batch is there all the same.
#[test]
fn metadata() {
    let (mut producer, _, receiver) = opened(Demand::Prefetch(9));
    let malformed = 7_i32.to_ne_bytes().into_iter().chain((-1_i32).to_ne_bytes()).collect();
    for metadata in [None, Some(encoded(&[])), Some(encoded(&[(b"row", b"7")])), Some(malformed)] {
        producer.task(TaskStub { metadata, ..stub(batch(1, &Counter::new())) });
    }
    producer.end();
    producer.release();
    let tasks: Vec<AsyncTask> = Blocking::new(receiver).map(Result::unwrap).collect();
    let seen: Vec<_> = tasks.iter().map(|task| task.metadata().map(|pairs| pairs.get(b"row"))).collect();
    let malformed = ViewError::Metadata { at: 4, value: -1 };
    assert_eq!(seen, [Ok(None), Ok(None), Ok(Some(&b"7"[..])), Err(malformed)]);
    for task in tasks {
        assert_eq!(length(&task.extract().unwrap()), 1);
    }
}

/// A10: where extracting fails, what was left in the out-struct is not released; the producer's error follows, and is the
/// stream's.
#[test]
fn extracting_fails() {
    for follows in [true, false] {
        let (mut producer, asked, receiver) = opened(Demand::Prefetch(9));
        asked.take();
        let [garbage, released] = [Counter::new(), Counter::new()];
        producer.batch(1, &released);
        producer.task(TaskStub { code: 12, ..stub(Bare::bare(&garbage, true)) });
        producer.batch(3, &released);
        let task = Task::default();
        let mut arrays = receiver.into_arrays();
        assert_eq!(length(&ready(task.next(&mut arrays)).unwrap().unwrap()), 1);
        assert!(task.next(&mut arrays).is_pending(), "the producer has something to say about it");
        assert_eq!(asked.take(), [Call::Cancel]);
        assert!(!arrays.is_terminated());
        assert_eq!(producer.batch(4, &released), OK);
        if follows {
            producer.error(5, Some(c"cannot decode"), None);
        }
        let extracted = producer.extracted.clone();
        producer.release();
        let error = ready(task.next(&mut arrays)).unwrap().unwrap_err();
        if follows {
            assert_eq!((error.code(), error.message()), (Some(5), Some("cannot decode")));
        } else {
            assert_eq!(error, StreamError::Failed { callback: "extract_data", code: 12, message: None });
            assert_eq!(error.to_string(), "extract_data failed with code 12");
        }
        assert!(ready(task.next(&mut arrays)).is_none());
        assert!(arrays.is_terminated());
        assert_eq!((garbage.get(), released.get(), extracted.counts()), (0, 3, (2, 2)));
    }
}

/// A10: who extracts tasks alone is told the code, and asks nobody.
#[test]
fn a_task_that_cannot_be_extracted() {
    let (mut producer, asked, receiver) = opened(Demand::Prefetch(9));
    asked.take();
    producer.task(TaskStub { code: -1, ..stub(ArrowDeviceArray::released()) });
    producer.error(-1, None, None);
    producer.release();
    let mut tasks = Blocking::new(receiver);
    let error = tasks.next().unwrap().unwrap().extract().unwrap_err();
    assert_eq!((error.code(), error.errno()), (Some(-1), -1));
    assert_eq!(tasks.next().unwrap().unwrap_err().code(), Some(-1));
    assert!(tasks.next().is_none());
    assert_eq!(asked.take(), []);
}

/// S1, A10: an array on another type of device than its stream, nothing where an array was promised, no callback: each is
/// the error, at once, and the end; the stream is cancelled and the rest discarded.
#[test]
fn what_is_no_array_of_the_stream() {
    let released = Counter::new();
    let elsewhere = || on_device(array(1).counted(&released), Device::CPU, None);
    let mismatch = StreamError::DeviceType { stream: ArrowDeviceType::CUDA, array: ArrowDeviceType::CPU };
    let cases = [
        (stub(elsewhere()), mismatch),
        (stub(ArrowDeviceArray::released()), StreamError::ReleasedArray),
        (
            TaskStub { has_callback: false, ..stub(elsewhere()) },
            StreamError::MissingCallback { callback: "extract_data" },
        ),
    ];
    assert_eq!(StreamError::ReleasedArray.to_string(), "extract_data succeeded with a released array");
    for (wrong, expected) in cases {
        let (mut producer, asked, receiver) = opened(Demand::Prefetch(9));
        asked.take();
        producer.task(wrong);
        producer.batch(1, &released);
        let task = Task::default();
        let mut arrays = receiver.into_arrays();
        assert_eq!(ready(task.next(&mut arrays)).unwrap().unwrap_err(), expected);
        assert!(ready(task.next(&mut arrays)).is_none());
        assert_eq!(asked.take(), [Call::Cancel]);
        drop(arrays);
        producer.error(9, Some(c"seen by nobody"), None);
        assert_eq!(producer.extracted.discarded.get(), 1);
        producer.release();
    }
    assert_eq!(released.get(), 5);
}
