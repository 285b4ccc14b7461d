//! One allocation a tree, one free, of the same layout; nothing is left of what fails.

mod common;
mod export;

use core::ffi::c_void;
use core::fmt::Write;
use core::ptr;

use arrow_device_abi::errno::ENOMEM;
use arrow_device_abi::format::Format;
use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceType};
use arrow_device_abi::{
    ArrayNode, Device, ExportError, ExportErrorKind, ExportEvent, OwnedArray, OwnedDeviceArray, SchemaNode,
    StreamFailure,
};

use common::Counter;
use export::allocator::{Counting, Counts, counting, failing_at, live};
use export::stream::{Consumer, Produced, schema};
use export::{Keep, layouts, with_array_chain, with_schema_chain};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ONE: Counts = Counts { allocated: 1, freed: 0, wrong: 0 };
const ONE_FREED: Counts = Counts { allocated: 0, freed: 1, wrong: 0 };
const NONE: Counts = Counts { allocated: 0, freed: 0, wrong: 0 };

const CUDA: Device = Device::new(ArrowDeviceType::CUDA, 0);
const EVENT: ExportEvent = ExportEvent::Handle(ptr::without_provenance_mut(0xDEAD_BEE8));

const INT32: ArrayNode<'_> = ArrayNode {
    length: 0,
    null_count: 0,
    offset: 0,
    buffers: &[ptr::null(); 2],
    children: &[],
    dictionary: None,
};

fn export(node: &ArrayNode<'_>) -> Result<OwnedArray, ExportError<()>> {
    // SAFETY: no node of these tests has elements, so they need no buffers.
    unsafe { node.export(()) }
}

fn export_on_device(node: &ArrayNode<'_>) -> Result<OwnedDeviceArray, ExportError<()>> {
    // SAFETY: as in `export`, and nobody waits for the event.
    unsafe { node.export_on(CUDA, EVENT, ()) }
}

fn columns(columns: &[ArrayNode<'static>], f: impl FnOnce(&ArrayNode<'_>)) {
    f(&ArrayNode { buffers: &[ptr::null()], children: columns, ..ArrayNode::default() });
}

/// One allocation while it is made, one free of the same layout while it is dropped.
fn assert_one<T, E: core::fmt::Debug>(make: impl FnOnce() -> Result<T, E>) {
    let (made, counts) = counting(make);
    let made = made.unwrap();
    assert_eq!((counts, live()), (ONE, 1));
    let ((), counts) = counting(|| drop(made));
    assert_eq!((counts, live()), (ONE_FREED, 0));
}

/// Arrays of 1, 10 and 1,000 columns, on the host and on a device.
#[test]
fn one_allocation_for_an_array() {
    assert_one(|| export(&INT32));
    for n in [0, 1, 10, 1_000] {
        columns(&vec![INT32; n], |node| {
            assert_one(|| export(node));
            assert_one(|| export_on_device(node));
        });
    }
}

/// Every layout.
#[test]
fn one_allocation_for_every_layout() {
    for tree in layouts() {
        let (placed, keep) = tree.place(&Counter::new());
        placed.with_node(|node| {
            // SAFETY: the tree has the buffers of its type, and they live to the end of the test.
            assert_one(|| unsafe { node.export(()) });
            let schema = tree.schema();
            let (fits, counts) = counting(|| node.fits(schema.view().unwrap()));
            assert_eq!((fits, counts), (Ok(()), NONE));
        });
        drop(keep);
    }
}

fn only_child<'a>(below: &'a ArrayNode<'a>) -> ArrayNode<'a> {
    ArrayNode { children: core::slice::from_ref(below), ..ArrayNode::default() }
}

fn only_field<'a>(below: &'a SchemaNode<'a>) -> SchemaNode<'a> {
    SchemaNode { format: "+s", children: core::slice::from_ref(below), ..SchemaNode::default() }
}

/// Nested up to 16 levels: the walk needs no memory of its own.
#[test]
fn one_allocation_for_nested_trees() {
    for levels in 1..=16 {
        with_array_chain(levels, only_child, |node| assert_one(|| export(node)));
        with_schema_chain(levels, only_field, |node| {
            assert_one(|| node.export());
            let schema = node.export().unwrap();
            assert_one(|| schema.try_clone());
        });
    }
}

/// Deeper ones: whatever the walk takes it gives back, and one allocation is left.
#[test]
fn deep_trees_leave_one_allocation() {
    for levels in [17, 18, 19, 33, 1_000] {
        with_array_chain(levels, only_child, |node| {
            let (array, counts) = counting(|| export(node));
            assert_eq!((counts.allocated, counts.wrong, live()), (counts.freed + 1, 0, 1));
            let ((), counts) = counting(|| drop(array));
            assert_eq!((counts, live()), (ONE_FREED, 0));
        });
        with_schema_chain(levels, only_field, |node| {
            let (schema, counts) = counting(|| node.export());
            assert_eq!((counts.allocated, counts.wrong, live()), (counts.freed + 1, 0, 1));
            let ((), counts) = counting(|| drop(schema));
            assert_eq!((counts, live()), (ONE_FREED, 0));
        });
    }
}

/// Schemas of 1, 10 and 1,000 columns with names and metadata, and their copies.
#[test]
fn one_allocation_for_a_schema() {
    let names: Vec<_> = (0..1_000).map(|index| format!("column {index}")).collect();
    let metadata: [(&[u8], &[u8]); 2] = [(b"key", b"value"), (b"", b"\0\xff")];
    for n in [0, 1, 10, 1_000] {
        let field = |name| SchemaNode {
            format: "tsu:UTC",
            name: Some(name),
            metadata: &metadata,
            ..SchemaNode::default()
        };
        let children: Vec<_> = names[..n].iter().map(|name| field(name)).collect();
        let node = SchemaNode { format: "+s", children: &children, ..SchemaNode::default() };
        assert_one(|| node.export());
        let schema = node.export().unwrap();
        assert_one(|| schema.try_clone());
    }
}

/// B5: moving nodes out allocates nothing, and the last release of a tree frees it, whichever it is.
#[test]
fn the_last_release_frees() {
    columns(&[INT32, ArrayNode { dictionary: Some(&INT32), ..INT32 }, INT32], |node| {
        let (array, _) = counting(|| export(node));
        let mut array = array.unwrap();
        let (moved, counts) = counting(|| {
            let mut encoded = array.take_child(1).unwrap();
            let words = encoded.take_dictionary().unwrap();
            (array.take_child(0).unwrap(), encoded, words)
        });
        assert_eq!(counts, NONE);
        let (first, encoded, words) = moved;
        assert_eq!(counting(|| drop(encoded)).1, NONE);
        assert_eq!(counting(|| drop(array)).1, NONE);
        assert_eq!(counting(|| drop(first)).1, NONE);
        assert_eq!(live(), 1);
        assert_eq!(counting(|| drop(words)).1, ONE_FREED);
        assert_eq!(live(), 0);
    });
}

/// C9: the block is freed too if the keep-alive panics.
#[cfg(feature = "std")]
#[test]
fn a_panic_of_the_keep_alive_leaks_nothing() {
    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            // Without the hook, which may allocate for good.
            std::panic::resume_unwind(Box::new(()));
        }
    }

    // SAFETY: the null layout has no buffers.
    let (array, counts) = counting(|| unsafe { ArrayNode::default().export(Panics) });
    assert_eq!(counts, ONE);
    let ((), counts) = counting(|| drop(array));
    assert_eq!((counts.allocated + 1, counts.wrong, live()), (counts.freed, 0, 0));
}

/// C28: what is refused allocates nothing.
#[test]
fn refusals_leave_nothing() {
    let wrong = |kind: &dyn Fn(ExportErrorKind) -> bool, make: &dyn Fn() -> Option<ExportErrorKind>| {
        let (error, counts) = counting(make);
        assert!(error.is_some_and(kind), "{error:?}");
        assert_eq!((counts, live()), (NONE, 0));
    };
    let length = ArrayNode { length: -1, ..INT32 };
    let nulls = ArrayNode { null_count: 1, ..INT32 };
    for node in [length, nulls] {
        columns(&[INT32, node], |node| {
            let is =
                |kind| matches!(kind, ExportErrorKind::Length { .. } | ExportErrorKind::NullCount { .. });
            wrong(&is, &|| export(node).err().map(|error| error.kind));
            wrong(&is, &|| export_on_device(node).err().map(|error| error.kind));
        });
    }
    // SAFETY: nothing is made.
    let on_cpu = || unsafe { INT32.export_on(Device::CPU, EVENT, ()) };
    wrong(&|kind| matches!(kind, ExportErrorKind::Event(_)), &|| on_cpu().err().map(|error| error.kind));
    for node in [
        SchemaNode { format: "d:0,0", ..SchemaNode::default() },
        SchemaNode { format: "a\0b", ..SchemaNode::default() },
        SchemaNode { name: Some("\0"), ..SchemaNode::default() },
        SchemaNode { format: "+l", ..SchemaNode::default() },
    ] {
        let children = [SchemaNode::default(), node];
        let root = SchemaNode { format: "+s", children: &children, ..SchemaNode::default() };
        wrong(&|_| true, &|| root.export().err());
    }
    let mut moved = schema_of(2).export().unwrap();
    drop(moved.take_child(1).unwrap());
    wrong(&|kind| matches!(kind, ExportErrorKind::View(_)), &|| moved.try_clone().err());
}

fn schema_of(columns: usize) -> SchemaNode<'static> {
    const FIELDS: &[SchemaNode<'_>] = &[SchemaNode {
        format: "i",
        name: Some("x"),
        metadata: &[],
        flags: 2,
        children: &[],
        dictionary: None,
    }; 3];
    SchemaNode { format: "+s", children: &FIELDS[..columns], ..SchemaNode::default() }
}

/// Makes each allocation fail in turn, until all is well: an error each time, with nothing left.
fn assert_survives_lack_of_memory<T>(make: impl Fn() -> Result<T, ExportErrorKind>) -> usize {
    for which in 1.. {
        let (made, counts) = failing_at(which, &make);
        match made {
            Err(kind) => assert_eq!(kind, ExportErrorKind::OutOfMemory),
            Ok(made) => {
                counting(|| drop(made));
                assert_eq!(live(), 0);
                return which - 1;
            }
        }
        assert_eq!((counts.allocated, counts.wrong, live()), (counts.freed, 0, 0));
    }
    unreachable!()
}

/// C28: without memory there is an error that gives the keep-alive back, for wide trees and for deep ones.
#[test]
fn lack_of_memory_is_an_error() {
    columns(&[INT32; 10], |node| {
        let dropped = Counter::new();
        let make = || {
            let before = dropped.get();
            // SAFETY: the nodes have no elements.
            let result = unsafe { node.export(Keep::counted(&dropped)) };
            assert_eq!(dropped.get(), before);
            result.map_err(|error| error.kind)
        };
        assert_eq!(assert_survives_lack_of_memory(make), 1);
        assert_eq!(dropped.get(), 2);
        let make = || export_on_device(node).map_err(|error| error.kind);
        assert_eq!(assert_survives_lack_of_memory(make), 1);
    });
    with_array_chain(300, only_child, |node| {
        assert!(assert_survives_lack_of_memory(|| export(node).map_err(|error| error.kind)) > 2);
    });
    assert_eq!(assert_survives_lack_of_memory(|| schema_of(3).export()), 1);
    with_schema_chain(300, only_field, |node| {
        assert!(assert_survives_lack_of_memory(|| node.export()) > 2);
        let schema = node.export().unwrap();
        assert!(assert_survives_lack_of_memory(|| schema.try_clone()) > 2);
        with_array_chain(300, with_bitmap, |node| {
            assert!(assert_survives_lack_of_memory(|| node.fits(schema.view().unwrap())) > 0);
        });
    });
}

fn with_bitmap<'a>(below: &'a ArrayNode<'a>) -> ArrayNode<'a> {
    ArrayNode { buffers: &[ptr::null::<c_void>()], ..only_child(below) }
}

/// A stream is one allocation, each schema of it is one, and handing out its arrays takes none.
#[test]
fn streams() {
    let dropped = Counter::new();
    let array = |length| Ok::<_, StreamFailure>(ArrowArrayStream::array(length, &dropped));
    // Nothing of the iterator's own is allocated or freed on the way.
    let items = [array(1), array(2)];
    let schema = schema();
    let (stream, counts) = counting(|| ArrowArrayStream::from_items(schema, items));
    assert_eq!(counts, ONE);
    let mut consumer = Consumer::new(stream);
    let (arrays, counts) = counting(|| [(); 4].map(|()| consumer.next().unwrap()));
    assert_eq!(counts, NONE);
    assert_eq!((arrays.iter().flatten().count(), dropped.get()), (2, 0));
    let (schema, counts) = counting(|| consumer.schema().unwrap());
    assert_eq!(counts, ONE);
    assert_eq!(counting(|| drop(schema)).1, ONE_FREED);
    drop(arrays);
    assert_eq!(dropped.get(), 2);
    // Of these the stream's own block is the one that was counted; its schema and the consumer's box came before.
    let ((), counts) = counting(|| consumer.release());
    assert_eq!((counts.allocated, counts.freed, live()), (0, 3, 0));
}

/// B10: a schema for which there is no memory is `ENOMEM`, this time.
#[test]
fn a_stream_without_memory() {
    let items: [Result<OwnedArray, StreamFailure>; 0] = [];
    let mut consumer = Consumer::new(ArrowArrayStream::from_items(schema(), items));
    let (result, _) = failing_at(1, || consumer.schema().map(drop));
    assert_eq!(result, Err(ENOMEM));
    assert_eq!(consumer.last_error().as_deref(), Some("out of memory"));
    drop(consumer.schema().unwrap());
    assert_eq!(consumer.last_error(), None);
    assert_eq!(consumer.next_length(), Ok(-1));
    consumer.release();
}

/// Reading a format allocates nothing, and neither does writing one, nor what is known of it.
#[test]
fn formats() {
    let mut text = String::with_capacity(1_000);
    for format in
        ["i", "d:38,10", "tsn:Europe/Paris", "+ud:1,2,3", "+w:7", "w", "", "+ud:1,1", "d:0,1", "quaternion"]
    {
        let ((), counts) = counting(|| match Format::parse(format) {
            Ok(parsed) => {
                assert!(parsed.buffers().kinds().len() < 4 && !parsed.children().allows(1_000));
                write!(text, "{parsed}").unwrap();
            }
            Err(error) => write!(text, "{error}").unwrap(),
        });
        assert_eq!(counts, NONE);
    }
}
