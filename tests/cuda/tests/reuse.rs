//! When a consumer may let go of an array that its queued work still reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use arrow_device_abi::ReadyDeviceArray;
use arrow_device_abi::cuda::{CudaError, InUse};
use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi_cuda_tests::{
    CONTEXTS, Driver, EVENTS, INVALID_HANDLE, MEMORY, STREAMS, array_of, bytes, in_no_context, pointer,
};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys};

const LATE: Duration = Duration::from_millis(200);
const LEN: usize = 300;

/// An array, and a consumer's stream that reads it late into `copy`.
struct Reader {
    producer: Arc<CudaStream>,
    consumer: Arc<CudaStream>,
    copy: CudaSlice<u8>,
    released: Arc<AtomicUsize>,
}

impl Reader {
    fn new() -> Self {
        let context = CudaContext::new(0).expect("a context");
        let consumer = context.new_stream().expect("a stream");
        let copy = bytes(&consumer, 0, LEN);
        Self { producer: context.new_stream().expect("a stream"), consumer, copy, released: Arc::default() }
    }

    /// The array, with the read queued behind something slow.
    fn reading(&self, driver: &Driver) -> ReadyDeviceArray {
        let memory = bytes(&self.producer, 6, LEN);
        let from = pointer(&memory);
        let array = array_of(ArrowDeviceType::CUDA, 0, memory, None, &self.released);
        let array = array.synchronize(&self.consumer).expect("ready");
        self.consumer.context().bind_to_thread().expect("the context");
        driver.delay(&self.consumer, LATE);
        // SAFETY: both are memory of the test driver, `LEN` bytes long, alive until the stream is done: the array's
        // because of what is tested.
        unsafe { sys::cuMemcpyDtoDAsync_v2(pointer(&self.copy), from, LEN, self.consumer.cu_stream()) }
            .result()
            .expect("the copy");
        array
    }

    fn copied(&self) -> Vec<u8> {
        self.consumer.clone_dtoh(&self.copy).expect("the copy")
    }

    fn released(&self) -> usize {
        self.released.load(SeqCst)
    }
}

/// C17: dropped while the work is queued, it is released once that is done.
#[test]
fn dropping_waits_for_the_work() {
    let Some(driver) = Driver::load() else { return };
    let reader = Reader::new();
    let events = driver.live(EVENTS);
    let in_use = InUse::until_done(reader.reading(&driver), &reader.consumer).expect("noted");
    assert_eq!((in_use.is_done(), reader.released()), (Ok(false), 0));
    in_no_context(move || {
        // A producer of the tests leaves its context current on the thread that releases it.
        drop(in_use);
        // SAFETY: no context is current afterwards.
        unsafe { sys::cuCtxSetCurrent(std::ptr::null_mut()) }.result().expect("none");
    });
    assert_eq!(reader.released(), 1);
    assert_eq!(reader.copied(), [6; LEN]);
    assert_eq!(driver.live(EVENTS), events);
}

/// C17: the same with the driver's word on it.
#[test]
fn releasing_waits_for_the_work() {
    let Some(driver) = Driver::load() else { return };
    let reader = Reader::new();
    let in_use = InUse::until_done(reader.reading(&driver), &reader.consumer).expect("noted");
    driver.fail("cuEventSynchronize", 1, 700);
    let error = in_use.release().expect_err("a failing wait");
    assert_eq!((error.error.code(), reader.released()), (Some(700), 0));
    error.in_use.release().expect("released");
    assert_eq!(reader.released(), 1);
    assert_eq!(reader.copied(), [6; LEN]);
}

/// C17: the producer's stream waits in the host's place, and what it writes comes after what was read.
#[test]
fn a_release_behind_the_work() {
    let Some(driver) = Driver::load() else { return };
    let reader = Reader::new();
    // The producer goes on to use memory that it gave out: here the array's own memory is some other.
    let memory = bytes(&reader.producer, 6, LEN);
    let unrelated = bytes(&reader.producer, 0, 1);
    let array = array_of(ArrowDeviceType::CUDA, 0, unrelated, None, &reader.released);
    let array = array.synchronize(&reader.consumer).expect("ready");
    reader.consumer.context().bind_to_thread().expect("the context");
    driver.delay(&reader.consumer, LATE);
    // SAFETY: both are memory of the test driver, `LEN` bytes long, alive until the streams are done.
    unsafe {
        sys::cuMemcpyDtoDAsync_v2(pointer(&reader.copy), pointer(&memory), LEN, reader.consumer.cu_stream())
    }
    .result()
    .expect("the copy");
    let in_use = InUse::until_done(array, &reader.consumer).expect("noted");

    driver.fail("cuStreamWaitEvent", 1, INVALID_HANDLE);
    let error = in_use.release_behind(&reader.producer).expect_err("a refused wait");
    assert_eq!((error.error.code(), reader.released()), (Some(INVALID_HANDLE), 0));
    error.in_use.release_behind(&reader.producer).expect("released");
    assert_eq!(reader.released(), 1, "at once");
    assert_eq!(driver.calls("cuEventSynchronize"), 0, "the host did not wait");
    driver.slow_fill(&reader.producer, &memory, 99, Duration::ZERO);
    assert_eq!(reader.copied(), [6; LEN], "read before the producer wrote");
    reader.producer.synchronize().expect("the stream");
}

/// An event that cannot be recorded gives the array back.
#[test]
fn a_refused_record_gives_the_array_back() {
    let Some(driver) = Driver::load() else { return };
    let reader = Reader::new();
    let array = reader.reading(&driver);
    driver.reset();
    driver.fail("cuEventRecord", 1, INVALID_HANDLE);
    let error = InUse::until_done(array, &reader.consumer).expect_err("a refused record");
    assert_eq!((error.error.code(), reader.released()), (Some(INVALID_HANDLE), 0));
    assert_eq!(driver.calls("cuStreamSynchronize"), 1, "the work was waited for");
    drop(InUse::until_done(error.array, &reader.consumer).expect("a second try"));
    assert_eq!(reader.released(), 1);
    assert_eq!(reader.copied(), [6; LEN]);
}

static KEPT: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Where the driver will not wait, though it works on, the array is kept for ever; where it cannot, it is released.
#[test]
fn a_driver_that_does_not_wait() {
    let Some(driver) = Driver::load() else { return };
    let reader = Reader::new();
    for (code, released) in [(700, 1), (907, 1)] {
        let array = reader.reading(&driver);
        // So that a leak checker sees that it is meant.
        KEPT.store(array.view().expect("an array").buffers().as_ptr().cast_mut().cast(), SeqCst);
        let in_use = InUse::until_done(array, &reader.consumer).expect("noted");
        driver.fail("cuEventSynchronize", 1, code);
        drop(in_use);
        assert_eq!(reader.released(), released, "{code}");
        reader.consumer.synchronize().expect("the stream");
    }
    assert_eq!(reader.copied(), [6; LEN]);
    // The array, its memory and cudarc's two events for that.
    driver.expect_left(MEMORY, 1);
    driver.expect_left(EVENTS, 2);
    driver.expect_left(STREAMS, 1);
    driver.expect_left(CONTEXTS, 1);
}

/// An array is not taken for work that is only captured, and is back at once.
#[test]
fn a_stream_that_captures() {
    let Some(driver) = Driver::load() else { return };
    let reader = Reader::new();
    let array = reader.reading(&driver);
    driver.capture(true);
    let error = InUse::until_done(array, &reader.consumer).expect_err("a stream that captures");
    assert_eq!((error.error, reader.released()), (CudaError::Capturing, 0));
    driver.capture(false);
    reader.consumer.synchronize().expect("the stream");
    drop(error);
    assert_eq!(reader.released(), 1);
}
