use std::hint::black_box;
use std::time::Instant;

use arrow_device_abi::ArrayNode;
use arrow_device_abi::cuda::CudaExport;
use arrow_device_abi_cuda_tests::bytes;
use cudarc::driver::sys;

use crate::machine::{Machine, export};

/// Rounds of a loop that is timed, and how often it is.
const ROUNDS: u32 = 2_000;
const TIMES: usize = 15;

/// Nanoseconds a round, the median of several times, of two things in turns.
fn in_turns(mut first: impl FnMut(), mut second: impl FnMut()) -> (f64, f64) {
    let time = |run: &mut dyn FnMut()| {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            run();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    };
    let (mut firsts, mut seconds): (Vec<f64>, Vec<f64>) =
        (0..TIMES).map(|_| (time(&mut first), time(&mut second))).unzip();
    (median(&mut firsts), median(&mut seconds))
}

pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

pub fn measure(machine: &Machine) -> Vec<(&'static str, String)> {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let mut figures: Vec<(&'static str, String)> = Vec::new();
    let mut figure = |name, value: f64| figures.push((name, format!("{value:.3}")));

    // Waiting for an event that has fired, so that the stream is never full: what it costs the host.
    let mut array = Some(export(&producer, bytes(&producer, 1, 16)));
    producer.synchronize().expect("the stream");
    let event = array.as_ref().map(|array| array.as_raw().sync_event).expect("an array");
    // SAFETY: exported with an event of CUDA's kind: a pointer to a handle, alive as long as the array.
    let event = unsafe { event.cast::<sys::CUevent>().read() };
    machine.context.bind_to_thread().expect("the context");
    let (ours, bare) = in_turns(
        || {
            let ready = array.take().expect("an array").synchronize(&consumer).expect("ready");
            array = Some(ready.into_device_array().expect("it has its event"));
        },
        || {
            // SAFETY: both are alive.
            let result = unsafe { sys::cuStreamWaitEvent(consumer.cu_stream(), event, 0) };
            assert_eq!(black_box(result), sys::CUresult::CUDA_SUCCESS);
        },
    );
    consumer.synchronize().expect("the stream");
    figure("synchronize_ns", ours);
    figure("bare_cuStreamWaitEvent_ns", bare);
    figure("synchronize_ratio", ours / bare);

    // That the host does not block: until the wait is queued, against what is waited for.
    let begin = Instant::now();
    let late = machine.late_array(&producer, 2, 16);
    let queued = Instant::now();
    let ready = late.synchronize(&consumer).expect("ready");
    figure("wait_queued_us", queued.elapsed().as_nanos() as f64 / 1e3);
    consumer.synchronize().expect("the stream");
    figure("work_waited_for_us", begin.elapsed().as_nanos() as f64 / 1e3);
    drop(ready);

    let node = ArrayNode { buffers: &[std::ptr::null(), std::ptr::null()], ..Default::default() };
    let (exported, recorded) = in_turns(
        || {
            // SAFETY: an empty array of bytes needs no buffers.
            drop(unsafe { CudaExport::new(&producer).export(&node, ()) }.expect("an array"));
        },
        || drop(producer.record_event(None).expect("an event")),
    );
    producer.synchronize().expect("the stream");
    figure("export_with_event_ns", exported);
    figure("exports_with_event_per_s", 1e9 / exported);
    figure("bare_event_ns", recorded);
    figure("bare_events_per_s", 1e9 / recorded);
    figure("export_ratio", exported / recorded);
    figures
}
