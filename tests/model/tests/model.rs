//! The hand-overs between callbacks and consumer, and between requests and driver, under every interleaving of their
//! threads that loom finds: the files themselves, compiled with loom's primitives.

extern crate alloc;

/// `src/sync.rs` with loom's primitives.
mod sync {
    use core::task::Waker;

    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    use loom::thread::ThreadId;

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap()
    }

    pub(crate) fn wake(waker: Option<Waker>) {
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Caller(ThreadId);

    impl Caller {
        pub(crate) fn current() -> Self {
            Self(loom::thread::current().id())
        }
    }
}

#[path = "../../../src/consumer/async_stream/inbox.rs"]
mod inbox;
#[path = "../../../src/producer/async_stream/orders.rs"]
mod orders;
#[path = "../../../src/watched.rs"]
mod watched;

use core::future::poll_fn;
use core::task::{Context, Poll, Waker};

use inbox::{Inbox, Pushed, Upstream};
use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;
use orders::{Orders, Stop};

/// A producer whose memory loom watches: reading it while it is freed, or afterwards, fails the test.
#[derive(Default)]
struct Producer {
    /// Read by each call, written when the producer is freed.
    memory: UnsafeCell<bool>,
    /// Written by `request`, which must not overlap.
    requested: UnsafeCell<i64>,
    cancelled: AtomicUsize,
}

#[derive(Clone, Copy)]
struct Pointer(*const Producer);

// SAFETY: a producer may be called from any thread.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    fn get(self) -> &'static Producer {
        // SAFETY: each test keeps its producer until all threads have ended.
        unsafe { &*self.0 }
    }

    fn touch(self) {
        // SAFETY: loom says if somebody writes meanwhile.
        self.get().memory.with(|freed| assert!(!unsafe { *freed }, "called after it was freed"));
    }

    /// What a producer does once release has returned.
    fn free(self) {
        // SAFETY: loom says if somebody reads meanwhile.
        self.get().memory.with_mut(|freed| unsafe { *freed = true });
    }

    fn requested(self) -> i64 {
        // SAFETY: loom says if somebody writes meanwhile.
        self.get().requested.with(|requested| unsafe { *requested })
    }
}

impl Upstream for Pointer {
    unsafe fn request(self, n: i64) {
        self.touch();
        // SAFETY: loom says if two do this at once.
        self.get().requested.with_mut(|requested| unsafe { *requested += n });
        self.touch();
    }

    unsafe fn cancel(self) {
        self.touch();
        self.get().cancelled.fetch_add(1, SeqCst);
        self.touch();
    }
}

/// A task: its end is counted.
#[derive(Debug)]
struct Task(u32, Arc<AtomicUsize>);

impl Drop for Task {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

const UNFINISHED: &str = "unfinished";
type Stream = Inbox<(), Task, &'static str, Pointer>;

/// A stream, its producer, and how many of its tasks have ended.
struct Setting {
    inbox: Arc<Stream>,
    producer: Pointer,
    ended: Arc<AtomicUsize>,
    _owner: Box<Producer>,
}

impl Setting {
    fn new(prefetch: u32) -> Self {
        let owner = Box::<Producer>::default();
        let producer = Pointer(&raw const *owner);
        Self { inbox: Arc::new(Stream::new(prefetch)), producer, ended: Arc::default(), _owner: owner }
    }

    /// One whose schema has come and was taken.
    fn opened(prefetch: u32) -> Self {
        let this = Self::new(prefetch);
        this.producing().open();
        assert_eq!(block_on(poll_fn(|context| this.inbox.poll_open(context))), Some(Ok(())));
        this
    }

    fn producing(&self) -> Producing {
        Producing { inbox: Arc::clone(&self.inbox), producer: self.producer, ended: Arc::clone(&self.ended) }
    }

    fn next(&self) -> Option<Result<u32, &'static str>> {
        next(&self.inbox)
    }

    fn ended(&self) -> usize {
        self.ended.load(SeqCst)
    }

    fn cancelled(&self) -> usize {
        self.producer.get().cancelled.load(SeqCst)
    }
}

fn next(inbox: &Stream) -> Option<Result<u32, &'static str>> {
    block_on(poll_fn(|context| inbox.poll_next(context))).map(|task| task.map(|task| task.0))
}

/// The thread that makes the callbacks.
struct Producing {
    inbox: Arc<Stream>,
    producer: Pointer,
    ended: Arc<AtomicUsize>,
}

impl Producing {
    fn open(&self) {
        // SAFETY: the producer is freed after release.
        assert!(unsafe { self.inbox.open(self.producer, ()) }.is_ok());
    }

    fn push(&self, number: u32) {
        match self.inbox.push(Task(number, Arc::clone(&self.ended))) {
            Pushed::Queued | Pushed::Unwanted(_) => {}
            Pushed::Refused(_) => panic!("refused"),
        }
    }

    fn release(self) {
        self.inbox.release(UNFINISHED);
        self.producer.free();
    }
}

/// A2, A4, A14: the schema, a task and the end on one thread, the consumer waiting on another: nothing is lost, and every
/// wait is woken.
#[test]
fn a_stream_is_handed_over() {
    loom::model(|| {
        let this = Setting::new(1);
        let producing = this.producing();
        let thread = thread::spawn(move || {
            producing.open();
            producing.push(7);
            assert!(producing.inbox.end());
            producing.release();
        });
        assert_eq!(block_on(poll_fn(|context| this.inbox.poll_open(context))), Some(Ok(())));
        assert_eq!(this.next(), Some(Ok(7)));
        assert_eq!((this.next(), this.next()), (None, None));
        thread.join().unwrap();
        assert_eq!((this.ended(), this.cancelled()), (1, 0));
    });
}

/// A8: an error is seen once, after the task before it.
#[test]
fn an_error_comes_last() {
    loom::model(|| {
        let this = Setting::opened(1);
        let producing = this.producing();
        let thread = thread::spawn(move || {
            producing.push(7);
            producing.inbox.fail("first");
            producing.inbox.fail("second");
            producing.release();
        });
        assert_eq!(this.next(), Some(Ok(7)));
        assert_eq!((this.next(), this.next()), (Some(Err("first")), None));
        thread.join().unwrap();
    });
}

/// A1, A9: a request meets release: it is over before release returns, or not made at all.
#[test]
fn a_request_meets_release() {
    loom::model(|| {
        let this = Setting::opened(0);
        let producing = this.producing();
        let thread = thread::spawn(move || producing.release());
        this.inbox.request(1);
        thread.join().unwrap();
        assert!(this.producer.requested() <= 1);
        assert_eq!(this.next(), Some(Err(UNFINISHED)));
    });
}

/// A1, A6, A9: two requests and release on three threads: no two at once, none after.
#[test]
fn requests_meet_each_other_and_release() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let this = Setting::opened(0);
        let inbox = Arc::clone(&this.inbox);
        let requesting = thread::spawn(move || inbox.request(1));
        let producing = this.producing();
        let releasing = thread::spawn(move || producing.release());
        this.inbox.request(2);
        requesting.join().unwrap();
        releasing.join().unwrap();
        assert!(this.producer.requested() <= 3);
    });
}

/// A6: what is wanted while a request is under way is asked for by that one: nothing is forgotten.
#[test]
fn no_request_is_forgotten() {
    loom::model(|| {
        let this = Setting::opened(0);
        let inbox = Arc::clone(&this.inbox);
        let thread = thread::spawn(move || inbox.request(1));
        this.inbox.request(2);
        thread.join().unwrap();
        assert_eq!((this.producer.requested(), this.inbox.requested()), (3, 3));
    });
}

/// A5, A6: wanted before the schema or while it comes, asked for once with it.
#[test]
fn a_request_meets_the_schema() {
    loom::model(|| {
        let this = Setting::new(2);
        let producing = this.producing();
        let thread = thread::spawn(move || {
            producing.open();
            producing
        });
        this.inbox.request(3);
        let producing = thread.join().unwrap();
        assert_eq!(this.producer.requested(), 5);
        producing.release();
    });
}

/// A7: cancelled on two threads, while the stream ends on a third: at most once, never after release.
#[test]
fn cancel_meets_release() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let this = Setting::opened(0);
        let inbox = Arc::clone(&this.inbox);
        let cancelling = thread::spawn(move || inbox.cancel());
        let producing = this.producing();
        let releasing = thread::spawn(move || producing.release());
        this.inbox.cancel();
        cancelling.join().unwrap();
        releasing.join().unwrap();
        assert!(this.cancelled() <= 1);
        assert!(matches!(this.next(), None | Some(Err(UNFINISHED))));
    });
}

/// A7: cancelled while the schema comes: the producer hears of it once, then or later.
#[test]
fn cancel_meets_the_schema() {
    loom::model(|| {
        let this = Setting::new(0);
        let producing = this.producing();
        let thread = thread::spawn(move || {
            producing.open();
            producing
        });
        this.inbox.cancel();
        let producing = thread.join().unwrap();
        assert_eq!(this.cancelled(), 1);
        producing.release();
    });
}

/// A7, A10: the consumer goes while tasks come, and the end: each task ends once, and the producer is not called late.
#[test]
fn the_consumer_goes() {
    loom::model(|| {
        let this = Setting::opened(2);
        let producing = this.producing();
        let thread = thread::spawn(move || {
            producing.push(1);
            producing.push(2);
            producing.inbox.end();
            producing.release();
        });
        this.inbox.close();
        thread.join().unwrap();
        assert_eq!(this.ended(), 2);
        assert!(this.cancelled() <= 1);
    });
}

/// A2, A7: the consumer goes while the schema comes.
#[test]
fn the_consumer_goes_before_the_schema() {
    loom::model(|| {
        let this = Setting::new(1);
        let producing = this.producing();
        let thread = thread::spawn(move || {
            producing.open();
            producing.push(1);
            producing.release();
        });
        this.inbox.close();
        thread.join().unwrap();
        assert_eq!(this.ended(), 1);
        assert!(this.cancelled() <= 1);
    });
}

/// A5: a driver that waits is woken by a request, and passes no more than was asked for.
#[test]
fn a_driver_waits_for_requests() {
    loom::model(|| {
        let orders = Arc::new(Orders::new());
        let consumer = Arc::clone(&orders);
        let thread = thread::spawn(move || {
            consumer.request(1);
            consumer.request(1);
        });
        for _ in 0..2 {
            assert_eq!(block_on(poll_fn(|context| orders.poll_pass(context))), Ok(()));
        }
        thread.join().unwrap();
        let context = Context::from_waker(Waker::noop());
        assert_eq!(orders.poll_pass(&context), Poll::Pending);
    });
}

/// A6, A7: a driver that waits is woken by cancel and by an impossible request, and cancel is the one that counts.
#[test]
fn a_driver_is_stopped() {
    loom::model(|| {
        let orders = Arc::new(Orders::new());
        let threads = [0, 1].map(|which| {
            let consumer = Arc::clone(&orders);
            thread::spawn(move || if which == 0 { consumer.cancel() } else { consumer.request(0) })
        });
        let stop = block_on(poll_fn(|context| orders.poll_stop(context)));
        assert!(matches!(stop, Stop::Cancel | Stop::Impossible(0)));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(orders.stop(), Some(Stop::Cancel));
    });
}
