//! How long checking a structure takes, against nanoarrow, and copying to the host, against `memcpy`, in one run.
//!
//! ```console
//! $ NANOARROW_C=/path/to/nanoarrow/src cargo bench --bench validate
//! ```
//!
//! The last lines are `name value`. `…_ns_per_node` is our time; `…_vs_nanoarrow` is nanoarrow's time over ours, so
//! more is better: with a view that it has made of the schema before, and with one that it makes each time. Ours reads
//! the schema each time. `…_vs_memcpy` is our time over that of copying the same bytes into a new allocation, so 1 is
//! even.

mod figures;

#[cfg(nanoarrow)]
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use arrow_device_abi::{
    ArrayNode, CopyOptions, HostMemory, Limits, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema,
    ReadyDeviceArray, SchemaNode,
};
use criterion::Criterion;
use figures::{criterion, median, print_ratio};

fn main() {
    let mut criterion = criterion();
    let trees = [("flat", flat(1000, 64)), ("nested", nested(100))];
    for (name, tree) in &trees {
        check(&mut criterion, &format!("validate_{name}"), tree);
    }
    let copies = [("one_large_column", flat(1, 1 << 23)), ("many_small_columns", flat(1000, 64))];
    for (name, tree) in copies {
        copy(&mut criterion, &format!("to_host_{name}"), tree);
    }
    criterion.final_summary();

    for (name, tree) in &trees {
        let group = format!("validate_{name}");
        if let Some(time) = median(&group, "ours") {
            println!("{group}_ns_per_node {:.1}", time / tree.nodes as f64);
        }
        if cfg!(nanoarrow) {
            print_ratio(&group, "ours", "nanoarrow", true);
            print_ratio(&group, "ours", "nanoarrow_with_schema", true);
        } else {
            println!("skipped: {group}_vs_nanoarrow, NANOARROW_C does not say where its C files are");
        }
    }
    print_ratio("to_host_one_large_column", "ours", "memcpy", false);
    print_ratio("to_host_many_small_columns", "ours", "memcpy", false);
}

struct Tree {
    schema: OwnedSchema,
    array: OwnedArray,
    nodes: usize,
    /// Bytes of all buffers.
    bytes: usize,
}

/// A struct of int64 columns without nulls.
fn flat(columns: usize, rows: usize) -> Tree {
    let values = vec![7_i64; rows];
    let fields = vec![SchemaNode { format: "l", name: Some("column"), ..SchemaNode::default() }; columns];
    let schema = SchemaNode { format: "+s", children: &fields, ..SchemaNode::default() };
    let buffers = [ptr::null(), values.as_ptr().cast()];
    let column = ArrayNode { length: rows as i64, buffers: &buffers, ..ArrayNode::default() };
    let children = vec![column; columns];
    let node = ArrayNode {
        length: rows as i64,
        buffers: &[ptr::null()],
        children: &children,
        ..ArrayNode::default()
    };
    let bytes = columns * rows * size_of::<i64>();
    exported(&schema, &node, values, columns + 1, bytes)
}

/// Columns of lists of structs of a number and a text.
fn nested(columns: usize) -> Tree {
    let offsets = vec![0_i32; 65];
    let numbers = vec![0_i64; 1];
    let pair = [
        SchemaNode { format: "l", name: Some("number"), ..SchemaNode::default() },
        SchemaNode { format: "u", name: Some("text"), ..SchemaNode::default() },
    ];
    let item = [SchemaNode { format: "+s", name: Some("item"), children: &pair, ..SchemaNode::default() }];
    let list = SchemaNode { format: "+l", name: Some("column"), children: &item, ..SchemaNode::default() };
    let fields = vec![list; columns];
    let schema = SchemaNode { format: "+s", children: &fields, ..SchemaNode::default() };

    let number = [ptr::null(), numbers.as_ptr().cast()];
    let text = [ptr::null(), offsets.as_ptr().cast(), numbers.as_ptr().cast()];
    let pair = [
        ArrayNode { length: 1, buffers: &number, ..ArrayNode::default() },
        ArrayNode { length: 1, buffers: &text, ..ArrayNode::default() },
    ];
    let none = [ptr::null()];
    let item = [ArrayNode { length: 1, buffers: &none, children: &pair, ..ArrayNode::default() }];
    let starts = [ptr::null(), offsets.as_ptr().cast()];
    let list = ArrayNode { length: 64, buffers: &starts, children: &item, ..ArrayNode::default() };
    let children = vec![list; columns];
    let node = ArrayNode { length: 64, buffers: &none, children: &children, ..ArrayNode::default() };
    exported(&schema, &node, (offsets, numbers), 4 * columns + 1, 0)
}

fn exported(
    schema: &SchemaNode<'_>,
    node: &ArrayNode<'_>,
    keep: impl Send + 'static,
    nodes: usize,
    bytes: usize,
) -> Tree {
    let schema = schema.export().expect("a schema that can be exported");
    // SAFETY: the nodes are of the schema's types; their buffers are in `keep`, as long as they need to be.
    let array = unsafe { node.export(keep) }.expect("an array that can be exported");
    Tree { schema, array, nodes, bytes }
}

#[cfg(nanoarrow)]
unsafe extern "C" {
    fn bench_view_new(schema: *const arrow_device_abi::raw::ArrowSchema) -> *mut c_void;
    fn bench_view_check(view: *mut c_void, array: *const arrow_device_abi::raw::ArrowArray) -> i32;
    fn bench_view_free(view: *mut c_void);
}

fn check(criterion: &mut Criterion, name: &str, tree: &Tree) {
    let schema = tree.schema.view().expect("a live schema");
    let mut group = criterion.benchmark_group(name);
    group.bench_function("ours", |bencher| {
        bencher.iter(|| black_box(&tree.array).validate(black_box(schema), &Limits::DEFAULT).expect("valid"));
    });
    #[cfg(nanoarrow)]
    {
        let (schema, array) = (tree.schema.as_raw(), tree.array.as_raw());
        // SAFETY: live structs, which are only read; each view is freed once.
        unsafe {
            let view = bench_view_new(schema);
            group.bench_function("nanoarrow", |bencher| {
                bencher.iter(|| assert_eq!(bench_view_check(view, black_box(array)), 0));
            });
            bench_view_free(view);
            group.bench_function("nanoarrow_with_schema", |bencher| {
                bencher.iter(|| {
                    let view = bench_view_new(black_box(schema));
                    assert_eq!(bench_view_check(view, black_box(array)), 0);
                    bench_view_free(view);
                });
            });
        }
    }
    group.finish();
}

fn copy(criterion: &mut Criterion, name: &str, tree: Tree) {
    let Tree { schema, array, bytes, nodes } = tree;
    let schema = schema.view().expect("a live schema");
    let array: ReadyDeviceArray = OwnedDeviceArray::from(array).synchronize(&NoWait).expect("on the host");
    // As many buffers, of as many bytes together.
    let buffers = vec![vec![7_u8; bytes / (nodes - 1)]; nodes - 1];
    let mut group = criterion.benchmark_group(name);
    group.bench_function("ours", |bencher| {
        bencher.iter(|| {
            // SAFETY: the schema is the array's own.
            let copy = unsafe { array.to_host(schema, &HostMemory, CopyOptions::new()) }.expect("a copy");
            drop(black_box::<OwnedArray>(copy));
        });
    });
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| {
            let mut copy = Vec::with_capacity(bytes);
            for buffer in &buffers {
                copy.extend_from_slice(black_box(buffer));
            }
            drop(black_box::<Vec<u8>>(copy));
        });
    });
    group.finish();
}
