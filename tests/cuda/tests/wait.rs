//! The consuming side: streams and the host wait for the events of foreign arrays.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use arrow_device_abi::cuda::{CudaError, HostWait, RawStream};
use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{Device, EventWaiter, OwnedDeviceArray, Readiness, SyncErrorKind, SyncEvent};
use arrow_device_abi_cuda_tests::{
    Driver, ForeignEvent, INVALID_HANDLE, array_of, bytes, current_context, in_no_context, read,
};
use cudarc::driver::{CudaContext, CudaStream};

const LATE: Duration = Duration::from_millis(200);
const BEFORE: u8 = 1;
const AFTER: u8 = 7;
const LEN: usize = 1000;

/// A producer's context and stream, and the consumer's stream.
struct Two {
    producer: Arc<CudaStream>,
    consumer: Arc<CudaStream>,
    released: Arc<AtomicUsize>,
}

impl Two {
    fn new() -> Self {
        let context = CudaContext::new(0).expect("a context");
        Self {
            producer: context.new_stream().expect("a stream"),
            consumer: context.new_stream().expect("a stream"),
            released: Arc::default(),
        }
    }

    /// An array whose bytes a slow kernel writes before its event fires.
    fn array(&self, driver: &Driver, device_type: ArrowDeviceType) -> OwnedDeviceArray {
        let memory = bytes(&self.producer, BEFORE, LEN);
        driver.slow_fill(&self.producer, &memory, AFTER, LATE);
        let event = ForeignEvent::record(&self.producer);
        array_of(device_type, 0, memory, Some(event), &self.released)
    }

    fn ready_array(&self, value: u8) -> OwnedDeviceArray {
        array_of(ArrowDeviceType::CUDA, 0, bytes(&self.producer, value, LEN), None, &self.released)
    }
}

const TYPES: [ArrowDeviceType; 3] =
    [ArrowDeviceType::CUDA, ArrowDeviceType::CUDA_HOST, ArrowDeviceType::CUDA_MANAGED];

/// The control: who does not wait reads what was there before (C17).
#[test]
fn without_waiting_the_bytes_are_wrong() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let array = two.array(&driver, ArrowDeviceType::CUDA);
    // So that the kernel has begun, and what a race detector knows of the two streams is that they race.
    std::thread::sleep(LATE / 4);
    // SAFETY: it is not ready, which is the point; the driver's memory is written by its own thread later.
    let array = unsafe { array.assume_ready() };
    assert_eq!(read(&two.consumer, &array), [BEFORE; LEN]);
    two.producer.synchronize().expect("the stream");
}

/// D5, D6, D7, C17, C19: the consumer's stream waits on the device for the work that writes the buffers, whichever of
/// CUDA's memories they are in, and the host does not.
#[test]
fn a_stream_waits_on_the_device() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    for device_type in TYPES {
        let array = two.array(&driver, device_type);
        let event = handle_of(&array);
        driver.reset();
        let array = array.synchronize(&two.consumer).expect("a ready array");
        assert_eq!(driver.calls("cuStreamWaitEvent"), 1);
        assert_eq!(driver.calls("cuEventSynchronize"), 0);
        assert_eq!(array.readiness(), Readiness::Queued);
        assert!(!array.is_host_ready(), "the host has not waited");
        // SAFETY: the array is alive, and with it its event.
        let fired = unsafe { is_fired(event) };
        assert!(!fired, "the host went on while the kernel ran");
        assert_eq!(read(&two.consumer, &array), [AFTER; LEN], "{device_type}");
    }
    assert_eq!(two.released.load(SeqCst), TYPES.len());
}

fn handle_of(array: &OwnedDeviceArray) -> *mut c_void {
    // SAFETY: the arrays of these tests have an event of CUDA's kind: a pointer to a handle.
    unsafe { array.as_raw().sync_event.cast::<*mut c_void>().read() }
}

/// # Safety
///
/// - The event is alive.
unsafe fn is_fired(event: *mut c_void) -> bool {
    // SAFETY: as the caller promises.
    let result = unsafe { cudarc::driver::sys::cuEventQuery(event.cast()) };
    result == cudarc::driver::sys::CUresult::CUDA_SUCCESS
}

/// D7, C19: with `HostWait` it is the host that waits, and then memory that it can reach is for it.
#[test]
fn the_host_waits() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    for device_type in TYPES {
        let array = two.array(&driver, device_type);
        driver.reset();
        let array = array.synchronize(&HostWait::new()).expect("a ready array");
        assert_eq!(driver.calls("cuEventSynchronize"), 1);
        assert_eq!(driver.calls("cuStreamWaitEvent"), 0);
        assert_eq!(array.readiness(), Readiness::Complete);
        assert_eq!(array.is_host_ready(), device_type != ArrowDeviceType::CUDA);
        if let Ok(array) = array.into_host_array() {
            let view = array.view().expect("an array");
            // SAFETY: host memory of the test driver, `LEN` bytes long, written before the event fired.
            let bytes = unsafe { std::slice::from_raw_parts(view.buffers()[1].cast::<u8>(), view.length()) };
            assert_eq!(bytes, [AFTER; LEN]);
        }
    }
}

/// The query does not block, and says when waiting would not.
#[test]
fn the_host_asks() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let host = HostWait::new();
    let array = two.array(&driver, ArrowDeviceType::CUDA);
    assert_eq!(host.is_complete(&array), Ok(false));
    two.producer.synchronize().expect("the stream");
    assert_eq!(host.is_complete(&array), Ok(true));
    assert_eq!(driver.calls("cuEventSynchronize"), 0);
    driver.fail("cuEventQuery", 1, 700);
    let error = host.is_complete(&array).expect_err("a failing query");
    let SyncErrorKind::Wait(error) = error else { panic!("{error:?}") };
    assert_eq!(error.code(), Some(700));
    assert_eq!(host.is_complete(&OwnedDeviceArray::released()), Err(SyncErrorKind::Released));
}

/// D8, C1, C15: nothing to wait for, so the driver is not called, neither by a wait nor by a query.
#[test]
fn a_null_event_needs_no_driver() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let arrays = [two.ready_array(3), two.ready_array(4), two.ready_array(5)];
    driver.reset();
    let [first, second, third] = arrays;
    assert_eq!(HostWait::new().is_complete(&first), Ok(true));
    let arrays = [
        first.synchronize(&HostWait::new()).expect("ready"),
        second.synchronize(&two.consumer).expect("ready"),
        // SAFETY: a name of the legacy default stream.
        third.synchronize(&unsafe { RawStream::new(ptr::without_provenance_mut(1)) }).expect("ready"),
    ];
    assert_eq!(driver.all_calls(), 0);
    for array in &arrays {
        assert_eq!(array.readiness(), Readiness::Complete);
    }
}

/// C1, D9: a null handle behind a pointer, an event where there can be none, and another runtime's event are three errors,
/// each with the array in it, and the driver is not called.
#[test]
fn events_that_are_none() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let mut slot: *mut c_void = ptr::null_mut();
    let with = |device_type, sync_event: *mut c_void| {
        let raw = ArrowDeviceArray { sync_event, device_type, ..two.ready_array(1).into_raw() };
        // SAFETY: live, and handed out once; the event is what is to be refused.
        unsafe { OwnedDeviceArray::from_raw(raw) }.expect("a live array")
    };
    let waiters: [&dyn EventWaiter<Error = CudaError>; 2] = [&*two.consumer, &HostWait::new()];
    for (index, waiter) in waiters.into_iter().enumerate() {
        let null = with(ArrowDeviceType::CUDA, (&raw mut slot).cast());
        let hip = with(ArrowDeviceType::ROCM, ptr::without_provenance_mut(0xDEAD_BEE8));
        let cpu = with(ArrowDeviceType::CPU, ptr::without_provenance_mut(0xDEAD_BEE8));
        driver.reset();
        let error = null.synchronize(waiter).expect_err("a null handle");
        assert_eq!(error.kind, SyncErrorKind::Wait(CudaError::NullEvent));
        assert_eq!(
            error.kind.to_string(),
            "waiting for the array's event failed: the handle of the array's CUDA event is null"
        );
        assert!(!error.array.is_released());

        let device = Device::new(ArrowDeviceType::ROCM, 0);
        let hip = hip.synchronize(waiter).expect_err("a HIP event");
        assert_eq!(hip.kind, SyncErrorKind::Wait(CudaError::NotCuda(device)));

        let cpu = cpu.synchronize(waiter).expect_err("an event of the CPU");
        assert!(matches!(cpu.kind, SyncErrorKind::UnexpectedEvent(_)));
        assert_eq!(driver.all_calls(), 0);
        drop((error, hip, cpu));
        assert_eq!(two.released.load(SeqCst), 3 * (index + 1), "the errors gave the arrays back");
    }
    // A waiter that is told of another device than the event's.
    // SAFETY: points to a handle, null.
    let event = unsafe { SyncEvent::from_raw(ArrowDeviceType::CUDA, (&raw mut slot).cast()) };
    let event = event.expect("of CUDA").expect("not null");
    assert_eq!(HostWait::new().wait(Device::CPU, event), Err(CudaError::NullEvent));
    slot = ptr::without_provenance_mut(0xDEAD_BEE8);
    // SAFETY: points to a handle, which is not looked at, since the device is refused.
    let event = unsafe { SyncEvent::from_raw(ArrowDeviceType::CUDA, (&raw mut slot).cast()) };
    let event = event.expect("of CUDA").expect("not null");
    assert_eq!(HostWait::new().wait(Device::CPU, event), Err(CudaError::NotCuda(Device::CPU)));
}

/// C14: a device that the driver does not have is an error; memory of the host need not name one.
#[test]
fn a_device_that_is_not_there() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let with_id = |device_type, device_id| {
        let raw = two.array(&driver, device_type).into_raw();
        // SAFETY: live, and handed out once; the id is what is to be refused.
        unsafe { OwnedDeviceArray::from_raw(ArrowDeviceArray { device_id, ..raw }) }.expect("a live array")
    };
    for (device_type, device_id) in [
        (ArrowDeviceType::CUDA, -1),
        (ArrowDeviceType::CUDA, 2),
        (ArrowDeviceType::CUDA, i64::MAX),
        (ArrowDeviceType::CUDA_HOST, -2),
        (ArrowDeviceType::CUDA_MANAGED, 1 << 32),
    ] {
        let device = Device::new(device_type, device_id);
        let error = with_id(device_type, device_id).synchronize(&two.consumer).expect_err("no such device");
        assert_eq!(error.kind, SyncErrorKind::Wait(CudaError::NoSuchDevice(device)));
        let error = error.array.synchronize(&HostWait::new()).expect_err("no such device");
        assert_eq!(error.kind, SyncErrorKind::Wait(CudaError::NoSuchDevice(device)));
    }
    for device_type in [ArrowDeviceType::CUDA_HOST, ArrowDeviceType::CUDA_MANAGED] {
        let array = with_id(device_type, -1);
        let array = in_no_context(|| array.synchronize(&HostWait::new()).expect("ready"));
        assert_eq!(array.readiness(), Readiness::Complete);
    }
    two.producer.synchronize().expect("the stream");
}

/// A driver's refusal is an error with its number, and the array comes back and can be waited for again.
#[test]
fn a_refused_wait_gives_the_array_back() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let array = two.array(&driver, ArrowDeviceType::CUDA);
    driver.fail("cuStreamWaitEvent", 1, INVALID_HANDLE);
    let error = array.synchronize(&two.consumer).expect_err("a refused wait");
    let SyncErrorKind::Wait(CudaError::Driver { call, error: refusal }) = error.kind else {
        panic!("{error}")
    };
    assert_eq!((call, refusal.0 as i32), ("cuStreamWaitEvent", INVALID_HANDLE));
    assert_eq!(
        error.to_string(),
        "waiting for the array's event failed: cuStreamWaitEvent failed: CUDA_ERROR_INVALID_HANDLE"
    );
    let array = error.array.synchronize(&two.consumer).expect("a second try");
    assert_eq!(read(&two.consumer, &array), [AFTER; LEN]);
}

/// C1, D3: the array may be released right after the wait was queued. Its event is destroyed then, and the wait goes on.
#[test]
fn a_release_right_after_the_wait() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let memory = bytes(&two.producer, BEFORE, LEN);
    let copy = bytes(&two.consumer, BEFORE, LEN);
    driver.slow_fill(&two.producer, &memory, AFTER, LATE);
    let event = ForeignEvent::record(&two.producer);
    let from = arrow_device_abi_cuda_tests::pointer(&memory);
    // Its own memory is some other: this array's release frees nothing that is read later.
    let unrelated = bytes(&two.consumer, 0, 1);
    let array = array_of(ArrowDeviceType::CUDA, 0, unrelated, Some(event), &two.released);
    let live = driver.live(arrow_device_abi_cuda_tests::EVENTS);
    let ready = array.synchronize(&two.consumer).expect("ready");
    drop(ready);
    assert_eq!(two.released.load(SeqCst), 1);
    // cudarc makes two events a slice, which went with the unrelated one.
    assert!(driver.live(arrow_device_abi_cuda_tests::EVENTS) < live, "the event is destroyed");
    two.consumer.context().bind_to_thread().expect("the context");
    let to = arrow_device_abi_cuda_tests::pointer(&copy);
    // SAFETY: both are memory of the test driver, `LEN` bytes long, alive until the streams are done.
    unsafe { cudarc::driver::sys::cuMemcpyDtoDAsync_v2(to, from, LEN, two.consumer.cu_stream()) }
        .result()
        .expect("the copy");
    assert_eq!(two.consumer.clone_dtoh(&copy).expect("a copy"), [AFTER; LEN]);
    two.producer.synchronize().expect("the stream");
}

/// C13, C14: waiting across contexts and devices is allowed, and the thread's own context stays current, whichever it is.
#[test]
fn across_contexts_and_devices() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    for context in [
        CudaContext::new(1).expect("the other device"),
        CudaContext::new_non_primary(0, 0).expect("another context of the device"),
    ] {
        let consumer = context.new_stream().expect("a stream");
        let own = CudaContext::new(0).expect("a context");
        own.bind_to_thread().expect("the context");
        let array = two.array(&driver, ArrowDeviceType::CUDA);
        let (before, depth) = (current_context(), driver.depth());
        let array = array.synchronize(&consumer).expect("ready");
        assert_eq!((current_context(), driver.depth()), (before, depth));
        assert_eq!(read(&consumer, &array), [AFTER; LEN]);
    }
}

/// C14: on a thread without a context every way of waiting works, and it has none afterwards.
#[test]
fn on_a_fresh_thread() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let arrays: Vec<_> = (0..5).map(|_| two.array(&driver, ArrowDeviceType::CUDA)).collect();
    let [stream, raw, host, given, query] = <[_; 5]>::try_from(arrays).expect("five arrays");
    let context = two.consumer.context();
    let stream = in_no_context(|| stream.synchronize(&two.consumer).expect("ready"));
    let handle = two.consumer.cu_stream().addr();
    let raw = in_no_context(|| {
        // SAFETY: alive as long as `two`.
        let waiter = unsafe { RawStream::new(ptr::with_exposed_provenance_mut(handle)) };
        raw.synchronize(&waiter).expect("ready")
    });
    let retained = driver.calls("cuDevicePrimaryCtxRetain");
    let given =
        in_no_context(|| given.synchronize(&HostWait::in_context(Arc::clone(context))).expect("ready"));
    assert_eq!(driver.calls("cuDevicePrimaryCtxRetain"), retained);
    let host = in_no_context(|| host.synchronize(&HostWait::new()).expect("ready"));
    two.producer.synchronize().expect("the stream");
    assert_eq!(in_no_context(|| HostWait::new().is_complete(&query)), Ok(true));
    assert_eq!(driver.calls("cuDevicePrimaryCtxRetain"), retained + 2);
    assert_eq!(driver.calls("cuDevicePrimaryCtxRelease_v2"), 2);
    for array in [stream, raw, host, given] {
        assert_eq!(read(&two.consumer, &array), [AFTER; LEN]);
    }
}

/// C22: handles 0, 1 and 2 are passed to the driver as they are, in the context that is current, or the one that is named.
#[test]
fn raw_streams_and_names_of_streams() {
    let Some(driver) = Driver::load() else { return };
    let two = Two::new();
    let context = Arc::clone(two.consumer.context());
    let default = context.default_stream();
    for (handle, same) in [
        (0, &default),
        (1, &default),
        (2, &context.per_thread_stream()),
        (two.consumer.cu_stream().addr(), &two.consumer),
    ] {
        let array = two.array(&driver, ArrowDeviceType::CUDA);
        context.bind_to_thread().expect("the context");
        // SAFETY: names of streams, or one that lives as long as `two`.
        let waiter = unsafe { RawStream::new(ptr::with_exposed_provenance_mut(handle)) };
        let array = array.synchronize(&waiter).expect("ready");
        assert_eq!(array.readiness(), Readiness::Queued);
        assert_eq!(read(same, &array), [AFTER; LEN], "stream {handle}");
    }
    // On a thread without a context a name means nothing, unless its context is given.
    let arrays = [two.array(&driver, ArrowDeviceType::CUDA), two.array(&driver, ArrowDeviceType::CUDA)];
    let [unnamed, named] = arrays;
    let error = in_no_context(|| {
        // SAFETY: a name of a stream.
        unnamed
            .synchronize(&unsafe { RawStream::new(ptr::without_provenance_mut(1)) })
            .expect_err("no context")
    });
    let SyncErrorKind::Wait(error) = error.kind else { panic!("{error}") };
    assert_eq!(error.code(), Some(arrow_device_abi_cuda_tests::INVALID_CONTEXT));
    let given = context.cu_ctx().addr();
    let named = in_no_context(|| {
        let given = ptr::with_exposed_provenance_mut(given);
        // SAFETY: a name of a stream, in a context that lives on.
        let waiter = unsafe { RawStream::in_context(ptr::without_provenance_mut(1), given) };
        named.synchronize(&waiter).expect("ready")
    });
    assert_eq!(read(&context.default_stream(), &named), [AFTER; LEN]);
}
