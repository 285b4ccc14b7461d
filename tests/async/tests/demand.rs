//! Receiving: what is asked for, and how the consumer ends it. Callbacks one after the other on one thread, against a stub
//! in Rust.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use arrow_device_abi::{AsyncReceiver, Demand, Receive};

use common::Counter;
use stubs::producer::{Call, StubProducer};
use stubs::{OK, Task, opened, ready};

/// A5, A6: nothing is asked for before the schema; then as many as the depth, and half of them again when they were
/// taken: there are never more on their way and waiting than the depth.
#[test]
fn prefetching() {
    for (depth, first, half) in [(0, 1, 1), (1, 1, 1), (4, 4, 2), (5, 5, 3)] {
        let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(depth));
        let (mut producer, asked) = StubProducer::new(handler);
        producer.offer();
        assert_eq!(asked.take(), []);
        producer.schema(&Counter::new());
        assert_eq!(asked.take(), [Call::Request(first)]);
        let mut receiver = receive.wait().unwrap();
        let task = Task::default();
        for _ in 0..3 {
            for taken in 1..=half {
                producer.batch(1, &Counter::new());
                drop(ready(task.next(&mut receiver)));
                let expected: &[_] = if taken == half { &[Call::Request(half)] } else { &[] };
                assert_eq!(asked.take(), expected, "depth {depth}, {taken} taken");
            }
        }
        assert!(task.next(&mut receiver).is_pending());
        assert_eq!(asked.take(), [], "waiting asks for nothing");
        assert_eq!(receiver.control().requested(), first + 3 * half);
        producer.end();
        producer.release();
    }
}

/// A5: by hand nothing is asked for but what the consumer says, which counts beside prefetching too.
#[test]
fn requests_by_hand() {
    let (mut producer, asked, mut receiver) = opened(Demand::ByHand);
    assert_eq!(asked.take(), []);
    receiver.control().request(0);
    assert_eq!(asked.take(), []);
    let elsewhere = receiver.control().clone();
    receiver.control().request(3);
    elsewhere.request(u32::MAX);
    assert_eq!(asked.take(), [Call::Request(3), Call::Request(u32::MAX.into())]);
    producer.batch(1, &Counter::new());
    drop(ready(Task::default().next(&mut receiver)));
    assert_eq!(asked.take(), []);
    producer.end();
    elsewhere.request(1);
    producer.release();
    elsewhere.request(1);
    elsewhere.cancel();
    assert_eq!(asked.take(), [], "after the end and after release nothing is called");

    let (mut producer, asked, receiver) = opened(Demand::Prefetch(2));
    receiver.control().request(5);
    assert_eq!(asked.take(), [Call::Request(2), Call::Request(5)]);
    producer.end();
    producer.release();
}

/// A7: cancel is asked for once; no request follows; what still comes can be taken; release is the end then, no error.
#[test]
fn cancel() {
    let (mut producer, asked, mut receiver) = opened(Demand::Prefetch(2));
    producer.batch(1, &Counter::new());
    asked.take();
    for _ in 0..3 {
        receiver.control().cancel();
    }
    receiver.control().request(4);
    assert_eq!(asked.take(), [Call::Cancel]);
    assert_eq!(producer.batch(2, &Counter::new()), OK);
    let task = Task::default();
    for _ in 0..2 {
        assert!(ready(task.next(&mut receiver)).unwrap().is_ok());
    }
    assert!(task.next(&mut receiver).is_pending(), "it ends in release");
    producer.release();
    assert_eq!(task.woken(), 1);
    assert!(ready(task.next(&mut receiver)).is_none());
    drop(receiver);
    assert_eq!(asked.take(), []);
}

/// A7, A10: dropped early: cancel, once; what is queued and what still comes is discarded; then nothing is called.
#[test]
fn an_early_drop() {
    let (mut producer, asked, receiver) = opened(Demand::Prefetch(4));
    asked.take();
    let released = Counter::new();
    producer.batch(1, &released);
    producer.batch(2, &released);
    let control = receiver.control().clone();
    drop(receiver);
    assert_eq!(asked.take(), [Call::Cancel]);
    assert_eq!((producer.extracted.counts(), released.get()), ((0, 2), 2));
    assert_eq!(producer.batch(3, &released), OK);
    assert_eq!((producer.extracted.counts(), released.get()), ((0, 3), 3));
    control.request(1);
    control.cancel();
    producer.end();
    producer.release();
    control.request(1);
    assert_eq!(asked.take(), []);
}

/// A7, A11: dropped before the schema comes, it is cancelled when it does: nothing asked for, and the schema released.
#[test]
fn a_drop_before_the_schema() {
    let (handler, receive): (_, Receive) = AsyncReceiver::prepare(Demand::Prefetch(4));
    let (mut producer, asked) = StubProducer::new(handler);
    drop(receive);
    let released = Counter::new();
    assert_eq!(producer.offer().schema(&released), OK);
    assert_eq!((asked.take(), released.get()), (vec![Call::Cancel], 1));
    producer.release();

    // Dropped after it came, and before it was taken.
    let (handler, receive) = AsyncReceiver::prepare(Demand::ByHand);
    let (mut producer, asked) = StubProducer::new(handler);
    assert_eq!(producer.offer().schema(&released), OK);
    drop(receive);
    assert_eq!((asked.take(), released.get()), (vec![Call::Cancel], 2));
    producer.error(1, None, None);
    producer.release();
}
