//! Callbacks on one thread, the consumer on another; and calls within calls.

#[path = "../../common/mod.rs"]
mod common;
mod stubs;

use core::pin::Pin;
use core::ptr;
use core::task::{Context, Waker};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Wake;
use std::thread;
use std::time::Duration;

use arrow_device_abi::raw::ArrowAsyncDeviceStreamHandler;
use arrow_device_abi::{AsyncReceiver, Blocking, Demand, StreamError};
use futures_core::Stream;

use common::Counter;
use stubs::producer::{Asked, Call, StubProducer};
use stubs::{OK, length};

const MANY: i64 = if cfg!(miri) { 30 } else { 3000 };

/// A receiver, of whose producer nothing has been asked that counts.
fn opened(demand: Demand) -> (StubProducer, Asked, AsyncReceiver) {
    let opened = stubs::opened(demand);
    opened.1.take();
    opened
}

/// A14, A4: each callback from another thread, the consumer waiting on its own: everything in order, then the end.
#[test]
fn callbacks_come_from_any_thread() {
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(3));
    let (mut producer, _) = StubProducer::new(handler);
    let released = Counter::new();
    let count = released.clone();
    let producing = thread::spawn(move || {
        producer.offer();
        producer = thread::spawn(move || {
            assert_eq!(producer.schema(&Counter::new()), OK);
            producer
        })
        .join()
        .unwrap();
        for length in 0..MANY / 100 {
            let count = count.clone();
            producer = thread::spawn(move || {
                assert_eq!(producer.batch(length, &count), OK);
                producer
            })
            .join()
            .unwrap();
        }
        producer.end();
        thread::spawn(move || producer.release()).join().unwrap()
    });
    let arrays = Blocking::new(receive.wait().unwrap().into_arrays());
    let lengths: Vec<_> = arrays.map(|array| length(&array.unwrap())).collect();
    assert_eq!(lengths, (0..MANY / 100).collect::<Vec<_>>());
    assert_eq!(released.get(), lengths.len());
    producing.join().unwrap();
}

/// A5, A14: a producer that keeps to what is asked for, on its own thread; never more in hand than the depth.
#[test]
fn a_producer_that_waits_for_requests() {
    for depth in [1, 2, 7] {
        let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(depth));
        let (mut producer, asked) = StubProducer::new(handler);
        let released = Counter::new();
        let count = released.clone();
        let producing = thread::spawn(move || {
            assert_eq!(producer.offer().schema(&Counter::new()), OK);
            let (mut allowed, mut sent) = (0, 0);
            while sent < MANY {
                for call in asked.take() {
                    let Call::Request(n) = call else { panic!("{call:?}") };
                    allowed += n;
                }
                if sent == allowed {
                    thread::yield_now();
                    continue;
                }
                assert!(allowed - sent <= depth.into(), "{allowed} allowed, {sent} sent");
                assert_eq!(producer.batch(sent, &count), OK);
                sent += 1;
            }
            producer.end();
            producer.release()
        });
        let arrays = Blocking::new(receive.wait().unwrap().into_arrays());
        let mut expected = 0;
        for array in arrays {
            assert_eq!(length(&array.unwrap()), expected);
            expected += 1;
        }
        assert_eq!((expected, released.get() as i64), (MANY, MANY));
        let asked = producing.join().unwrap();
        assert!(!asked.take().contains(&Call::TooLate));
    }
}

/// A7: cancelled from two threads at once, while batches come: one call of the producer's cancel, and the end.
#[test]
fn cancel_from_other_threads() {
    for _ in 0..MANY / 30 {
        let (mut producer, asked, receiver) = opened(Demand::ByHand);
        let cancelling = [(); 2].map(|()| {
            let control = receiver.control().clone();
            thread::spawn(move || control.cancel())
        });
        let released = Counter::new();
        let count = released.clone();
        let producing = thread::spawn(move || {
            while !asked.take().contains(&Call::Cancel) {
                assert_eq!(producer.batch(1, &count), OK);
            }
            (producer.extracted.clone(), producer.release())
        });
        let batches = Blocking::new(receiver.into_arrays()).map(Result::unwrap).count();
        for thread in cancelling {
            thread.join().unwrap();
        }
        let (extracted, asked) = producing.join().unwrap();
        assert_eq!((extracted.counts(), released.get()), ((batches, 0), batches));
        assert_eq!(asked.take(), [], "cancelled twice, or called too late");
    }
}

/// A7, A9: dropped on one thread while batches, the end and release come on another: each batch is freed once, and the
/// producer not called after release.
#[test]
fn drops_meet_callbacks() {
    for round in 0..MANY / 10 {
        let (mut producer, asked, receiver) = opened(Demand::Prefetch(2));
        let released = Counter::new();
        let count = released.clone();
        let producing = thread::spawn(move || {
            for _ in 0..3 {
                assert_eq!(producer.batch(1, &count), OK);
            }
            assert_eq!(producer.end(), OK);
            let extracted = producer.extracted.clone();
            producer.release();
            extracted
        });
        let mut arrays = Blocking::new(receiver.into_arrays());
        for _ in 0..round % 4 {
            drop(arrays.next().unwrap().unwrap());
        }
        drop(arrays);
        let extracted = producing.join().unwrap();
        let (taken, discarded) = extracted.counts();
        assert_eq!((taken as i64, taken + discarded, released.get()), (round % 4, 3, 3));
        assert!(!asked.take().contains(&Call::TooLate));
    }
}

/// A pointer that goes to another thread.
struct Handler(*mut ArrowAsyncDeviceStreamHandler);

// SAFETY: the handler's callbacks may be called from any thread.
unsafe impl Send for Handler {}

/// A1, A9: release waits for a request or cancel that is under way on another thread: the producer is there until then.
#[test]
fn release_waits_for_calls() {
    for cancel in [false, true] {
        let (producer, asked, receiver) = opened(Demand::ByHand);
        let [(entered, has_entered), (leave, may_leave), (released, is_released)] =
            [(); 3].map(|()| mpsc::channel::<()>());
        let hook = move || {
            entered.send(()).unwrap();
            may_leave.recv().unwrap();
        };
        if cancel {
            asked.on_cancel(hook);
        } else {
            asked.on_request(hook);
        }
        let control = receiver.control().clone();
        let calling = thread::spawn(move || if cancel { control.cancel() } else { control.request(1) });
        has_entered.recv().unwrap();
        let releasing = thread::spawn(move || {
            producer.release();
            released.send(()).unwrap();
        });
        assert!(is_released.recv_timeout(Duration::from_millis(50)).is_err(), "the producer would be freed");
        // What comes meanwhile is not passed on.
        receiver.control().request(3);
        leave.send(()).unwrap();
        is_released.recv().unwrap();
        calling.join().unwrap();
        releasing.join().unwrap();
        let expected = if cancel { Call::Cancel } else { Call::Request(1) };
        assert_eq!(asked.take(), [expected]);
    }
}

/// A6: a request while another is under way is left to that one: the producer sees one at a time.
#[test]
fn requests_do_not_overlap() {
    let (mut producer, asked, receiver) = opened(Demand::ByHand);
    let control = receiver.control().clone();
    let log = asked.clone();
    asked.on_request(move || {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| control.request(2));
            }
        });
        control.request(3);
        assert_eq!(log.take(), [Call::Request(1)], "another request within the first");
    });
    receiver.control().request(1);
    assert_eq!(asked.take(), [Call::Request(7)]);
    producer.end();
    producer.release();
}

/// X8, A6, A9: a producer that calls back within request or cancel, though it may call nothing but `on_error`, finds no
/// lock held and waits for nobody, not even with release.
#[test]
fn calls_back_within_calls() {
    for (cancel, with_error, with_release) in [
        (false, true, false),
        (true, true, false),
        (false, false, true),
        (true, false, true),
        (false, true, true),
    ] {
        let (producer, asked, mut receiver) = opened(Demand::ByHand);
        let handler = Handler(producer.handler());
        let hook = move || {
            let Handler(handler) = { handler };
            // SAFETY: a live handler, and no other callback is under way.
            unsafe {
                if with_error {
                    (*handler).on_error.unwrap()(handler, 7, c"no".as_ptr(), ptr::null());
                }
                if with_release {
                    (*handler).release.unwrap()(handler);
                }
            }
        };
        if cancel {
            asked.on_cancel(hook);
            receiver.control().cancel();
        } else {
            asked.on_request(hook);
            receiver.control().request(1);
        }
        receiver.control().request(1);
        if !with_release {
            producer.release();
        }
        let task = stubs::Task::default();
        let end = stubs::ready(task.next(&mut receiver)).map(|end| end.unwrap_err());
        match end {
            Some(StreamError::Reported { code, .. }) => assert_eq!((with_error, code), (true, 7)),
            Some(StreamError::Unfinished) => assert_eq!((with_error, cancel), (false, false)),
            other => assert_eq!((other, with_error, cancel), (None, false, true)),
        }
        assert_eq!(asked.take().len(), 1, "one call, and none after it");
    }
}

/// Polls the receiver where it is woken, once there is one.
struct Inline(Mutex<Option<AsyncReceiver>>, Counter);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        if let Some(receiver) = &mut *self.0.lock().unwrap() {
            let next = Pin::new(receiver).poll_next(&mut Context::from_waker(Waker::noop()));
            assert!(next.is_ready());
            self.1.add();
        }
    }
}

/// A6: a request within `on_next_task`, which an executor that polls where it is woken makes, is as good as any.
#[test]
fn a_request_within_a_callback() {
    let (mut producer, asked, mut receiver) = opened(Demand::Prefetch(1));
    let taken = Counter::new();
    let inline = Arc::new(Inline(Mutex::new(None), taken.clone()));
    let waker = Waker::from(Arc::clone(&inline));
    assert!(Pin::new(&mut receiver).poll_next(&mut Context::from_waker(&waker)).is_pending());
    *inline.0.lock().unwrap() = Some(receiver);
    assert_eq!(producer.batch(1, &Counter::new()), OK);
    assert_eq!((taken.get(), asked.take()), (1, vec![Call::Request(1)]));
    producer.end();
    producer.release();
    let receiver = inline.0.lock().unwrap().take();
    drop(receiver);
}
