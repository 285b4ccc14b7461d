//! Arrays in the memory of a real OpenCL device, whose kernels run when the test lets them.

use std::error::Error;
use std::ffi::c_void;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{
    ArrayNode, Device, EventWaiter, OwnedDeviceArray, Readiness, ReadyDeviceArray, SyncErrorKind, SyncEvent,
};
use arrow_device_abi_opencl_example::consumer::{queue_for, read_int32};
use arrow_device_abi_opencl_example::producer::{Gate, Producer, UNWRITTEN, find_device};
use arrow_device_abi_opencl_example::{HostWait, QueueWait, WaitError};
use opencl3::command_queue::CommandQueue;
use opencl3::event::{CL_COMPLETE, Event, retain_event};
use opencl3::types::CL_NON_BLOCKING;

const ROWS: usize = 500;
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(20);

fn squares() -> Vec<i32> {
    (0..500).map(|i| i * i).collect()
}

/// A producer on the machine's OpenCL device; without one the test is skipped.
fn producer(test: &str) -> Option<Producer> {
    // PoCL 3.1 starts up when it is first used, and threads that come meanwhile find devices without memory.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let Some(device) = find_device().unwrap() else {
        arrow_device_abi_support::skip(test, "no OpenCL device with shared virtual memory");
        return None;
    };
    Some(Producer::new(&device).unwrap())
}

/// An array whose kernel waits for the gate, and a consumer's queue where it is.
fn gated(producer: &Producer) -> (Gate, OwnedDeviceArray, CommandQueue) {
    let gate = producer.gate().unwrap();
    let array = producer.squares(ROWS, Some(&gate)).unwrap();
    assert_eq!(array.device(), Device::new(ArrowDeviceType::OPENCL, 0));
    let queue = queue_for(&array).unwrap().unwrap();
    (gate, array, queue)
}

/// A queue in the producer's context, as of a consumer of some other array.
fn queue_in(producer: &Producer) -> CommandQueue {
    queue_for(&producer.squares(1, None).unwrap()).unwrap().unwrap()
}

/// The array's event, retained, so that it can be asked after the array's release.
fn event_of(array: &OwnedDeviceArray) -> Event {
    let Ok(Some(SyncEvent::OpenCl(event))) = array.sync_event() else {
        panic!("{:?}", array.sync_event());
    };
    // SAFETY: points to a `cl_event` while the array lives.
    let event = unsafe { event.as_ptr().read() };
    // SAFETY: live, as the array is.
    unsafe { retain_event(event) }.unwrap();
    Event::new(event)
}

/// The array's column, of which all but the buffers is forgotten.
fn column(mut array: ReadyDeviceArray) -> ReadyDeviceArray {
    array.take_child(0).unwrap()
}

fn read(queue: &CommandQueue, column: &ReadyDeviceArray) -> Result<Vec<i32>, Box<dyn Error>> {
    // SAFETY: int32s by `Producer::schema`; each test's queue is of the array's context, and says what it waits for.
    unsafe { read_int32(queue, column) }
}

/// Queues a copy of the struct's column, and does not wait.
///
/// # Safety
///
/// - `to` has `ROWS` values, and is left alone until the event has fired.
unsafe fn queue_copy(queue: &CommandQueue, array: &ReadyDeviceArray, to: *mut i32) -> Event {
    let values = array.view().unwrap().child(0).unwrap().buffers()[1];
    let size = ROWS * size_of::<i32>();
    // SAFETY: memory of the queue's context, so long, that the array keeps; `to` as the caller promises.
    unsafe { queue.enqueue_svm_mem_cpy(CL_NON_BLOCKING, to.cast(), values, size, &[]) }.unwrap()
}

/// What OpenCL's threads do in their own time.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "not in {LONG:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// D5, D6, D7: before the event the memory holds other values; the host waits until the kernel has run, and not less.
#[test]
fn the_host_waits_for_the_kernel() {
    let Some(producer) = producer("the host waits for a kernel") else { return };
    let (gate, array, queue) = gated(&producer);
    // SAFETY: what is read is no more than int32s of whatever value: the kernel cannot run before the gate is open.
    let unready = unsafe { array.assume_ready() };
    let mut before = vec![0_i32; ROWS];
    // SAFETY: waited for at once.
    unsafe { queue_copy(&queue, &unready, before.as_mut_ptr()) }.wait().unwrap();
    assert_eq!(before, [UNWRITTEN; ROWS], "whoever does not wait reads this");

    let array = unready.into_device_array().unwrap();
    let (done, is_done) = channel();
    let waiting = thread::spawn(move || {
        let ready = array.synchronize(&HostWait);
        done.send(()).unwrap();
        ready.unwrap()
    });
    assert_eq!(is_done.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout), "nothing to wait for yet");
    gate.open().unwrap();
    is_done.recv_timeout(LONG).unwrap();
    let ready = waiting.join().unwrap();
    assert_eq!(ready.readiness(), Readiness::Complete);
    assert!(!ready.is_host_ready(), "the host reads coarse-grained memory through a queue only");
    assert_eq!(read(&queue, &column(ready)).unwrap(), squares());
}

/// D5, D7: the queue waits and the host does not; what is queued behind the wait finds the kernel's values.
#[test]
fn a_queue_waits_for_the_kernel() {
    let Some(producer) = producer("a queue waits for a kernel") else { return };
    let (gate, array, queue) = gated(&producer);
    let event = event_of(&array);
    let ready = array.synchronize(&QueueWait(&queue)).unwrap();
    assert_eq!(ready.readiness(), Readiness::Queued);
    assert_ne!(event.command_execution_status().unwrap().0, CL_COMPLETE, "the host was back before");

    let mut copy = vec![0_i32; ROWS];
    // SAFETY: looked at when the queue is finished.
    let copied = unsafe { queue_copy(&queue, &ready, copy.as_mut_ptr()) };
    queue.flush().unwrap();
    thread::sleep(SHORT);
    assert_ne!(copied.command_execution_status().unwrap().0, CL_COMPLETE, "not behind the wait");
    gate.open().unwrap();
    queue.finish().unwrap();
    assert_eq!(copied.command_execution_status().unwrap().0, CL_COMPLETE);
    assert_eq!(copy, squares());
    assert_eq!(read(&queue, &column(ready)).unwrap(), squares());
}

/// D3, D11: the event and the memory go with the last node, once, and the event's handle is read until then.
#[test]
fn the_last_node_frees_event_and_memory() {
    let Some(producer) = producer("release of event and memory") else { return };
    let (gate, array, queue) = gated(&producer);
    gate.open().unwrap();
    let event = event_of(&array);
    event.wait().unwrap();
    // OpenCL's own threads may hold the event for a moment after it has fired.
    eventually("array and test hold the event", || event.reference_count().unwrap() == 2);

    let mut ready = array.synchronize(&HostWait).unwrap();
    let column = ready.take_child(0).unwrap();
    drop(ready);
    assert_eq!((event.reference_count().unwrap(), producer.live()), (2, 1), "the column lives");
    assert_eq!(read(&queue, &column).unwrap(), squares());
    thread::spawn(move || drop(column)).join().unwrap();
    eventually("the test alone holds the event", || event.reference_count().unwrap() == 1);
    eventually("the memory is freed", || producer.live() == 0);
}

/// D3: an array that is released before its kernel has run keeps its memory until then, and the release waits for
/// nothing.
#[test]
fn released_before_the_kernel_has_run() {
    let Some(producer) = producer("release before the kernel has run") else { return };
    for fails in [false, true] {
        let (gate, array, _queue) = gated(&producer);
        let event = event_of(&array);
        drop(array);
        thread::sleep(SHORT);
        assert_eq!(producer.live(), 1, "the kernel will write there");
        assert_ne!(event.command_execution_status().unwrap().0, CL_COMPLETE);
        if fails { gate.fail(-7) } else { gate.open() }.unwrap();
        eventually("the memory is freed", || producer.live() == 0);
        eventually("the test alone holds the event", || event.reference_count().unwrap() == 1);
    }
}

/// D3: the wait in a queue outlives the array, whose event goes with it.
#[test]
fn released_right_after_the_queued_wait() {
    let Some(producer) = producer("release right after a queued wait") else { return };
    let (gate, array, queue) = gated(&producer);
    drop(array.synchronize(&QueueWait(&queue)).unwrap());

    // SAFETY: a command with nothing to wait for but what stands in the queue.
    let behind = unsafe { queue.enqueue_marker_with_wait_list(&[]) }.unwrap();
    queue.flush().unwrap();
    thread::sleep(SHORT);
    assert_ne!(behind.command_execution_status().unwrap().0, CL_COMPLETE, "the wait went with the array");
    gate.open().unwrap();
    behind.wait().unwrap();
    eventually("the memory is freed", || producer.live() == 0);
}

/// D11: the array lives on without its producer, whose queue and context it needs.
#[test]
fn an_array_outlives_its_producer() {
    let Some(producer) = producer("an array without its producer") else { return };
    let (gate, array, queue) = gated(&producer);
    drop(producer);
    gate.open().unwrap();
    let ready = array.synchronize(&QueueWait(&queue)).unwrap();
    assert_eq!(read(&queue, &column(ready)).unwrap(), squares());
}

/// An error half-way exports nothing and leaves nothing.
#[test]
fn a_failed_export_leaves_nothing() {
    let Some(producer) = producer("a failed export") else { return };
    assert!(producer.squares(0, None).is_err());
    assert!(producer.squares(usize::MAX, None).is_err());
    assert_eq!(producer.live(), 0);
    assert_eq!(producer.squares(1, None).map(drop).map_err(|error| error.to_string()), Ok(()));
}

/// Waits in both ways, and gives back what failed; the array has to come back as it was.
fn refused(array: OwnedDeviceArray, queue: &CommandQueue) -> (OwnedDeviceArray, [WaitError; 2]) {
    fn refused<W: EventWaiter<Error = WaitError>>(
        array: OwnedDeviceArray,
        waiter: W,
    ) -> (OwnedDeviceArray, WaitError) {
        let before = format!("{:?}", array.as_raw());
        let error = array.synchronize(&waiter).unwrap_err();
        assert_eq!(format!("{:?}", error.array.as_raw()), before);
        let SyncErrorKind::Wait(kind) = error.kind else {
            panic!("{error}");
        };
        (error.array, kind)
    }
    let (array, host) = refused(array, HostWait);
    let (array, queued) = refused(array, QueueWait(queue));
    (array, [host, queued])
}

/// D5: a kernel that failed is an error of the wait, of one that was there before too.
#[test]
fn a_failed_kernel_is_an_error() {
    let Some(producer) = producer("a failed kernel") else { return };
    let (gate, array, queue) = gated(&producer);
    let waiting = thread::spawn(move || array.synchronize(&HostWait).unwrap_err());
    thread::sleep(SHORT);
    gate.fail(-7).unwrap();
    let error = waiting.join().unwrap();
    assert_eq!(error.kind, SyncErrorKind::Wait(WaitError::OpenCl(-14)));
    let text = "waiting for the array's event failed: CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST (-14)";
    assert_eq!(error.to_string(), text);

    let (array, errors) = refused(error.array, &queue);
    assert_eq!(errors, [WaitError::OpenCl(-14), WaitError::OpenCl(-14)]);
    assert_eq!(producer.live(), 1);
    drop(array);
    eventually("the memory is freed", || producer.live() == 0);
}

/// What the docs of `QueueWait` say of a kernel that fails after the wait was queued.
#[test]
fn a_kernel_fails_behind_the_queued_wait() {
    let Some(producer) = producer("a kernel that fails later") else { return };
    let (gate, array, queue) = gated(&producer);
    let event = event_of(&array);
    // By hand, to hold its event: PoCL 3.1 aborts where a command fails whose event nobody holds.
    // SAFETY: a live event of the queue's context.
    let barrier = unsafe { queue.enqueue_barrier_with_wait_list(&[event.get()]) }.unwrap();
    // SAFETY: its buffers are read behind the barrier only.
    let array = unsafe { array.assume_ready() };
    let mut copy = vec![0_i32; ROWS];
    // SAFETY: looked at when the copy has failed.
    let copied = unsafe { queue_copy(&queue, &array, copy.as_mut_ptr()) };

    gate.fail(-7).unwrap();
    assert_eq!((barrier.wait().unwrap_err().0, copied.wait().unwrap_err().0), (-14, -14));
    assert_eq!(copy, [0; ROWS], "the copy has not run");
    // SAFETY: waited for at once.
    unsafe { queue_copy(&queue, &array, copy.as_mut_ptr()) }.wait().unwrap();
    assert_eq!(copy, [UNWRITTEN; ROWS], "what is queued later runs");
    let error = array.into_device_array().unwrap().synchronize(&HostWait).unwrap_err();
    assert_eq!(error.kind, SyncErrorKind::Wait(WaitError::OpenCl(-14)));
}

/// C13's like: OpenCL refuses an event of another context, and the array is still there for the right queue.
#[test]
fn an_event_of_another_context() {
    let Some(producer) = producer("an event of another context") else { return };
    let (gate, array, queue) = gated(&producer);
    let other = self::producer("an event of another context").unwrap();
    let error = array.synchronize(&QueueWait(&queue_in(&other))).unwrap_err();
    assert_eq!(error.kind, SyncErrorKind::Wait(WaitError::OpenCl(-34)));
    gate.open().unwrap();
    let ready = error.array.synchronize(&QueueWait(&queue)).unwrap();
    assert_eq!(read(&queue, &column(ready)).unwrap(), squares());
}

/// A struct made by hand, whose event is anything.
fn by_hand(device_type: ArrowDeviceType, sync_event: *mut c_void) -> OwnedDeviceArray {
    // SAFETY: no buffers, no children.
    let array = unsafe { ArrayNode::default().export(()) }.unwrap().into_raw();
    let raw = ArrowDeviceArray { array, device_id: 0, device_type, sync_event, reserved: [0; 3] };
    // SAFETY: live, and nobody else's; each test gives an event that it expects to be refused.
    unsafe { OwnedDeviceArray::from_raw(raw) }.unwrap()
}

/// C1: a null handle, an array of another device, another number of device: errors of their own, and the event of another
/// device is not followed.
#[test]
fn what_is_no_event_of_opencl() {
    let Some(producer) = producer("events that are not OpenCL's") else { return };
    let queue = queue_in(&producer);

    let mut null: *mut c_void = ptr::null_mut();
    let array = by_hand(ArrowDeviceType::OPENCL, (&raw mut null).cast());
    assert_eq!(queue_for(&array).map(drop), Err(WaitError::NullEvent));
    assert_eq!(refused(array, &queue).1, [WaitError::NullEvent; 2]);

    let nowhere = ptr::without_provenance_mut(8);
    for device_type in [ArrowDeviceType::CUDA, ArrowDeviceType::ROCM, ArrowDeviceType(99)] {
        let array = by_hand(device_type, nowhere);
        let error = WaitError::NotOpenCl(array.device());
        assert_eq!(queue_for(&array).map(drop), Err(error));
        assert_eq!(refused(array, &queue).1, [error, error]);
    }
    // D8: without an event nothing is asked, and nobody knows a queue.
    let array = by_hand(ArrowDeviceType::OPENCL, ptr::null_mut());
    assert!(queue_for(&array).unwrap().is_none());
    assert_eq!(array.synchronize(&HostWait).unwrap().readiness(), Readiness::Complete);
}

/// The example, and what it says where there is no OpenCL: no library, or none of its platforms.
#[test]
fn the_example_runs() {
    let example = || Command::new(env!("CARGO_BIN_EXE_opencl"));
    let broken = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libOpenCL.so.1");
    fs::write(&broken, "no library").unwrap();
    let nowhere = [("OCL_ICD_VENDORS", Path::new("/nowhere")), ("LD_LIBRARY_PATH", broken.parent().unwrap())];
    for (name, value) in nowhere {
        let output = example().env(name, value).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains("there is no OpenCL device"), "{name}: {text}");
    }

    if producer("the OpenCL example").is_none() {
        return;
    }
    let output = example().output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Queued, the host has not waited") && text.contains("sum 332833500"), "{text}");
}
