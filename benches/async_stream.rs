//! How many batches go through this crate's driver and receiver, back to back, against its synchronous device stream, in
//! one run.
//!
//! ```console
//! $ cargo bench --bench async_stream
//! ```
//!
//! Each side makes and releases the same batches, of one int64 column without a copy of its data, so that what differs is
//! the way between. The last lines are `name value`: `…_batches_per_second`, and `…_vs_sync`, the synchronous stream's
//! time over the asynchronous one's, so 1 is even and less is slower.
//!
//! What the asynchronous way costs: on one thread, where producer and consumer take turns, an allocation for the task, a
//! place in the queue, and a lock at each of its steps; on two, above all that a thread wakes another, which a deeper
//! prefetch makes rarer.

mod figures;

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{
    ArrayNode, AsyncReceiver, Blocking, Demand, Device, DeviceArrayStreamReader, Driven, ExportEvent,
    OwnedDeviceArray, OwnedDeviceArrayStream, OwnedSchema, SchemaNode, StreamFailure,
};
use criterion::{BenchmarkId, Throughput};
use figures::{criterion, median};
use futures_core::Stream;

const BATCHES: u64 = 1000;
const DEPTHS: [u32; 3] = [1, 16, 256];

fn main() {
    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    group.throughput(Throughput::Elements(BATCHES));
    group.bench_function("sync", |bencher| bencher.iter(synchronous));
    for depth in DEPTHS {
        let id = |name| BenchmarkId::from_parameter(format!("{name}_{depth}"));
        group.bench_function(id("one_thread"), |bencher| bencher.iter(|| on_one_thread(depth)));
        group.bench_function(id("two_threads"), |bencher| bencher.iter(|| on_two_threads(depth)));
    }
    group.finish();
    criterion.final_summary();

    print("sync");
    for depth in DEPTHS {
        print(&format!("one_thread_{depth}"));
        print(&format!("two_threads_{depth}"));
    }
}

const GROUP: &str = "async_stream";

fn schema() -> OwnedSchema {
    let column = SchemaNode { format: "l", name: Some("n"), ..SchemaNode::default() };
    let schema = SchemaNode { format: "+s", children: &[column], ..SchemaNode::default() };
    schema.export().expect("a schema that can be exported")
}

fn batches() -> impl Iterator<Item = Result<OwnedDeviceArray, StreamFailure>> + Send + 'static {
    let values = Arc::new(vec![0_i64; 64]);
    (0..BATCHES).map(move |_| {
        let column =
            ArrayNode { length: 64, buffers: &[ptr::null(), values.as_ptr().cast()], ..ArrayNode::default() };
        let batch =
            ArrayNode { length: 64, buffers: &[ptr::null()], children: &[column], ..ArrayNode::default() };
        // SAFETY: of the schema's type, in host memory that the keep-alive keeps.
        let array = unsafe { batch.export_on(Device::CPU, ExportEvent::Synchronized, Arc::clone(&values)) };
        Ok(array.expect("a tree that can be exported"))
    })
}

fn synchronous() {
    // SAFETY: the arrays are of this schema.
    let stream = unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, schema(), batches()) };
    let mut reader = DeviceArrayStreamReader::new(stream);
    black_box(reader.schema().expect("a schema"));
    let rows: i64 = reader.map(|array| black_box(array.expect("no errors")).as_raw().array.length).sum();
    assert_eq!(rows, 64 * BATCHES as i64);
}

/// Both ends polled in turn, as by an executor that has nothing else to do.
fn on_one_thread(depth: u32) {
    let (handler, mut receive) = AsyncReceiver::prepare(Demand::Prefetch(depth));
    // SAFETY: the arrays are of this schema.
    let mut drive = unsafe { handler.drive_iter(ArrowDeviceType::CPU, schema(), batches()) };
    let mut context = Context::from_waker(Waker::noop());
    let mut driving = Pin::new(&mut drive).poll(&mut context);
    let Poll::Ready(receiver) = Pin::new(&mut receive).poll(&mut context) else { panic!("no schema") };
    let mut arrays = receiver.expect("a schema").into_arrays();
    let mut rows = 0;
    loop {
        match Pin::new(&mut arrays).poll_next(&mut context) {
            Poll::Ready(Some(array)) => rows += black_box(array.expect("no errors")).as_raw().array.length,
            Poll::Ready(None) => break,
            Poll::Pending => driving = Pin::new(&mut drive).poll(&mut context),
        }
    }
    assert_eq!(driving, Poll::Ready(Driven::Complete));
    assert_eq!(rows, 64 * BATCHES as i64);
}

fn on_two_threads(depth: u32) {
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(depth));
    // SAFETY: the arrays are of this schema.
    let drive = unsafe { handler.drive_iter(ArrowDeviceType::CPU, schema(), batches()) };
    let driving = thread::spawn(move || drive.wait());
    let arrays = Blocking::new(receive.wait().expect("a schema").into_arrays());
    let rows: i64 = arrays.map(|array| black_box(array.expect("no errors")).as_raw().array.length).sum();
    assert_eq!(rows, 64 * BATCHES as i64);
    assert_eq!(driving.join().expect("no panic"), Driven::Complete);
}

/// Prints how fast a side was, and how it compares, by the medians that criterion has just written.
fn print(side: &str) {
    let Some(time) = median(GROUP, side) else { return };
    println!("async_stream_{side}_batches_per_second {:.0}", BATCHES as f64 / time * 1e9);
    if let (true, Some(sync)) = (side != "sync", median(GROUP, "sync")) {
        println!("async_stream_{side}_vs_sync {:.2}", sync / time);
    }
}
