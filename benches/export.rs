//! How long exporting, draining and moving take, against arrow-rs and against C, in one run.
//!
//! ```console
//! $ cargo bench --bench export
//! ```
//!
//! The last lines are `name value`. `…_vs_arrow_rs` is their time over ours, so more is better; `…_vs_c` is our time
//! over C's, so 1 is even. Where valgrind is installed, the last ones are instructions of one move, ours and C's.
//!
//! Where the time goes, and what the floor is: one column of an exported tree is 96 bytes of slot, 8 of child pointer
//! and 16 of buffer pointers, written once and looked at once when the tree is released to see whether it was moved
//! out. The floor of a tree is one allocation and one free. arrow-rs allocates per node the struct itself, its private
//! data, its buffer pointers and its child pointers, and counts a reference up and down per buffer. Both sides start
//! here from the description that they take: `ArrayData` and `Schema` there, `ArrayNode` and `SchemaNode` here.

mod figures;

use std::env;
use std::ffi::c_void;
use std::hint::black_box;
use std::process::Command;
use std::ptr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use arrow_data::ArrayData;
use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArray};
use arrow_device_abi::{
    ArrayNode, ArrayStreamReader, OwnedArray, OwnedArrayStream, OwnedDeviceArray, OwnedSchema, SchemaNode,
};
use arrow_device_abi_support as _;
use arrow_schema::{DataType, Field, Schema};
use criterion::Criterion;
use figures::{criterion, median};

const COLUMNS: [usize; 4] = [1, 10, 100, 1000];
const BATCHES: i64 = 1000;
const MOVES: usize = 1000;

unsafe extern "C" {
    fn bench_stream(out: *mut ArrowArrayStream, left: *mut i64);
    fn bench_drain(stream: *mut ArrowArrayStream) -> i64;
    fn bench_device_array(out: *mut ArrowDeviceArray);
    fn bench_move(from: *mut ArrowDeviceArray, to: *mut ArrowDeviceArray) -> i32;
}

fn main() {
    if let Ok(side) = env::var(MOVE_SIDE) {
        return move_for_callgrind(&side);
    }
    let mut criterion = criterion();

    for columns in COLUMNS {
        export_array(&mut criterion, &format!("export_array_{columns}"), &flat(columns));
        export_schema(&mut criterion, &format!("export_schema_{columns}"), &flat_schema(columns));
    }
    export_array(&mut criterion, "export_array_nested", &nested());
    drain(&mut criterion);
    moves(&mut criterion);
    criterion.final_summary();

    for columns in COLUMNS {
        print_ratio(&format!("export_array_{columns}"), "ours", "arrow_rs", true);
    }
    print_ratio("export_array_nested", "ours", "arrow_rs", true);
    for columns in COLUMNS {
        print_ratio(&format!("export_schema_{columns}"), "ours", "arrow_rs", true);
    }
    print_ratio("drain", "ours", "arrow_rs", true);
    print_ratio("drain", "ours", "c", false);
    print_ratio("drain", "ours_by_iterator", "c", false);
    print_ratio("move", "ours", "c", false);
    print_ratio("move", "ours_through_owner", "c", false);
    print_instructions();
}

fn flat(columns: usize) -> StructArray {
    let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..64));
    let field = |number| Arc::new(Field::new(format!("column_{number}"), DataType::Int32, true));
    StructArray::new((0..columns).map(field).collect(), vec![column; columns], None)
}

fn flat_schema(columns: usize) -> Schema {
    Schema::new(flat(columns).fields().clone())
}

/// Ten columns of lists of structs of two int32 columns.
fn nested() -> StructArray {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(2)]); 32]);
    let (_, offsets, values, _) = lists.into_parts();
    let fields = ["x", "y"].map(|name| Arc::new(Field::new(name, DataType::Int32, true)));
    let items = StructArray::new(fields.to_vec().into(), vec![Arc::clone(&values), values], None);
    let item = Arc::new(Field::new("item", items.data_type().clone(), true));
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(items), None));
    let field = |number| Arc::new(Field::new(format!("column_{number}"), lists.data_type().clone(), true));
    StructArray::new((0..10).map(field).collect(), vec![Arc::clone(&lists); 10], None)
}

/// The nodes below `data`, as a producer that is not arrow-rs would have them: borrowed from memory that stays.
fn children(data: &ArrayData) -> &'static [ArrayNode<'static>] {
    data.child_data().iter().map(node).collect::<Vec<_>>().leak()
}

fn node(data: &ArrayData) -> ArrayNode<'static> {
    let validity = data.nulls().map_or(ptr::null(), |nulls| nulls.validity().as_ptr().cast());
    let buffers = data.buffers().iter().map(|buffer| buffer.as_ptr().cast());
    let buffers: Vec<*const c_void> = std::iter::once(validity).chain(buffers).collect();
    ArrayNode {
        length: data.len() as i64,
        buffers: buffers.leak(),
        children: children(data),
        ..Default::default()
    }
}

fn export_array(criterion: &mut Criterion, name: &str, array: &StructArray) {
    let data = array.to_data();
    let batch = node(&data);
    let keep = Arc::new(array.clone());
    let mut group = criterion.benchmark_group(name);
    group.bench_function("ours", |bencher| {
        bencher.iter(|| {
            let columns: Vec<ArrayNode<'_>> = black_box(&batch).children.to_vec();
            let batch = ArrayNode { children: &columns, ..batch };
            // SAFETY: the nodes are those of `array`, which `keep` keeps.
            let array: OwnedArray =
                unsafe { batch.export(Arc::clone(&keep)) }.expect("a tree that can be exported");
            drop(black_box(array));
        });
    });
    group.bench_function("arrow_rs", |bencher| {
        bencher.iter(|| drop(black_box(FFI_ArrowArray::new(black_box(&data)))));
    });
    group.finish();
}

fn export_schema(criterion: &mut Criterion, name: &str, schema: &Schema) {
    let fields = schema.fields().iter();
    let columns: Vec<SchemaNode<'_>> = fields
        .map(|field| SchemaNode { format: "i", name: Some(field.name()), ..Default::default() })
        .collect();
    let batch = SchemaNode { format: "+s", children: &columns, flags: 0, ..Default::default() };
    let mut group = criterion.benchmark_group(name);
    group.bench_function("ours", |bencher| {
        bencher.iter(|| {
            let schema = black_box(&batch).export();
            drop(black_box::<OwnedSchema>(schema.expect("a schema that can be exported")));
        });
    });
    group.bench_function("arrow_rs", |bencher| {
        bencher.iter(|| {
            let schema = FFI_ArrowSchema::try_from(black_box(schema)).expect("a schema that can be exported");
            drop(black_box(schema));
        });
    });
    group.finish();
}

/// A stream of `BATCHES` arrays, made in C. `left` has to live as long.
fn stream(left: &mut i64) -> ArrowArrayStream {
    *left = BATCHES;
    let mut stream = ArrowArrayStream::released();
    // SAFETY: both are valid for writes.
    unsafe { bench_stream(&raw mut stream, left) };
    stream
}

fn drain(criterion: &mut Criterion) {
    let mut left = 0;
    let mut group = criterion.benchmark_group("drain");
    group.bench_function("ours", |bencher| {
        bencher.iter(|| {
            let mut stream = stream(&mut left);
            // SAFETY: a live stream that nobody else uses.
            let stream = unsafe { OwnedArrayStream::take(&raw mut stream) }.expect("a live stream");
            let mut reader = ArrayStreamReader::new(stream);
            let mut array = OwnedArray::released();
            let mut rows = 0;
            while reader.read_into(&mut array).expect("no errors") {
                rows += array.as_raw().length;
            }
            assert_eq!(rows, BATCHES);
        });
    });
    group.bench_function("ours_by_iterator", |bencher| {
        bencher.iter(|| {
            let mut stream = stream(&mut left);
            // SAFETY: a live stream that nobody else uses.
            let stream = unsafe { OwnedArrayStream::take(&raw mut stream) }.expect("a live stream");
            let arrays = ArrayStreamReader::new(stream);
            let rows: i64 = arrays.map(|array| array.expect("no errors").as_raw().length).sum();
            assert_eq!(rows, BATCHES);
        });
    });
    group.bench_function("c", |bencher| {
        bencher.iter(|| {
            let mut stream = stream(&mut left);
            // SAFETY: a live stream that nobody else uses.
            let rows = unsafe { bench_drain(&raw mut stream) };
            assert_eq!(rows, BATCHES);
        });
    });
    group.bench_function("arrow_rs", |bencher| {
        bencher.iter(|| {
            let mut stream = stream(&mut left);
            // SAFETY: a live stream that nobody else uses; the structs are the same.
            let reader = unsafe {
                RecordBatchStreamReader::from_raw((&raw mut stream).cast::<FFI_ArrowArrayStream>())
            };
            let rows: usize =
                reader.expect("a live stream").map(|batch| batch.expect("no errors").num_rows()).sum();
            assert_eq!(rows as i64, BATCHES);
        });
    });
    group.finish();
}

/// One move, behind a call as C's is.
#[inline(never)]
unsafe extern "C" fn move_ours(from: *mut ArrowDeviceArray, to: *mut ArrowDeviceArray) -> i32 {
    // SAFETY: `from` is live or released, `to` valid for writes, and both are the caller's alone.
    unsafe { OwnedDeviceArray::move_between(from, to) }.is_err().into()
}

/// The same with an owner in between, as it is where the two ends are in different functions.
#[inline(never)]
unsafe extern "C" fn move_through_owner(from: *mut ArrowDeviceArray, to: *mut ArrowDeviceArray) -> i32 {
    // SAFETY: live or released, and the caller's alone.
    match unsafe { OwnedDeviceArray::take(from) } {
        Ok(array) => {
            // SAFETY: valid for writes.
            unsafe { array.export_to(to) };
            0
        }
        Err(_) => 1,
    }
}

type Move = unsafe extern "C" fn(*mut ArrowDeviceArray, *mut ArrowDeviceArray) -> i32;

/// Moves a live struct there and back.
fn move_often(move_one: Move, times: usize) {
    let (mut a, mut b) = (ArrowDeviceArray::released(), ArrowDeviceArray::released());
    let (mut from, mut to) = (&raw mut a, &raw mut b);
    // SAFETY: valid for writes; its release callback frees nothing, so that dropping nothing leaks nothing.
    unsafe { bench_device_array(from) };
    for _ in 0..times {
        // SAFETY: both are this function's alone, and `from` is the live one.
        let code = unsafe { black_box(move_one)(from, to) };
        assert_eq!(code, 0);
        std::mem::swap(&mut from, &mut to);
    }
}

fn moves(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("move");
    for (side, move_one) in SIDES {
        group.bench_function(side, |bencher| bencher.iter(|| move_often(move_one, MOVES)));
    }
    group.finish();
}

const SIDES: [(&str, Move); 3] =
    [("ours", move_ours), ("ours_through_owner", move_through_owner), ("c", bench_move)];

/// Prints the ratio of the medians that criterion has just written.
fn print_ratio(group: &str, side: &str, peer: &str, theirs_over_ours: bool) {
    if let (Some(ours), Some(theirs)) = (median(group, side), median(group, peer)) {
        let ratio = if theirs_over_ours { theirs / ours } else { ours / theirs };
        println!("{group}{}_vs_{peer} {ratio:.2}", side.trim_start_matches("ours"));
    }
}

const MOVE_SIDE: &str = "BENCH_MOVE_SIDE";
const MOVE_TIMES: &str = "BENCH_MOVE_TIMES";

/// What the bench does when it runs itself under callgrind.
fn move_for_callgrind(side: &str) {
    let times = env::var(MOVE_TIMES).ok().and_then(|times| times.parse().ok()).expect("set beside the side");
    let (_, move_one) = SIDES.into_iter().find(|(name, _)| *name == side).expect("one of them");
    move_often(move_one, times);
}

/// Prints the instructions of one move: those of many less those of none, over how many.
fn print_instructions() {
    for (side, _) in SIDES {
        match (instructions(side, 0), instructions(side, MOVES)) {
            (Some(none), Some(all)) => {
                println!("move_{side}_instructions {:.0}", (all - none) as f64 / MOVES as f64);
            }
            _ => println!("skipped: move_{side}_instructions, valgrind is not installed"),
        }
    }
}

fn instructions(side: &str, times: usize) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().ok()?)
        .env(MOVE_SIDE, side)
        .env(MOVE_TIMES, times.to_string())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
