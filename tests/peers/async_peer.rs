//! The crate as the peer of Arrow C++'s asynchronous device streams: what `async_peer.h` declares, for `async_cpp.cc` to
//! call.

mod text;

use core::ffi::c_int;
use core::task::Poll;
use core::time::Duration;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use arrow_device_abi::raw::{
    ArrowAsyncDeviceStreamHandler, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use arrow_device_abi::{
    AsyncArrays, AsyncControl, AsyncHandler, AsyncReceiver, Blocking, Demand, DeviceArrayStreamReader,
    Driven, OwnedDeviceArray, OwnedDeviceArrayStream, Receive, StreamError, StreamFailure,
};

use text::PeerText;

const BATCH: c_int = 1;
const END: c_int = 0;
const FAILED: c_int = -1;

/// `AsyncPeer` of `async_peer.h`. Both ends of it are used at once, from different threads: hence no `&mut` to the whole.
#[derive(Debug)]
pub struct AsyncPeer {
    receive: Mutex<Option<Receive>>,
    control: Mutex<Option<AsyncControl>>,
    arrays: Mutex<Option<Blocking<AsyncArrays>>>,
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `handler` is valid for writes until it is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_receive(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    prefetch: u32,
) -> *mut AsyncPeer {
    let demand = if prefetch == 0 { Demand::ByHand } else { Demand::Prefetch(prefetch) };
    // SAFETY: as the caller promises; the producer is Arrow C++.
    let receive = unsafe { AsyncReceiver::prepare_at(handler, demand) };
    Box::into_raw(Box::new(AsyncPeer {
        receive: Mutex::new(Some(receive)),
        control: Mutex::new(None),
        arrays: Mutex::new(None),
    }))
}

fn report(error: &StreamError, code: &mut c_int, text: PeerText) -> c_int {
    *code = error.errno();
    text.put(error.message().map_or_else(|| error.to_string(), str::to_owned).as_str());
    FAILED
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `peer` is one of `async_receive`; `out` and `code` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_schema(
    peer: *const AsyncPeer,
    out: *mut ArrowSchema,
    code: &mut c_int,
    text: PeerText,
) -> c_int {
    // SAFETY: as the caller promises.
    let peer = unsafe { &*peer };
    let Some(receive) = peer.receive.lock().unwrap().take() else {
        return text.refuse("the schema was asked for before");
    };
    match receive.wait().and_then(|receiver| {
        let schema = receiver.schema().try_clone().map_err(|_| StreamError::ReleasedSchema)?;
        Ok((receiver, schema))
    }) {
        Ok((receiver, schema)) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { schema.export_to(out) };
            *peer.control.lock().unwrap() = Some(receiver.control().clone());
            *peer.arrays.lock().unwrap() = Some(Blocking::new(receiver.into_arrays()));
            0
        }
        Err(error) => report(&error, code, text),
    }
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `peer` is one of `async_receive`; `out` and `code` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_next(
    peer: *const AsyncPeer,
    out: *mut ArrowDeviceArray,
    code: &mut c_int,
    text: PeerText,
) -> c_int {
    // SAFETY: as the caller promises.
    let peer = unsafe { &*peer };
    let mut arrays = peer.arrays.lock().unwrap();
    let Some(arrays) = &mut *arrays else {
        return text.refuse("no schema");
    };
    match arrays.next() {
        Some(Ok(array)) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { array.export_to(out) };
            BATCH
        }
        Some(Err(error)) => report(&error, code, text),
        None => END,
    }
}

fn control(peer: &AsyncPeer) -> AsyncControl {
    peer.control.lock().unwrap().clone().expect("the schema has come")
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `peer` is one of `async_receive` whose schema came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_request(peer: *const AsyncPeer, n: u32) {
    // SAFETY: as the caller promises.
    control(unsafe { &*peer }).request(n);
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `peer` is one of `async_receive` whose schema came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_cancel(peer: *const AsyncPeer) {
    // SAFETY: as the caller promises.
    control(unsafe { &*peer }).cancel();
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `peer` is one of `async_receive`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_close(peer: *mut AsyncPeer) {
    // SAFETY: a box of `async_receive`.
    drop(unsafe { Box::from_raw(peer) });
}

/// `AsyncPlan` of `async_peer.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AsyncPlan {
    fails_after: i64,
    code: c_int,
    delay_microseconds: c_int,
    dropped_after: i64,
    on_tokio: c_int,
}

/// How many batches the consumer has, and who waits for that.
#[derive(Debug, Default)]
struct Taken(Mutex<i64>, Condvar);

impl Taken {
    fn wait_for(&self, count: i64) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |taken| *taken < count).unwrap());
    }
}

/// `AsyncDriver` of `async_peer.h`.
#[derive(Debug)]
pub struct AsyncDriver {
    thread: JoinHandle<String>,
    taken: Arc<Taken>,
}

struct Source {
    reader: DeviceArrayStreamReader,
    plan: AsyncPlan,
    taken: Arc<Taken>,
    given: Arc<AtomicI64>,
}

impl Iterator for Source {
    type Item = Result<OwnedDeviceArray, StreamFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        thread::sleep(Duration::from_micros(self.plan.delay_microseconds.try_into().unwrap_or(0)));
        let given = self.given.load(Ordering::Relaxed);
        if given == self.plan.fails_after {
            self.taken.wait_for(given);
            return Some(Err(StreamFailure::new(self.plan.code, "relé stopped")));
        }
        self.given.store(given + 1, Ordering::Relaxed);
        self.reader.next_array().map_err(StreamFailure::from).transpose()
    }
}

fn drive(
    handler: AsyncHandler,
    reader: DeviceArrayStreamReader,
    plan: AsyncPlan,
    taken: Arc<Taken>,
) -> String {
    let mut reader = reader;
    let device_type = reader.device_type();
    let schema = match reader.schema() {
        Ok(schema) => schema,
        Err(error) => return error.to_string(),
    };
    let given = Arc::new(AtomicI64::new(0));
    let source = Source { reader, plan, taken: Arc::clone(&taken), given: Arc::clone(&given) };
    // SAFETY: the arrays are of this schema.
    let mut drive = Some(unsafe { handler.drive_iter(device_type, schema, source) });
    let driven = poll_fn(move |context| {
        let Some(driving) = &mut drive else { return Poll::Ready("dropped".to_owned()) };
        let end = Pin::new(driving).poll(context).map(|end: Driven| format!("{end:?}"));
        if plan.dropped_after >= 0 && given.load(Ordering::Relaxed) > plan.dropped_after && end.is_pending() {
            // Only once the consumer has them all: Arrow C++ forgets what it has queued when an error comes.
            taken.wait_for(plan.dropped_after);
            drive = None;
            return Poll::Ready("dropped".to_owned());
        }
        end
    });
    if plan.on_tokio != 0 {
        return tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(driven);
    }
    // The crate's own way of waiting, with a stream of one item.
    Blocking::new(Once(Some(Box::pin(driven)))).next().expect("an end")
}

/// A future as a stream of its answer.
struct Once<F>(Option<Pin<Box<F>>>);

impl<F: Future> futures_core::Stream for Once<F> {
    type Item = F::Output;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut core::task::Context<'_>) -> Poll<Option<F::Output>> {
        match &mut self.0 {
            None => Poll::Ready(None),
            Some(future) => future.as_mut().poll(context).map(Some),
        }
    }
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `handler` is null or obeys the interface, and stays where it is until it is released; `stream` is null or obeys the C
///   device stream interface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_drive(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    stream: *mut ArrowDeviceArrayStream,
    plan: AsyncPlan,
) -> *mut AsyncDriver {
    // SAFETY: null or a live handler that nobody else calls.
    let handler = unsafe { AsyncHandler::from_raw(handler) }.expect("a live handler");
    // SAFETY: null or a stream that the caller gives away.
    let stream = unsafe { OwnedDeviceArrayStream::take(stream) }.expect("a live stream");
    let taken = Arc::new(Taken::default());
    let seen = Arc::clone(&taken);
    let thread = thread::spawn(move || drive(handler, DeviceArrayStreamReader::new(stream), plan, seen));
    Box::into_raw(Box::new(AsyncDriver { thread, taken }))
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `driver` is one of `async_drive`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_taken(driver: *const AsyncDriver, taken: i64) {
    // SAFETY: as the caller promises.
    let Taken(count, changed) = &*unsafe { &*driver }.taken;
    *count.lock().unwrap() = taken;
    changed.notify_all();
}

/// See `async_peer.h`.
///
/// # Safety
///
/// - `driver` is one of `async_drive`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn async_join(driver: *mut AsyncDriver, text: PeerText) {
    // SAFETY: a box of `async_drive`.
    let AsyncDriver { thread, .. } = *unsafe { Box::from_raw(driver) };
    match thread.join() {
        Ok(end) => text.put(&end),
        Err(_) => text.put("the driver panicked"),
    }
}
