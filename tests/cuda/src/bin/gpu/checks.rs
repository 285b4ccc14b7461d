use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};

use arrow_device_abi::cuda::CudaExport;
use arrow_device_abi::cuda::{HostWait, InUse};
use arrow_device_abi::{ArrayNode, OwnedDeviceArray, Readiness};
use arrow_device_abi_cuda_tests::{bytes, current_context, in_no_context, pointer, read};
use cudarc::driver::{CudaContext, result};

use crate::machine::{Machine, export};

type Check = (&'static str, fn(&Machine));

pub const ALL: [Check; 10] = [
    ("without waiting the bytes are wrong", without_waiting),
    ("a stream waits on the device, and the host does not", a_stream_waits),
    ("the host waits, and asks", the_host_waits),
    ("a release right after the wait", a_release_right_after),
    ("two contexts", two_contexts),
    ("a fresh thread", a_fresh_thread),
    ("writes on other streams are covered", other_streams),
    ("released when the work is done", released_when_done),
    ("many threads", many_threads),
    ("copies there and back", crate::copies::there_and_back),
];

const LEN: usize = 1 << 16;

fn without_waiting(machine: &Machine) {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let array = machine.late_array(&producer, 7, LEN);
    // SAFETY: it is not, which is the point: device memory that is written while it is copied.
    let array = unsafe { array.assume_ready() };
    assert_eq!(read(&consumer, &array), [1; LEN]);
    producer.synchronize().expect("the stream");
}

fn a_stream_waits(machine: &Machine) {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let array = machine.late_array(&producer, 7, LEN).synchronize(&consumer).expect("ready");
    assert_eq!(array.readiness(), Readiness::Queued);
    let array = array.into_device_array().expect("it has its event");
    assert_eq!(
        HostWait::new().is_complete(&array),
        Ok(false),
        "the work had ended before the wait was queued"
    );
    let array = array.synchronize(&consumer).expect("ready");
    assert_eq!(read(&consumer, &array), [7; LEN]);
}

fn the_host_waits(machine: &Machine) {
    let producer = machine.stream();
    let array = machine.late_array(&producer, 8, LEN);
    let host = HostWait::new();
    assert_eq!(host.is_complete(&array), Ok(false));
    let array = array.synchronize(&host).expect("ready");
    assert_eq!(array.readiness(), Readiness::Complete);
    assert_eq!(read(&machine.stream(), &array), [8; LEN]);
    assert_eq!(host.is_complete(&array.into_device_array().expect("a device array")), Ok(true));
}

fn a_release_right_after(machine: &Machine) {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let (memory, copy) = (bytes(&producer, 1, LEN), bytes(&consumer, 0, LEN));
    machine.slow(&producer);
    machine.fill(&producer, &memory, 9);
    // The event is the array's, the memory is not.
    // SAFETY: an array of the null type has no buffers.
    let array = unsafe { CudaExport::new(&producer).export(&ArrayNode::default(), ()) }.expect("an array");
    drop(array.synchronize(&consumer).expect("ready"));
    machine.context.bind_to_thread().expect("the context");
    let (to, from) = (pointer(&copy), pointer(&memory));
    // SAFETY: both are `LEN` bytes long, and alive until the streams are done.
    unsafe { result::memcpy_dtod_async(to, from, LEN, consumer.cu_stream()) }.expect("a copy");
    assert_eq!(consumer.clone_dtoh(&copy).expect("a copy"), [9; LEN]);
    producer.synchronize().expect("the stream");
}

fn two_contexts(machine: &Machine) {
    let other = CudaContext::new_non_primary(0, 0).expect("another context");
    let (producer, consumer) = (machine.stream(), other.new_stream().expect("a stream"));
    machine.context.bind_to_thread().expect("the context");
    let array = machine.late_array(&producer, 10, LEN);
    let before = current_context();
    let array = array.synchronize(&consumer).expect("a wait across contexts");
    assert_eq!(current_context(), before);
    consumer.synchronize().expect("the stream");
    assert_eq!(HostWait::new().is_complete(&array.into_device_array().expect("it has its event")), Ok(true));
    // And an event of the other context, waited for in the first.
    let array = export(&consumer, bytes(&consumer, 11, LEN));
    let array = array.synchronize(&producer).expect("a wait across contexts");
    producer.synchronize().expect("the stream");
    assert_eq!(read(&consumer, &array), [11; LEN]);
}

fn a_fresh_thread(machine: &Machine) {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let array = machine.late_array(&producer, 12, LEN);
    let array = in_no_context(|| array.synchronize(&consumer).expect("ready"));
    assert_eq!(read(&consumer, &array), [12; LEN]);
    in_no_context(move || drop(array));
    let array = machine.late_array(&producer, 13, LEN);
    let array = in_no_context(|| array.synchronize(&HostWait::new()).expect("ready"));
    assert_eq!(read(&consumer, &array), [13; LEN]);
    in_no_context(move || drop(array));
}

fn other_streams(machine: &Machine) {
    let (owner, exporter, consumer) = (machine.stream(), machine.stream(), machine.stream());
    let memory = bytes(&owner, 1, LEN);
    machine.slow(&owner);
    machine.fill(&owner, &memory, 14);
    let array = export(&exporter, memory).synchronize(&consumer).expect("ready");
    assert_eq!(read(&consumer, &array), [14; LEN]);
}

fn released_when_done(machine: &Machine) {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let memory = bytes(&producer, 15, LEN);
    let copy = bytes(&consumer, 0, LEN);
    let (to, from) = (pointer(&copy), pointer(&memory));
    let array = export(&producer, memory).synchronize(&consumer).expect("ready");
    machine.slow(&consumer);
    // SAFETY: both are `LEN` bytes long, and alive until the stream is done: the array's because of what is checked.
    unsafe { result::memcpy_dtod_async(to, from, LEN, consumer.cu_stream()) }.expect("a copy");
    let in_use = InUse::until_done(array, &consumer).expect("noted");
    assert_eq!(in_use.is_done(), Ok(false));
    drop(in_use);
    assert_eq!(consumer.clone_dtoh(&copy).expect("a copy"), [15; LEN]);
}

fn many_threads(machine: &Machine) {
    const THREADS: usize = 8;
    const ROUNDS: u8 = 50;
    let right = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (send, receive) = mpsc::sync_channel::<(u8, OwnedDeviceArray)>(4);
            let (producer, consumer) = (machine.stream(), machine.stream());
            let context = &machine.context;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let memory = bytes(&producer, 255, LEN);
                    context.bind_to_thread().expect("the context");
                    let to = pointer(&memory);
                    // SAFETY: memory of the device, as long as its slice.
                    unsafe { result::memset_d8_async(to, round, LEN, producer.cu_stream()) }.expect("a fill");
                    send.send((round, export(&producer, memory))).expect("a consumer");
                }
            });
            let right = &right;
            scope.spawn(move || {
                for (round, array) in receive {
                    let array = array.synchronize(&consumer).expect("ready");
                    assert_eq!(read(&consumer, &array), [round; LEN]);
                    drop(InUse::until_done(array, &consumer).expect("noted"));
                    right.fetch_add(1, SeqCst);
                }
            });
        }
    });
    assert_eq!(right.load(SeqCst), THREADS * usize::from(ROUNDS));
}

static STATIC: Mutex<Option<OwnedDeviceArray>> = Mutex::new(None);

thread_local! {
    static LOCAL: RefCell<Option<OwnedDeviceArray>> = const { RefCell::new(None) };
}

/// Leaves arrays alive at the end of the process.
pub fn leave_alive(machine: &Machine) {
    let stream = machine.stream();
    *STATIC.lock().expect("nobody panicked") = Some(export(&stream, bytes(&stream, 1, LEN)));
    LOCAL.set(Some(export(&stream, bytes(&stream, 1, LEN))));
}
