use std::time::Instant;

use arrow_device_abi::cuda::{HostWait, to_device};
use arrow_device_abi::{
    ArrayNode, ArrayView, CopyOptions, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema, SchemaNode,
};
use cudarc::driver::result;

use crate::figures::median;
use crate::machine::Machine;

/// Bytes that are copied, and how often.
const BYTES: usize = 1 << 28;
const TIMES: usize = 7;

fn schema() -> OwnedSchema {
    let fields = [
        SchemaNode { format: "u", name: Some("words"), ..Default::default() },
        SchemaNode { format: "C", name: Some("bytes"), ..Default::default() },
    ];
    SchemaNode { format: "+s", children: &fields, ..Default::default() }.export().expect("a schema")
}

/// A struct of a column of words and one of bytes, of which nearly all is the latter, longer than the struct needs.
fn batch(len: usize) -> OwnedArray {
    let rows = len / 1000;
    let offsets: Vec<i32> = (0..=rows).map(|row| (row * 5) as i32).collect();
    let words: Vec<u8> = (0..rows).flat_map(|row| format!("{:05}", row % 100_000).into_bytes()).collect();
    let bulk: Vec<u8> = vec![7; len];
    let length = rows as i64;
    let null = std::ptr::null();
    let words_node = ArrayNode {
        length,
        buffers: &[null, offsets.as_ptr().cast(), words.as_ptr().cast()],
        ..Default::default()
    };
    let bytes_node =
        ArrayNode { length: len as i64, buffers: &[null, bulk.as_ptr().cast()], ..Default::default() };
    let node =
        ArrayNode { length, buffers: &[null], children: &[words_node, bytes_node], ..Default::default() };
    // SAFETY: the nodes are of the schema's types, and as long as their buffers, which are kept.
    unsafe { node.export((offsets, words, bulk)) }.expect("an array")
}

/// The bytes of the two columns.
fn contents(array: ArrayView<'_>) -> [&[u8]; 2] {
    let (words, bytes) = (array.child(0).expect("a column"), array.child(1).expect("a column"));
    // SAFETY: written by `batch`, or copied of that: five bytes a row.
    let words = unsafe { words.buffer_as::<u8>(2, words.length() * 5) }.expect("the words");
    // SAFETY: likewise, one byte an element.
    [words, unsafe { bytes.buffer_as::<u8>(1, bytes.length()) }.expect("the bytes")]
}

pub fn there_and_back(machine: &Machine) {
    let (producer, consumer) = (machine.stream(), machine.stream());
    let schema = schema();
    let view = schema.view().expect("a schema");
    let wanted = batch(1_000_000);
    let host = OwnedDeviceArray::from(batch(1_000_000)).synchronize(&NoWait).expect("a host array");
    machine.slow(&producer);
    // SAFETY: the schema is the array's own.
    let (copy, in_use) = unsafe { to_device(host, view, &producer, CopyOptions::new()) }.expect("a copy");
    let copy = copy.synchronize(&consumer).expect("ready");
    // SAFETY: the schema is the array's own.
    let back = unsafe { copy.to_host(view, &consumer, CopyOptions::new()) }.expect("a copy");
    drop(in_use);
    let (back, wanted) = (back.view().expect("an array"), wanted.view().expect("an array"));
    assert_eq!(contents(back), contents(wanted));
}

/// Gigabytes a second, ours and of a bare copy of the same bytes between the same kinds of memory.
pub fn measure(machine: &Machine) -> Vec<(&'static str, String)> {
    let stream = machine.stream();
    let schema = schema();
    let view = schema.view().expect("a schema");
    let mut host = vec![1_u8; BYTES];
    let memory = stream.clone_htod(&host).expect("memory");
    stream.synchronize().expect("the stream");
    let address = arrow_device_abi_cuda_tests::pointer(&memory);
    machine.context.bind_to_thread().expect("the context");

    let [mut up, mut bare_up, mut down, mut bare_down] = [const { Vec::new() }; 4];
    let gigabytes = |begin: Instant| BYTES as f64 / begin.elapsed().as_nanos() as f64;
    for _ in 0..TIMES {
        let array = OwnedDeviceArray::from(batch(BYTES)).synchronize(&NoWait).expect("a host array");
        let begin = Instant::now();
        // SAFETY: the schema is the array's own.
        let (copy, in_use) = unsafe { to_device(array, view, &stream, CopyOptions::new()) }.expect("a copy");
        let copy = copy.synchronize(&HostWait::new()).expect("ready");
        up.push(gigabytes(begin));
        drop(in_use);

        let begin = Instant::now();
        // SAFETY: the schema is the array's own.
        let back = unsafe { copy.to_host(view, &stream, CopyOptions::new()) }.expect("a copy");
        down.push(gigabytes(begin));
        drop((back, copy));

        machine.context.bind_to_thread().expect("the context");
        let begin = Instant::now();
        // SAFETY: both are this long, and the stream is waited for.
        unsafe { result::memcpy_htod_async(address, &host, stream.cu_stream()) }.expect("a copy");
        stream.synchronize().expect("the stream");
        bare_up.push(gigabytes(begin));
        // Into memory that is as fresh as that of a copy.
        host = vec![0; BYTES];
        let begin = Instant::now();
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_async(&mut host, address, stream.cu_stream()) }.expect("a copy");
        stream.synchronize().expect("the stream");
        bare_down.push(gigabytes(begin));
    }
    let figure = |name, values: &mut Vec<f64>| (name, format!("{:.3}", median(values)));
    vec![
        figure("to_device_gb_per_s", &mut up),
        figure("bare_htod_gb_per_s", &mut bare_up),
        figure("to_host_gb_per_s", &mut down),
        figure("bare_dtoh_gb_per_s", &mut bare_down),
    ]
}
