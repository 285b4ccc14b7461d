//! Each call of the driver, made to fail once at each place that it is made: an error, or nothing that matters; nothing
//! is leaked, nothing released twice.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use arrow_device_abi::cuda::{CudaError, CudaExport, CudaExportErrorKind, HostWait, RawStream};
use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{ArrayNode, EventWaiter, OwnedDeviceArray, ReadyDeviceArray, SyncErrorKind};
use arrow_device_abi_cuda_tests::{CONTEXTS, Driver, EVENTS, ForeignEvent, array_of, bytes, on_a_thread};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys};

/// A code that no part of the test driver gives by itself.
const TOLD: i32 = 999;

const FUNCTIONS: [&str; 15] = [
    "cuInit",
    "cuDeviceGetCount",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventDestroy_v2",
];

/// What a call of a path came to, and what is left of it, to be dropped when calls work again.
type Outcome<L> = (Option<CudaError>, L);

/// Runs a path on a thread without a context, with every call that it makes failing in turn. Returns how many calls
/// there were, and how many failures of them the path reported.
fn each_failure<I: Send, L: Send>(
    driver: &Driver,
    mut prepare: impl FnMut() -> I,
    path: impl Fn(I) -> Outcome<L> + Sync,
    mut left: impl FnMut(&str, bool, L),
) -> (usize, usize) {
    let mut run = |function: &str, nth: i64| {
        let input = prepare();
        driver.reset();
        if nth > 0 {
            driver.fail(function, nth, TOLD);
        }
        let (refusal, rest) = on_a_thread(|| path(input));
        let happened = nth > 0 && !driver.fail_is_pending();
        driver.reset();
        left(function, happened, rest);
        (refusal, happened)
    };
    assert_eq!(run("none", 0), (None, false));
    let (mut calls, mut refusals) = (0, 0);
    for function in FUNCTIONS {
        for nth in 1.. {
            let (refusal, happened) = run(function, nth);
            if !happened {
                assert_eq!(refusal, None, "{function} is called {} times", nth - 1);
                break;
            }
            calls += 1;
            if let Some(error) = refusal {
                assert_eq!(error.code(), Some(TOLD), "{function}, call {nth}: {error}");
                refusals += 1;
            }
        }
    }
    (calls, refusals)
}

fn told(kind: SyncErrorKind<CudaError>) -> CudaError {
    match kind {
        SyncErrorKind::Wait(error) => error,
        other => panic!("not the driver's: {other}"),
    }
}

fn wait(array: OwnedDeviceArray, waiter: &impl EventWaiter<Error = CudaError>) -> Outcome<Array> {
    match array.synchronize(waiter) {
        Ok(array) => (None, Array::Ready(array)),
        Err(error) => (Some(told(error.kind)), Array::Back(error.array)),
    }
}

/// An array after a path, ready or given back.
enum Array {
    Ready(ReadyDeviceArray),
    Back(OwnedDeviceArray),
}

/// C8, C14: a failing wait is an error with the array in it, whichever call it was that failed; that a context cannot be
/// put back or let go comes too late to be one.
#[test]
fn of_a_wait() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let (made, released) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let prepare = || {
        made.fetch_add(1, SeqCst);
        let event = ForeignEvent::record(&stream);
        array_of(ArrowDeviceType::CUDA, 0, bytes(&stream, 1, 8), Some(event), &released)
    };
    let left = |_: &str, _: bool, array: Array| {
        context.bind_to_thread().expect("the context");
        match array {
            Array::Ready(array) => drop(array),
            Array::Back(array) => drop(array),
        }
        assert_eq!(released.load(SeqCst), made.load(SeqCst));
    };
    let handle = stream.cu_stream().expose_provenance();

    // Into the context and out of it: two questions and two answers. Then the wait.
    assert_eq!(each_failure(&driver, prepare, |array| wait(array, &stream), left), (5, 3));
    // The same, and the stream's context is asked for.
    let raw = |array| {
        // SAFETY: alive as long as `stream`.
        wait(array, &unsafe { RawStream::new(std::ptr::with_exposed_provenance_mut(handle)) })
    };
    assert_eq!(each_failure(&driver, prepare, raw, left), (6, 4));
    // The same, and the device's context is retained and released.
    assert_eq!(each_failure(&driver, prepare, |array| wait(array, &HostWait::new()), left), (8, 5));
    let ask = |array: OwnedDeviceArray| {
        let refusal = HostWait::new().is_complete(&array).err().map(told);
        (refusal, Array::Back(array))
    };
    assert_eq!(each_failure(&driver, prepare, ask, left), (8, 5));
    let given = HostWait::in_context(Arc::clone(&context));
    assert_eq!(each_failure(&driver, prepare, |array| wait(array, &given), left), (5, 3));
    // In two of these the context was retained, and letting it go refused.
    driver.expect_left(CONTEXTS, 1);
}

fn export(
    streams: &[Arc<CudaStream>],
    memory: CudaSlice<u8>,
) -> Result<OwnedDeviceArray, (CudaSlice<u8>, CudaError)> {
    let mut export = CudaExport::new(&streams[0]);
    streams[1..].iter().for_each(|stream| export.after(stream));
    let node = ArrayNode::default();
    // SAFETY: an array of the null type has no buffers.
    unsafe { export.export(&node, memory) }.map_err(|error| match error.kind {
        CudaExportErrorKind::Cuda(kind) => (error.keep, kind),
        other => panic!("not the driver's: {other}"),
    })
}

/// C13, C15: a failing export gives the memory back and leaves no event, but one whose destruction is what failed.
#[test]
fn of_an_export() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let streams = [context.new_stream().expect("a stream"), context.new_stream().expect("a stream")];
    let memory = || bytes(&streams[0], 4, 8);
    let path = |streams: &[Arc<CudaStream>], memory| match export(streams, memory) {
        Ok(array) => (None, Ok(array)),
        Err((memory, error)) => (Some(error), Err(memory)),
    };
    let events = driver.live(EVENTS);
    let left = |function: &str, _: bool, rest: Result<OwnedDeviceArray, CudaSlice<u8>>| {
        drop(rest);
        assert_eq!(driver.live(EVENTS), events, "{function}");
    };
    // Into the context and out of it, the question whether the stream captures, create, record.
    assert_eq!(each_failure(&driver, memory, |memory| path(&streams[..1], memory), left), (7, 5));

    // An event on the other stream, a wait for it, its destruction, and the above. A destruction that fails, or cannot
    // get into the context, is nobody's to know and leaves the event: three calls.
    let mut left_over = 0;
    let left = |function: &str, _: bool, rest: Result<OwnedDeviceArray, CudaSlice<u8>>| {
        drop(rest);
        let now = driver.live(EVENTS) - events;
        let may_leave = ["cuCtxGetCurrent", "cuCtxSetCurrent", "cuEventDestroy_v2"].contains(&function);
        assert!(now == left_over || may_leave && now == left_over + 1, "{function}: {now} events left");
        left_over = now;
    };
    let calls = each_failure(&driver, memory, |memory| path(&streams, memory), left);
    assert_eq!(calls, (7 + 5 + 5 + 7, 5 + 3 + 5));
    assert_eq!(left_over, 3);
    driver.expect_left(EVENTS, left_over);
}

/// C9, C14: releasing an exported array lets go of memory and event whatever fails on the way.
#[test]
fn of_a_release() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let (made, dropped) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let prepare = || {
        made.fetch_add(1, SeqCst);
        let node = ArrayNode::default();
        // SAFETY: an array of the null type has no buffers.
        unsafe { CudaExport::new(&stream).export(&node, Counted(Arc::clone(&dropped))) }.expect("an array")
    };
    let release = |array: OwnedDeviceArray| {
        // SAFETY: exported with an event of CUDA's kind: a pointer to a handle.
        let event = unsafe { array.as_raw().sync_event.cast::<*mut c_void>().read() };
        drop(array);
        (None, event.expose_provenance())
    };
    let left = |function: &str, happened: bool, event: usize| {
        assert_eq!(dropped.load(SeqCst), made.load(SeqCst));
        let event: *mut c_void = std::ptr::with_exposed_provenance_mut(event);
        let lives = driver.event_flags(event) != -1;
        assert_eq!(lives, happened && function == "cuEventDestroy_v2", "{function}");
        if lives {
            context.bind_to_thread().expect("the context");
            // SAFETY: alive, since its destruction failed.
            unsafe { sys::cuEventDestroy_v2(event.cast()) }.result().expect("a live event");
        }
    };
    // Into the context and out of it for the owner, a look at it around the event's destruction.
    assert_eq!(each_failure(&driver, prepare, release, left), (7, 0));
}
