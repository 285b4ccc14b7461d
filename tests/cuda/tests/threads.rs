//! Many threads, two devices, at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use arrow_device_abi::cuda::{CudaExport, HostWait, InUse};
use arrow_device_abi::{ArrayNode, OwnedDeviceArray};
use arrow_device_abi_cuda_tests::{Driver, bytes, current_context, read};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};

const LEN: usize = 64;
const ROUNDS: u8 = 20;
const THREADS: usize = 4;

fn export(stream: &Arc<CudaStream>, memory: CudaSlice<u8>) -> OwnedDeviceArray {
    let mut export = CudaExport::new(stream);
    let buffers = [std::ptr::null(), export.buffer(&memory).expect("a buffer")];
    let node = ArrayNode { length: LEN as i64, buffers: &buffers, ..Default::default() };
    // SAFETY: an array of bytes without nulls has these two buffers; the memory is `LEN` bytes long, and kept.
    unsafe { export.export(&node, memory) }.expect("an array")
}

/// C13, C14, C33: producers and consumers on threads of their own, across devices; every array is read after it was
/// written, and every event destroyed.
#[test]
fn producers_and_consumers() {
    let Some(driver) = Driver::load() else { return };
    let contexts = [CudaContext::new(0).expect("a context"), CudaContext::new(1).expect("a context")];
    let read_right = AtomicUsize::new(0);
    let driver = &driver;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (send, receive) = mpsc::sync_channel::<(u8, OwnedDeviceArray)>(2);
            let (here, there) = (&contexts[thread % 2], &contexts[(thread + 1) % 2]);
            let producer = here.new_stream().expect("a stream");
            let consumer = if thread < 2 { there } else { here }.new_stream().expect("a stream");
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let memory = bytes(&producer, 255, LEN);
                    driver.slow_fill(&producer, &memory, round, Duration::from_micros(500));
                    send.send((round, export(&producer, memory))).expect("a consumer");
                }
            });
            let read_right = &read_right;
            scope.spawn(move || {
                let own = current_context();
                for (round, array) in receive {
                    let array = if round % 3 == 0 {
                        array.synchronize(&HostWait::new()).expect("ready")
                    } else {
                        array.synchronize(&consumer).expect("ready")
                    };
                    if round == 0 {
                        assert_eq!(current_context(), own);
                    }
                    assert_eq!(read(&consumer, &array), [round; LEN]);
                    read_right.fetch_add(1, SeqCst);
                    drop(InUse::until_done(array, &consumer).expect("noted"));
                }
            });
        }
    });
    assert_eq!(read_right.load(SeqCst), THREADS * usize::from(ROUNDS));
    assert_eq!(driver.calls("cuEventCreate"), driver.calls("cuEventDestroy_v2"));
}

/// C33, B5: the nodes of one tree are released by many threads at once, none of which has a context; the memory goes once.
#[test]
fn nodes_on_many_threads() {
    let Some(driver) = Driver::load() else { return };
    let context = CudaContext::new(0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let memory = bytes(&stream, 1, LEN);
    let children = [ArrayNode::default(); 8];
    let node = ArrayNode { buffers: &[std::ptr::null()], children: &children, ..Default::default() };
    // SAFETY: a struct array of null arrays, all empty.
    let array = unsafe { CudaExport::new(&stream).export(&node, memory) }.expect("an array");
    let mut array = array.synchronize(&stream).expect("ready");
    let nodes: Vec<_> = (0..8).map(|index| array.take_child(index).expect("a child")).chain([]).collect();
    driver.reset();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(array));
        for node in nodes {
            scope.spawn(move || {
                drop(node);
                assert!(current_context().is_null());
            });
        }
    });
    assert_eq!(driver.calls("cuMemFree_v2"), 1);
}
