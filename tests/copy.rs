//! Sizes of buffers, and copies to the host: out of host memory, and out of a device whose memory the host cannot read.

mod arrays;
mod common;
mod export;

use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{
    ArrayView, CopyError, CopyOptions, Device, DeviceMemory, EventWaiter, ExportEvent, Fault, HostMemory,
    Limits, NoWait, NotForTheHost, OwnedArray, OwnedSchema, Readiness, ReadyDeviceArray, SchemaView,
    SyncEvent, Transfer,
};

use arrays::changes::{Changed, changed, typed};
use arrays::contents::{bits, integers};
use arrays::logical::elements;
use arrays::{Rng, array_of};
use common::Counter;
use export::{Bytes, Tree, dictionary, layouts, leaf, structure};

const LIMITS: Limits = Limits::DEFAULT;

/// How far a device's address is from where its memory really is. Nobody reads anything there.
const FAR: usize = if cfg!(target_pointer_width = "64") { 0x5A5A << 48 } else { 0x4000_0000 };

const CUDA: Device = Device::new(ArrowDeviceType::CUDA, 0);

fn far(pointer: *const c_void) -> *const c_void {
    if pointer.is_null() { pointer } else { pointer.wrapping_byte_add(FAR) }
}

/// A device with a queue. What it copies, and in how many calls, is noted; one call can be made to fail.
#[derive(Default)]
struct Far {
    calls: RefCell<Vec<Vec<usize>>>,
    fails: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
struct Failed;

impl core::fmt::Display for Failed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the device is gone")
    }
}

// SAFETY: all copies are done when it returns. There is no queue that anything would wait for in.
unsafe impl DeviceMemory for Far {
    type Error = Failed;

    fn accept(&self, device: Device, _: Readiness, _: Option<SyncEvent<'_>>) -> Result<(), Failed> {
        if device == CUDA { Ok(()) } else { Err(Failed) }
    }

    unsafe fn copy_to_host(
        &self,
        transfers: &[Transfer],
        finished: &mut dyn FnMut(usize),
    ) -> Result<(), Failed> {
        let call = self.calls.borrow().len();
        self.calls.borrow_mut().push(transfers.iter().map(|transfer| transfer.bytes).collect());
        for (index, Transfer { from, to, bytes, .. }) in transfers.iter().copied().enumerate() {
            if self.fails == Some(call) && index == transfers.len() / 2 {
                return Err(Failed);
            }
            assert!(bytes > 0);
            let from: *const u8 = from.wrapping_byte_sub(FAR).cast();
            // SAFETY: as the caller promises, but for the distance.
            unsafe { from.copy_to_nonoverlapping(to.cast(), bytes) };
            finished(bytes);
        }
        Ok(())
    }
}

fn on_host(array: OwnedArray) -> ReadyDeviceArray {
    arrow_device_abi::OwnedDeviceArray::from(array).synchronize(&NoWait).unwrap()
}

/// The tree with its buffers on the device.
fn on_device(tree: &Tree, dropped: &Counter) -> ReadyDeviceArray {
    let (placed, keep) = tree.place(dropped);
    let placed = placed.map(&mut |buffer| far(*buffer));
    let event = ExportEvent::Synchronized;
    // SAFETY: the buffers are on the device, and live as long as they are kept.
    let array = placed.with_node(|node| unsafe { node.export_on(CUDA, event, keep) }).unwrap();
    array.synchronize(&NoWait).unwrap()
}

/// That all buffers of a copy begin at multiples of 64.
fn assert_aligned(array: ArrayView<'_>) {
    for buffer in array.buffers() {
        assert_eq!(buffer.addr() % 64, 0);
    }
    array.children().for_each(|child| assert_aligned(child.unwrap()));
    array.dictionary().unwrap().into_iter().for_each(assert_aligned);
}

/// A copy is valid to the last byte, and means what the original does.
fn assert_same(schema: SchemaView<'_>, copy: &OwnedArray, tree: &Tree, original: &[String]) {
    // SAFETY: the schema is the array's own.
    assert_eq!(unsafe { copy.validate_contents(schema, &LIMITS) }, Ok(()), "{tree:?}");
    let copy = copy.view().unwrap();
    assert_eq!(elements(schema, copy), original, "{tree:?}");
    assert_aligned(copy);
}

fn meaning(schema: &OwnedSchema, tree: &Tree) -> Vec<String> {
    let array = tree.export(&Counter::new());
    elements(schema.view().unwrap(), array.view().unwrap())
}

const TIMES: u64 = if cfg!(miri) { 20 } else { 2000 };

/// D2, D14: every type, from the host and from a device, with offsets kept and trimmed.
#[test]
fn copies_mean_the_same() {
    for seed in 0..TIMES {
        let Changed { tree, schema, array } = changed(&mut Rng::new(seed), None).unwrap();
        let original = meaning(&schema, &tree);
        let schema = schema.view().unwrap();
        let (host, dropped) = (on_host(array), Counter::new());
        let device = on_device(&tree, &dropped);
        let copies = [
            // SAFETY: the schema is the array's own.
            unsafe { host.to_host(schema, &HostMemory, CopyOptions::new()) }.unwrap(),
            // SAFETY: the schema is the array's own.
            unsafe { host.to_host(schema, &HostMemory, CopyOptions::new().trimmed()) }.unwrap(),
            // SAFETY: the schema is the array's own.
            unsafe { device.to_host(schema, &Far::default(), CopyOptions::new()) }.unwrap(),
            // SAFETY: the schema is the array's own.
            unsafe { device.to_host(schema, &Far::default(), CopyOptions::new().trimmed()) }.unwrap(),
        ];
        drop((host, device));
        assert_eq!(dropped.get(), 1, "a copy owes nothing to its original");
        for copy in &copies {
            assert_same(schema, copy, &tree, &original);
        }
        for trimmed in [&copies[1], &copies[3]] {
            assert!(tree.format == "+r" || trimmed.as_raw().offset == 0);
        }
    }
}

/// B7, C7: all layouts without elements: offsets are there all the same, and no pointer but a bitmap's is null.
#[test]
fn copies_of_nothing() {
    for tree in layouts() {
        for buffer in [None, Some(Vec::new())] {
            let empty = export::without_contents(&tree, &buffer);
            let (schema, array) = (typed(&empty), on_host(empty.export(&Counter::new())));
            let schema = schema.view().unwrap();
            // SAFETY: the schema is the array's own.
            let copy = unsafe { array.to_host(schema, &HostMemory, CopyOptions::new()) }.unwrap();
            assert_same(schema, &copy, &empty, &[]);
            let view = copy.view().unwrap();
            assert!(view.buffers().iter().skip(1).all(|buffer| !buffer.is_null()));
            // SAFETY: the schema is the array's own.
            let sizes = unsafe { array.buffer_sizes(schema, &HostMemory, &LIMITS) }.unwrap();
            assert_eq!(sizes.total(), 0);
            if matches!(empty.format.as_str(), "+l" | "u") {
                // SAFETY: the copy has one offset.
                assert_eq!(unsafe { view.buffer_as::<i32>(1, 1) }, Ok(&[0][..]));
            }
        }
    }
}

/// D1: the offsets of all nodes are read in one call, and all buffers are copied in another.
#[test]
fn reads_and_copies_are_batched() {
    let words = |format: &str| array_of(&mut Rng::new(3), format, 5);
    let words = ["u", "Z", "vu", "z"].map(|format| Tree { null_count: -1, ..words(format) });
    let tree = structure(5, words);
    let (schema, array) = (tree.schema(), on_device(&tree, &Counter::new()));
    let memory = Far::default();
    // SAFETY: the schema is the array's own.
    unsafe { array.to_host(schema.view().unwrap(), &memory, CopyOptions::new()) }.unwrap();
    let calls = memory.calls.into_inner();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let numbers: &[usize] = &calls[0];
    assert!(numbers.iter().all(|bytes| matches!(bytes, 4 | 8)), "{numbers:?}");

    // Trimmed, there is one more for each level of lists: what is below is not known before.
    let lists = |child| Tree { children: vec![child], ..leaf("+l", 1, [None, integers("i", [0, 1])]) };
    let tree = lists(lists(lists(leaf("u", 1, [None, integers("i", [0, 1]), Some(b"x".to_vec())]))));
    let (schema, array) = (tree.schema(), on_device(&tree, &Counter::new()));
    for (options, reads) in [(CopyOptions::new(), 1), (CopyOptions::new().trimmed(), 4)] {
        let memory = Far::default();
        // SAFETY: the schema is the array's own.
        unsafe { array.to_host(schema.view().unwrap(), &memory, options) }.unwrap();
        assert_eq!(memory.calls.into_inner().len(), reads + 1);
    }
    // Nothing to read, nothing to ask for.
    let (tree, memory) = (leaf("i", 1, [None, integers("i", [7])]), Far::default());
    // SAFETY: the schema is the array's own.
    unsafe {
        on_device(&tree, &Counter::new()).to_host(tree.schema().view().unwrap(), &memory, CopyOptions::new())
    }
    .unwrap();
    assert_eq!(memory.calls.into_inner(), [[4]]);
}

/// B7: bytes of every buffer, by format, length and offset, nodes breadth first.
#[test]
fn sizes() {
    let words = Tree {
        offset: 1,
        null_count: -1,
        ..leaf(
            "u",
            9,
            [bits(&[true; 10]), integers("i", [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 12]), Some(vec![b'x'; 20])],
        )
    };
    let encoded = Tree { length: 10, ..dictionary(words.clone()) };
    let encoded = Tree { buffers: vec![None, integers("i", [0; 10])], ..encoded };
    let flags = leaf("b", 10, [None, Some(vec![0; 2])]);
    let tree = Tree { offset: 2, ..structure(8, [encoded, flags]) };
    let array = on_device(&tree, &Counter::new());
    let schema = tree.schema();
    // SAFETY: the schema is the array's own.
    let sizes = unsafe { array.buffer_sizes(schema.view().unwrap(), &Far::default(), &LIMITS) }.unwrap();
    let nodes: Vec<_> = sizes.nodes().collect();
    assert_eq!(nodes, [&[0][..], &[0, 40], &[0, 2], &[2, 44, 12]]);
    assert_eq!(sizes.total(), 100);

    let views = array_of(&mut Rng::new(1), "vz", 6);
    let array = on_host(views.export(&Counter::new()));
    // SAFETY: the schema is the array's own.
    let sizes = unsafe { array.buffer_sizes(views.schema().view().unwrap(), &HostMemory, &LIMITS) }.unwrap();
    let placed: Vec<_> = views.buffers.iter().map(|bytes| bytes.as_ref().map_or(0, Vec::len)).collect();
    assert_eq!(sizes.nodes().next().unwrap(), placed);
}

fn exact(copy: &OwnedArray, buffer: usize, bytes: &[u8]) {
    let view = copy.view().unwrap();
    let padded = bytes.len().next_multiple_of(64);
    // SAFETY: buffers of a copy are filled up to 64 bytes.
    let found = unsafe { view.buffer_as::<u8>(buffer, padded) }.unwrap();
    assert_eq!(&found[..bytes.len()], bytes);
    assert!(found[bytes.len()..].iter().all(|byte| *byte == 0), "filled up with zeros");
}

/// What is kept is what was there, to the byte; what is trimmed begins with the first element: bits are shifted, offsets
/// begin with 0, and only bytes that are reached are copied.
#[test]
fn kept_and_trimmed() {
    let validity: Vec<bool> = (0..20).map(|bit| bit % 3 != 0).collect();
    let tree = Tree {
        offset: 5,
        null_count: 4,
        ..leaf("b", 11, [bits(&validity), Some(vec![0b1110_0110, 0b0101_1010, 0xFF])])
    };
    let (schema, array) = (tree.schema(), on_host(tree.export(&Counter::new())));
    let schema = schema.view().unwrap();
    // SAFETY: the schema is the array's own.
    let kept = unsafe { array.to_host(schema, &HostMemory, CopyOptions::new()) }.unwrap();
    let raw = kept.as_raw();
    assert_eq!((raw.length, raw.offset, raw.null_count), (11, 5, 4));
    exact(&kept, 1, &[0b1110_0110, 0b0101_1010]);
    // SAFETY: the schema is the array's own.
    let trimmed = unsafe { array.to_host(schema, &HostMemory, CopyOptions::new().trimmed()) }.unwrap();
    let raw = trimmed.as_raw();
    assert_eq!((raw.length, raw.offset, raw.null_count), (11, 0, 4));
    exact(&trimmed, 1, &[0b1101_0111, 0b010]);
    exact(&trimmed, 0, &bits(&validity[5..16]).unwrap());

    let texts = Tree {
        offset: 1,
        ..leaf("u", 2, [None, integers("i", [0, 3, 4, 6, 9]), Some(b"abcdefghi".to_vec())])
    };
    let list = Tree { offset: 1, ..leaf("+L", 1, [None, integers("l", [0, 1, 2])]) };
    let list = Tree { children: vec![texts], ..list };
    let (schema, array) = (list.schema(), on_host(list.export(&Counter::new())));
    let schema = schema.view().unwrap();
    let mut copied = 0;
    let mut note = |done, _| copied = done;
    // SAFETY: the schema is the array's own.
    let trimmed =
        unsafe { array.to_host(schema, &HostMemory, CopyOptions::new().trimmed().on_progress(&mut note)) };
    let mut trimmed = trimmed.unwrap();
    assert_eq!(elements(schema, trimmed.view().unwrap()), ["[[101, 102]]"]);
    exact(&trimmed, 1, &integers("l", [0, 1]).unwrap());
    let texts = trimmed.take_child(0).unwrap();
    assert_eq!((texts.as_raw().length, texts.as_raw().offset), (1, 0));
    exact(&texts, 1, &integers("i", [0, 2]).unwrap());
    exact(&texts, 2, b"ef");
    assert_eq!(copied, 16 + 8 + 2);

    // Nulls of what was cut are counted anew.
    let ints =
        Tree { null_count: 2, ..leaf("i", 4, [bits(&[false, true, false, true]), integers("i", 0..4)]) };
    let nulls = Tree { null_count: 4, ..leaf("n", 4, []) };
    let tree = Tree { offset: 2, ..structure(2, [ints, nulls]) };
    let (schema, array) = (tree.schema(), on_host(tree.export(&Counter::new())));
    // SAFETY: the schema is the array's own.
    let trimmed =
        unsafe { array.to_host(schema.view().unwrap(), &HostMemory, CopyOptions::new().trimmed()) }.unwrap();
    let view = trimmed.view().unwrap();
    assert_eq!([0, 1].map(|child| view.child(child).unwrap().as_raw().null_count), [1, 2]);
}

/// D5, C19: memory takes only what it may: the host what it reaches and has waited for.
#[test]
fn who_may_copy() {
    struct Queue;

    // SAFETY: nothing is queued here, so nothing comes after the wait.
    unsafe impl EventWaiter for Queue {
        type Error = core::convert::Infallible;

        fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, Self::Error> {
            Ok(Readiness::Queued)
        }
    }

    let tree = leaf("i", 2, [None, integers("i", [3, 4])]);
    let schema = tree.schema();
    let schema = schema.view().unwrap();
    let on = |device_type, event| {
        let (placed, keep) = tree.place(&Counter::new());
        let device = Device::new(device_type, 0);
        // SAFETY: host memory; the event is a number that nobody reads as anything else.
        placed.with_node(|node| unsafe { node.export_on(device, event, keep) }).unwrap()
    };
    for shared in [ArrowDeviceType::CUDA_HOST, ArrowDeviceType::CUDA_MANAGED, ArrowDeviceType::ROCM_HOST] {
        let ready = on(shared, ExportEvent::Synchronized).synchronize(&NoWait).unwrap();
        // SAFETY: the schema is the array's own.
        let copy = unsafe { ready.to_host(schema, &HostMemory, CopyOptions::new()) }.unwrap();
        assert_eq!(elements(schema, copy.view().unwrap()).len(), 2);

        let queued = on(shared, ExportEvent::Handle(common::nowhere())).synchronize(&Queue).unwrap();
        let device = Device::new(shared, 0);
        // SAFETY: the schema is the array's own.
        let error = unsafe { queued.to_host(schema, &HostMemory, CopyOptions::new()) }.unwrap_err();
        let CopyError::Memory(NotForTheHost { readiness: Readiness::Queued, .. }) = error else {
            panic!("{error}")
        };
        let text = format!(
            "reading the device's memory failed: the array on {device} was waited for in a queue, not by the host"
        );
        assert_eq!(error.to_string(), text);
        // SAFETY: the schema is the array's own.
        assert!(unsafe { queued.buffer_sizes(schema, &HostMemory, &LIMITS) }.is_err());
    }
    let ready = on(ArrowDeviceType::CUDA, ExportEvent::Synchronized).synchronize(&NoWait).unwrap();
    // SAFETY: the schema is the array's own.
    let error = unsafe { ready.to_host(schema, &HostMemory, CopyOptions::new()) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "reading the device's memory failed: the host cannot read memory of CUDA:0"
    );
}

/// C28: whatever fails, and wherever, nothing is left behind, and the array is as it was.
#[test]
fn failures() {
    let tree = layouts().pop().unwrap();
    let (schema, dropped) = (typed(&tree), Counter::new());
    let schema = schema.view().unwrap();
    let array = on_device(&tree, &dropped);
    for fails in [Some(0), Some(1)] {
        // SAFETY: the schema is the array's own.
        let error = unsafe { array.to_host(schema, &Far { fails, ..Far::default() }, CopyOptions::new()) }
            .unwrap_err();
        assert_eq!(error, CopyError::Memory(Failed));
    }
    let narrow = CopyOptions::new().limits(LIMITS.with_nodes(2));
    // SAFETY: the schema is the array's own.
    let error = unsafe { array.to_host(schema, &Far::default(), narrow) }.unwrap_err();
    assert!(
        matches!(&error, CopyError::Invalid(invalid) if invalid.fault() == &Fault::TooManyNodes { limit: 2 })
    );
    // SAFETY: the schema is the array's own.
    assert!(unsafe { array.to_host(schema, &Far::default(), CopyOptions::new()) }.is_ok());

    // A panic of the one who is told.
    let mut panics = |_, _| panic!("enough");
    let options = CopyOptions::new().on_progress(&mut panics);
    // SAFETY: the schema is the array's own.
    let caught =
        catch_unwind(AssertUnwindSafe(|| unsafe { array.to_host(schema, &Far::default(), options) }));
    assert!(caught.is_err());
    drop(array);
    assert_eq!(dropped.get(), 1);

    // Offsets that are none, and data that is not there, are errors with the path to the node.
    let fault = |column: Tree, trimmed| {
        let tree = structure(column.length, [column]);
        let (schema, array) = (tree.schema(), on_device(&tree, &Counter::new()));
        let options = if trimmed { CopyOptions::new().trimmed() } else { CopyOptions::new() };
        // SAFETY: the schema is the array's own.
        unsafe { array.to_host(schema.view().unwrap(), &Far::default(), options) }.unwrap_err().to_string()
    };
    let text = |offsets: &[i128], data: Bytes| {
        leaf("U", offsets.len() as i64 - 1, [None, integers("l", offsets.iter().copied()), data])
    };
    let most = isize::MAX;
    let negative = text(&[0, 2, -3], Some(vec![b'x'; 4]));
    assert_eq!(fault(negative, false), format!("root[0]: offset of element 2 is -3, wanted 0 to {most}"));
    let back = text(&[3, 2], Some(vec![b'x'; 4]));
    assert_eq!(fault(back, false), format!("root[0]: offset of element 1 is 2, wanted 3 to {most}"));
    assert_eq!(fault(text(&[0, 2], None), true), "root[0]: buffer 2 is null, wanted 2 bytes");
    let list = leaf("+l", 1, [None, integers("i", [0, 5])]);
    let list = Tree { children: vec![leaf("i", 4, [None, integers("i", 0..4)])], ..list };
    assert_eq!(fault(list, true), "root[0]: offset of element 1 is 5, wanted 0 to 4");
    // What is cut off may still say how much there is: no offset is believed that is more (found by a fuzzer).
    let list = leaf("+l", 1, [None, integers("i", [0, 1])]);
    let list = Tree { children: vec![text(&[0, 9, 4], Some(vec![b'x'; 4]))], ..list };
    assert_eq!(fault(list, true), "root[0][0]: offset of element 1 is 9, wanted 0 to 4");
    let views = leaf("vz", 1, [None, Some(vec![0; 16]), Some(Vec::new()), integers("l", [-1])]);
    assert_eq!(
        fault(views, false),
        format!("root[0]: size of the data buffer of element 0 is -1, wanted 0 to {most}")
    );
}

/// Progress grows to all bytes, and is told at least once.
#[test]
fn progress() {
    let tree =
        structure(3, [leaf("l", 3, [None, integers("l", 0..3)]), leaf("i", 3, [None, integers("i", 0..3)])]);
    let (schema, array) = (tree.schema(), on_device(&tree, &Counter::new()));
    let told = RefCell::new(Vec::new());
    let mut tell = |done, total| told.borrow_mut().push((done, total));
    let options = CopyOptions::new().on_progress(&mut tell);
    assert_eq!(format!("{options:?}").matches("progress: true").count(), 1);
    // SAFETY: the schema is the array's own.
    unsafe { array.to_host(schema.view().unwrap(), &Far::default(), options) }.unwrap();
    assert_eq!(told.take(), [(24, 36), (36, 36)]);

    /// Tells nothing, or far too much.
    struct Odd(&'static [usize]);

    // SAFETY: copies of a whole nothing; only the host's own arrays are taken.
    unsafe impl DeviceMemory for Odd {
        type Error = NotForTheHost;

        fn accept(
            &self,
            device: Device,
            readiness: Readiness,
            event: Option<SyncEvent<'_>>,
        ) -> Result<(), NotForTheHost> {
            HostMemory.accept(device, readiness, event)
        }

        unsafe fn copy_to_host(
            &self,
            transfers: &[Transfer],
            finished: &mut dyn FnMut(usize),
        ) -> Result<(), NotForTheHost> {
            self.0.iter().for_each(|bytes| finished(*bytes));
            // SAFETY: as the caller promises.
            unsafe { HostMemory.copy_to_host(transfers, &mut |_| {}) }
        }
    }

    let array = on_host(tree.export(&Counter::new()));
    for (odd, expected) in [(&[][..], &[(36, 36)][..]), (&[30, usize::MAX], &[(30, 36), (36, 36)])] {
        let mut tell = |done, total| told.borrow_mut().push((done, total));
        let options = CopyOptions::new().on_progress(&mut tell);
        // SAFETY: the schema is the array's own.
        unsafe { array.to_host(schema.view().unwrap(), &Odd(odd), options) }.unwrap();
        assert_eq!(told.take(), expected);
    }
    let (empty, calls) = (structure(0, []), Cell::new(0));
    let mut tell = |done, total| calls.set(calls.get() + 1 + done + total);
    let array = on_host(empty.export(&Counter::new()));
    // SAFETY: the schema is the array's own.
    unsafe {
        array.to_host(empty.schema().view().unwrap(), &HostMemory, CopyOptions::new().on_progress(&mut tell))
    }
    .unwrap();
    assert_eq!(calls.get(), 1);
}

/// B5: parts of a copy can be moved out and keep what they need.
#[test]
fn a_copy_is_taken_apart() {
    let tree = structure(4, [dictionary(leaf("i", 2, [None, integers("i", [8, 9])]))]);
    let (schema, array) = (tree.schema(), on_host(tree.export(&Counter::new())));
    // SAFETY: the schema is the array's own.
    let mut copy =
        unsafe { array.to_host(schema.view().unwrap(), &&HostMemory, CopyOptions::new()) }.unwrap();
    drop(array);
    let mut child = copy.take_child(0).unwrap();
    drop(copy);
    let values = child.take_dictionary().unwrap().unwrap();
    drop(child);
    exact(&values, 1, &integers("i", [8, 9]).unwrap());
}
