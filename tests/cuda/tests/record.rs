//! The producing side: device memory exported with an event that covers the work that writes it.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use arrow_device_abi::cuda::{CudaError, CudaExport, CudaExportErrorKind};
use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{ArrayNode, Device, ExportErrorKind, OwnedDeviceArray};
use arrow_device_abi_cuda_tests::{
    CONTEXTS, DEINITIALIZED, Driver, EVENTS, bytes, current_context, in_no_context, read,
};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};

const LATE: Duration = Duration::from_millis(60);
const LEN: usize = 500;

/// Exports memory as an array of bytes.
fn export(stream: &Arc<CudaStream>, memory: CudaSlice<u8>) -> OwnedDeviceArray {
    let mut export = CudaExport::new(stream);
    let buffers = [std::ptr::null(), export.buffer(&memory).expect("a buffer")];
    let node = ArrayNode { length: LEN as i64, buffers: &buffers, ..Default::default() };
    // SAFETY: an array of bytes without nulls has these two buffers; the memory is `LEN` bytes long, and kept.
    unsafe { export.export(&node, memory) }.expect("an array")
}

fn slot_of(array: &OwnedDeviceArray) -> *mut c_void {
    array.as_raw().sync_event
}

fn handle_of(array: &OwnedDeviceArray) -> *mut c_void {
    // SAFETY: exported with an event of CUDA's kind: a pointer to a handle.
    unsafe { slot_of(array).cast::<*mut c_void>().read() }
}

/// D6, D11, C1, C21: the event fires after the work, its handle stands behind the pointer, wherever the struct goes, and
/// its timing is disabled.
#[test]
fn the_event_covers_the_work() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(1).expect("a context");
    let (producer, consumer) =
        (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let memory = bytes(&producer, 1, LEN);
    driver.slow_fill(&producer, &memory, 9, LATE);
    let array = export(&producer, memory);
    assert_eq!(array.device(), Device::new(ArrowDeviceType::CUDA, 1));
    assert_eq!(array.as_raw().reserved, [0; 3]);
    let (slot, handle) = (slot_of(&array), handle_of(&array));
    assert_ne!(slot, handle);
    assert_eq!(driver.event_flags(handle), 2, "CU_EVENT_DISABLE_TIMING");

    let mut elsewhere = Box::new(arrow_device_abi::raw::ArrowDeviceArray::released());
    // SAFETY: valid for writes, and holds nothing.
    unsafe { array.export_to(&raw mut *elsewhere) };
    // SAFETY: live, and nobody else's.
    let array = unsafe { OwnedDeviceArray::take(&raw mut *elsewhere) }.expect("the array");
    assert_eq!((slot_of(&array), handle_of(&array)), (slot, handle));
    let array = array.synchronize(&consumer).expect("ready");
    assert_eq!(read(&consumer, &array), [9; LEN]);
    assert_eq!(driver.event_flags(handle), 2, "alive as long as the array");
    drop(array);
    assert_eq!(driver.event_flags(handle), -1, "destroyed with it");
}

/// C17: what was queued on the streams that wrote, by cudarc's account or by the caller's, is covered.
#[test]
fn other_streams_that_wrote_are_covered() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let streams: Vec<_> = (0..3).map(|_| context.new_stream().expect("a stream")).collect();
    let consumer = context.new_stream().expect("a stream");
    let [owner, writer, exporter] = <[_; 3]>::try_from(streams).expect("three streams");

    // On the memory's own stream, and the event is recorded on another.
    let memory = bytes(&owner, 1, LEN);
    driver.slow_fill(&owner, &memory, 2, LATE);
    let array = export(&exporter, memory).synchronize(&consumer).expect("ready");
    assert_eq!(read(&consumer, &array), [2; LEN]);

    // On a third, through cudarc, which knows of it.
    let mut memory = bytes(&owner, 1, LEN);
    context.bind_to_thread().expect("the context");
    driver.delay(&writer, LATE);
    writer.memset_zeros(&mut memory).expect("zeros");
    let array = export(&exporter, memory).synchronize(&consumer).expect("ready");
    assert_eq!(read(&consumer, &array), [0; LEN]);

    // On a third, past cudarc.
    let memory = bytes(&owner, 1, LEN);
    driver.slow_fill(&writer, &memory, 3, LATE);
    let mut export = CudaExport::new(&exporter);
    export.after(&writer);
    let buffers = [std::ptr::null(), export.buffer(&memory).expect("a buffer")];
    let node = ArrayNode { length: LEN as i64, buffers: &buffers, ..Default::default() };
    // SAFETY: an array of bytes without nulls has these two buffers; the memory is `LEN` bytes long, and kept.
    let array =
        unsafe { export.export(&node, memory) }.expect("an array").synchronize(&consumer).expect("ready");
    assert_eq!(read(&consumer, &array), [3; LEN]);
}

/// A view goes in as its slice does: it points into it.
#[test]
fn views_are_buffers() {
    let Some(_driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let memory = Arc::new(stream.clone_htod(&(0..100).collect::<Vec<u8>>()).expect("memory"));
    let mut export = CudaExport::new(&stream);
    let whole = export.buffer(&*memory).expect("a buffer");
    let part = export.buffer(&memory.slice(40..60)).expect("a buffer");
    assert_eq!(part.addr() - whole.addr(), 40);
    let buffers = [std::ptr::null(), part];
    let node = ArrayNode { length: 20, buffers: &buffers, ..Default::default() };
    // SAFETY: an array of bytes without nulls has these two buffers; the view is 20 bytes long, its memory kept.
    let array =
        unsafe { export.export(&node, memory) }.expect("an array").synchronize(&stream).expect("ready");
    assert_eq!(read(&stream, &array), (40..60).collect::<Vec<u8>>());
}

/// Memory of the host is of another type, and takes the same events; other devices' is refused.
#[test]
fn types_of_memory() {
    let Some(_driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    for device_type in [ArrowDeviceType::CUDA, ArrowDeviceType::CUDA_HOST, ArrowDeviceType::CUDA_MANAGED] {
        let export = CudaExport::new(&stream).of_type(device_type).expect("one of CUDA's");
        // SAFETY: an array of the null type has no buffers.
        let array = unsafe { export.export(&ArrayNode::default(), ()) }.expect("an array");
        assert_eq!(array.device(), Device::new(device_type, 0));
        assert!(!slot_of(&array).is_null());
    }
    for device_type in [ArrowDeviceType::CPU, ArrowDeviceType::ROCM, ArrowDeviceType(99)] {
        let error = CudaExport::new(&stream).of_type(device_type).expect_err("not CUDA's");
        assert_eq!(error, CudaError::NotCuda(Device::new(device_type, 0)));
    }
}

/// Says which context was current when it was dropped.
struct Witness {
    context: Arc<AtomicUsize>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.context.store(current_context().addr(), SeqCst);
        self.drops.fetch_add(1, SeqCst);
    }
}

/// A tree of a struct with two children, over nothing.
fn tree(stream: &Arc<CudaStream>, witness: Witness) -> OwnedDeviceArray {
    let children = [ArrayNode::default(), ArrayNode::default()];
    let node = ArrayNode { buffers: &[std::ptr::null()], children: &children, ..Default::default() };
    // SAFETY: a struct array of two null arrays, all empty.
    unsafe { CudaExport::new(stream).export(&node, witness) }.expect("an array")
}

/// D3, D11, C13, C14: the event is made in its stream's context, whichever is current; event and owner go with the last node, on whatever thread, with the event's context current, and the
/// thread's own context is current before and after.
#[test]
fn the_last_node_takes_the_event_with_it() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(1).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let (at, drops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let array = tree(&stream, Witness { context: Arc::clone(&at), drops: Arc::clone(&drops) });
    let handle = handle_of(&array);
    let mut array = array.synchronize(&stream).expect("ready");
    let children = [array.take_child(0).expect("a child"), array.take_child(1).expect("a child")];
    drop(array);
    let [first, second] = children;
    in_no_context(move || drop(first));
    assert_eq!((drops.load(SeqCst), driver.event_flags(handle)), (0, 2));
    in_no_context(move || drop(second));
    assert_eq!((drops.load(SeqCst), driver.event_flags(handle)), (1, -1));
    assert_eq!(at.load(SeqCst), context.cu_ctx().addr());

    // A thread with a context of another device keeps it.
    let other = CudaContext::new(0).expect("another device");
    other.bind_to_thread().expect("the context");
    let array = tree(&stream, Witness { context: Arc::clone(&at), drops: Arc::clone(&drops) });
    assert_eq!(current_context(), other.cu_ctx().cast());
    drop(array);
    assert_eq!(current_context(), other.cu_ctx().cast());
    assert_eq!((at.load(SeqCst), drops.load(SeqCst)), (context.cu_ctx().addr(), 2));
    assert_eq!(driver.calls("cuEventCreate"), driver.calls("cuEventDestroy_v2"));
}

/// The array may be all that is left of its context: it goes with it, and the thread that lets go has no context after.
#[test]
fn the_array_may_own_its_context() {
    let Some(driver) = Driver::load() else { return };
    let before = driver.live(CONTEXTS);
    for primary in [true, false] {
        let array = in_no_context(|| {
            let context = if primary { CudaContext::new(1) } else { CudaContext::new_non_primary(1, 0) };
            let context = context.expect("a context");
            let stream = context.new_stream().expect("a stream");
            let array = export(&stream, bytes(&stream, 1, LEN));
            drop((stream, context));
            // SAFETY: takes this thread's contexts off, as cudarc does not.
            while !current_context().is_null() {
                // SAFETY: no context is current afterwards.
                unsafe { cudarc::driver::sys::cuCtxSetCurrent(std::ptr::null_mut()) }.result().expect("none");
            }
            array
        });
        assert_eq!(driver.live(CONTEXTS), before + 1);
        in_no_context(|| drop(array));
        assert_eq!(driver.live(CONTEXTS), before);
    }
}

/// The same on a thread that has that context, which the array takes with it: it is not made current again.
#[test]
fn the_current_context_may_end_with_the_array() {
    let Some(driver) = Driver::load() else { return };
    let other = CudaContext::new(0).expect("another context");
    let contexts = driver.live(CONTEXTS);
    let context = CudaContext::new_non_primary(1, 0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let array = export(&stream, bytes(&stream, 1, LEN));
    let handle = context.cu_ctx();
    other.bind_to_thread().expect("the context");
    drop((stream, context));
    // SAFETY: it lives as long as the array.
    unsafe { cudarc::driver::sys::cuCtxSetCurrent(handle) }.result().expect("the context");
    driver.reset();
    drop(array);
    assert_eq!(driver.live(CONTEXTS), contexts, "it went with the array");
    assert_ne!(current_context(), handle.cast());
    assert_eq!(driver.calls("cuCtxSetCurrent"), 0, "a handle of no context was set");
}

/// On a stream that captures a graph nothing runs that an event could wait for.
#[test]
fn a_stream_that_captures() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let memory = bytes(&stream, 1, LEN);
    driver.capture(true);
    // SAFETY: an array of the null type has no buffers.
    let error = unsafe { CudaExport::new(&stream).export(&ArrayNode::default(), memory) };
    let error = error.expect_err("a stream that captures");
    assert_eq!(error.kind, CudaExportErrorKind::Cuda(CudaError::Capturing));
    driver.capture(false);
    assert_eq!(stream.clone_dtoh(&error.keep).expect("the memory is back"), [1; LEN]);
}

/// A tree that cannot be made gives the owner back, exports nothing, and destroys the event.
#[test]
fn a_tree_that_cannot_be_made() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let memory = bytes(&stream, 5, LEN);
    let before = driver.live(EVENTS);
    let node = ArrayNode { length: -1, ..Default::default() };
    // SAFETY: refused.
    let error = unsafe { CudaExport::new(&stream).export(&node, memory) }.expect_err("a negative length");
    assert_eq!(error.kind, CudaExportErrorKind::Export(ExportErrorKind::Length { length: -1, offset: 0 }));
    assert_eq!(driver.live(EVENTS), before);
    assert_eq!(stream.clone_dtoh(&error.keep).expect("the memory is back"), [5; LEN]);
}

/// C16: a driver that is past its end refuses everything. Owner and array go all the same, and nothing panics.
#[test]
fn a_driver_past_its_end() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let drops = Arc::new(AtomicUsize::new(0));

    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let exported = |stream: &Arc<CudaStream>| {
        // SAFETY: an array of the null type has no buffers.
        unsafe { CudaExport::new(stream).export(&ArrayNode::default(), Counted(Arc::clone(&drops))) }
    };
    let array = exported(&stream).expect("an array");
    let event = handle_of(&array);
    driver.set_gone(true);
    drop(array);
    assert_eq!(drops.load(SeqCst), 1);
    let error = exported(&stream).expect_err("no driver any more");
    let CudaExportErrorKind::Cuda(refusal) = error.kind else { panic!("{error}") };
    assert_eq!(refusal.code(), Some(DEINITIALIZED));
    drop(error);
    assert_eq!(drops.load(SeqCst), 2);
    driver.set_gone(false);
    // What the test's own account of what is alive asks for.
    context.bind_to_thread().expect("the context");
    // SAFETY: the release could not destroy it.
    unsafe { cudarc::driver::sys::cuEventDestroy_v2(event.cast()) }.result().expect("a live event");
}
