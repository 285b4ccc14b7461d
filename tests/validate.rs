//! Checking structs against their schema: what is found, where, and in which words.

mod common;
mod export;

use core::convert::Infallible;
use core::mem::ManuallyDrop;
use core::ptr;

use arrow_device_abi::raw::{ArrowArray, ArrowDeviceType, ArrowSchema};
use arrow_device_abi::{
    ArrayNode, Device, EventWaiter, Fault, Limits, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema,
    Readiness, SchemaNode, SchemaView, SyncEvent, ViewError,
};

use common::{Bare, Counter, Event, Stub, array, nowhere, on_device, own, schema};
use export::{Tree, leaf, structure, with_array_chain, with_schema_chain};

const LIMITS: Limits = Limits::DEFAULT;

/// D15: the path to a node has the names and indices of all on the way.
#[test]
fn paths() {
    let words = SchemaNode { format: "u", ..SchemaNode::default() };
    let tag = SchemaNode {
        format: "c",
        name: Some("tag \"ø\n"),
        dictionary: Some(&words),
        ..SchemaNode::default()
    };
    let item = SchemaNode { format: "+s", children: &[SchemaNode::default(), tag], ..SchemaNode::default() };
    let items = SchemaNode { format: "+l", name: Some("items"), children: &[item], ..SchemaNode::default() };
    let fields = [SchemaNode::default(), items];
    let root = SchemaNode { format: "+s", name: Some("batch"), children: &fields, ..SchemaNode::default() };
    let types = root.export().unwrap();

    let null = || leaf("n", 0, []);
    let short = leaf("u", 1, [None, None, None]);
    let tag = Tree { dictionary: Some(Box::new(short)), ..leaf("c", 0, [None, None]) };
    let item = structure(0, [null(), tag]);
    let items = Tree { children: vec![item], ..leaf("+l", 0, [None, None]) };
    let array = structure(0, [null(), items]).export(&Counter::new());

    let invalid = array.validate(types.view().unwrap(), &LIMITS).unwrap_err();
    assert_eq!(invalid.path(), "batch.items[1][0].tag \\\"ø\\n[1].dictionary");
    assert_eq!(invalid.fault(), &Fault::NullBuffer { buffer: 1, wanted: 8 });
    let text = "batch.items[1][0].tag \\\"ø\\n[1].dictionary: buffer 1 is null, wanted 8 bytes";
    assert_eq!(invalid.to_string(), text);

    // A name that is not UTF-8 is shown as what it is, and a fault of the root has the root's name.
    let owned = schema(c"+s").child(schema(c"?").name(c"\xFF")).own();
    let invalid = owned.validate(&LIMITS).unwrap_err();
    assert_eq!(invalid.to_string(), "root.\\xff[0]: format \"?\": unknown");
    let owned = schema(c"+l").name(c"top").own();
    let invalid = owned.validate(&LIMITS).unwrap_err();
    assert_eq!(invalid.to_string(), "top: the schema has 0 children, its type 1");
}

/// B1, B9, D15: schemas by themselves.
#[test]
fn schemas() {
    let fault = |schema: OwnedSchema| schema.validate(&LIMITS).unwrap_err().to_string();
    assert_eq!(fault(OwnedSchema::released()), "root: schema: the struct is released or was moved away");
    assert_eq!(fault(schema(c"\xFF").own()), "root: schema: format is not UTF-8");
    assert_eq!(fault(schema(c"i").name(c"\xFF").own()), "\\xff: schema: name is not UTF-8");
    let negative = [1_i32, -2].map(i32::to_ne_bytes).concat();
    let metadata = schema(c"i").metadata(&negative, 1).own();
    assert_eq!(fault(metadata), "root: schema: metadata is malformed: the count or length at byte 4 is -2");
    let digits = "the precision has to be a number from 1 to as many digits as the width holds";
    assert_eq!(fault(schema(c"d:0,1").own()), format!("root: format \"d:0,1\": {digits}"));
    let map = schema(c"+m").child(schema(c"+s").child(schema(c"u")));
    assert_eq!(fault(map.own()), "root: found format \"+s\", wanted a struct of key and value");
    let runs = || schema(c"+r").child(schema(c"I")).child(schema(c"u"));
    assert_eq!(fault(runs().own()), "root: found format \"I\", wanted run ends of type s, i or l");
    let encoded = schema(c"+r").child(schema(c"i").dictionary(schema(c"l"))).child(schema(c"u"));
    assert_eq!(fault(encoded.own()), "root: found format \"i\", wanted run ends of type s, i or l");
    let floats = schema(c"g").dictionary(schema(c"u"));
    assert_eq!(fault(floats.own()), "root: found format \"g\", wanted an integer for a dictionary's indices");
    // What the specification leaves open: no names, twice the same name, flags that nobody knows.
    let open = schema(c"+s")
        .child(schema(c"i").name(c"x"))
        .child(schema(c"i").name(c"x").flags(1 << 40))
        .child(schema(c"n"));
    assert_eq!(open.own().validate(&LIMITS), Ok(()));
}

/// B2: a tree that points to itself runs into the depth that the caller allows, or into the number of nodes, and not into
/// the stack.
#[test]
fn trees_without_end() {
    let mut raw = ArrowSchema::bare(&Counter::new(), true);
    let mut looped = ArrowArray::bare(&Counter::new(), true);
    let (raw, looped) = (&raw mut raw, &raw mut looped);
    let (mut schemas, mut arrays, mut buffers) = ([raw; 2], [looped; 2], [ptr::null()]);
    // SAFETY: both are this function's. Each is its own child, twice, which no producer may do; nobody here follows them
    // without end, and nobody releases them.
    let (schema, array) = unsafe {
        (*raw).format = c"+s".as_ptr();
        ((*raw).children, (*raw).n_children) = (schemas.as_mut_ptr(), 2);
        ((*looped).children, (*looped).n_children) = (arrays.as_mut_ptr(), 2);
        ((*looped).buffers, (*looped).n_buffers) = (buffers.as_mut_ptr(), 1);
        (
            SchemaView::from_raw(&*raw).unwrap(),
            ManuallyDrop::new(OwnedArray::from_raw(looped.read()).unwrap()),
        )
    };
    let deepest = if cfg!(miri) { 500 } else { 200_000 };
    for limit in [1, 3, 16, 17, LIMITS.depth, deepest] {
        let invalid = schema.validate(&LIMITS.with_depth(limit)).unwrap_err();
        assert_eq!(invalid.fault(), &Fault::TooDeep { limit });
        assert_eq!(invalid.path(), format!("root{}", "[0]".repeat(limit)));
        let invalid = array.validate(schema, &LIMITS.with_depth(limit)).unwrap_err();
        assert_eq!(invalid.fault(), &Fault::TooDeep { limit });
    }
    let invalid = array.validate(schema, &LIMITS.with_depth(2)).unwrap_err();
    assert_eq!(invalid.to_string(), "root[0][0]: more than 2 nodes deep");
    // The same nodes over and over: 2 to the power of the depth of them.
    let wide = LIMITS.with_depth(5).with_nodes(5);
    let invalid = array.validate(schema, &wide).unwrap_err();
    assert_eq!(invalid.to_string(), "root[0][0][0][0][0]: more than 5 nodes deep");
    let mut leaves = [ptr::null_mut(); 2];
    let mut leaf = ArrowSchema::bare(&Counter::new(), true);
    leaf.format = c"n".as_ptr();
    leaves.fill(&raw mut leaf);
    // SAFETY: as above; the shared children have none of their own.
    let schema = unsafe {
        (*raw).children = leaves.as_mut_ptr();
        SchemaView::from_raw(&*raw).unwrap()
    };
    let invalid = schema.validate(&LIMITS.with_nodes(2)).unwrap_err();
    assert_eq!(invalid.to_string(), "root[1]: more than 2 nodes");
    assert_eq!(schema.validate(&LIMITS.with_nodes(3)), Ok(()));
}

/// B4: what is deep but has an end is checked to it, if the caller allows that; by default 64 nodes are.
#[test]
fn deep_trees() {
    let depth = if cfg!(miri) { 100 } else { 10_000 };
    for (depth, default) in [(64, true), (65, false), (depth, false)] {
        let schema = with_schema_chain(
            depth,
            |below| SchemaNode {
                format: "+s",
                children: core::slice::from_ref(below),
                ..SchemaNode::default()
            },
            |node| node.export().unwrap(),
        );
        let array = with_array_chain(
            depth,
            |below| ArrayNode {
                buffers: &[ptr::null()],
                children: core::slice::from_ref(below),
                ..ArrayNode::default()
            },
            // SAFETY: structs down to an array of type null, none of which has a buffer that is not null.
            |node| unsafe { node.export(()) }.unwrap(),
        );
        let view = schema.view().unwrap();
        assert_eq!(schema.validate(&LIMITS).is_ok(), default);
        assert_eq!(array.validate(view, &LIMITS).is_ok(), default);
        let exact = LIMITS.with_depth(depth).with_nodes(depth);
        assert_eq!(schema.validate(&exact), Ok(()));
        // SAFETY: the schema is the array's own.
        assert_eq!(unsafe { array.validate_contents(view, &exact) }, Ok(()));
        for limits in [exact.with_depth(depth - 1), exact.with_nodes(depth - 1)] {
            let invalid = schema.validate(&limits).unwrap_err();
            assert_eq!(invalid.path(), format!("root{}", "[0]".repeat(depth - 1)));
            assert_eq!(array.validate(view, &limits).unwrap_err(), invalid);
        }
    }
}

fn fault(schema: Stub<ArrowSchema>, array: Stub<ArrowArray>) -> String {
    let (schema, array) = (schema.own(), array.own());
    let schema = schema.view().unwrap();
    let invalid = array.validate(schema, &LIMITS).unwrap_err();
    // Nothing is read of what is wrong already.
    // SAFETY: the schema is the array's own.
    assert_eq!(unsafe { array.validate_contents(schema, &LIMITS) }, Err(invalid.clone()));
    invalid.to_string()
}

/// B7: which buffers may be null, and how many there have to be.
#[test]
fn buffers() {
    static SOME: [u64; 8] = [0; 8];
    let ints = |length| array(length).no_buffer();
    assert_eq!(fault(schema(c"i"), ints(5)), "root: found 1 buffers, wanted 2");
    assert_eq!(fault(schema(c"i"), ints(5).no_buffer()), "root: buffer 1 is null, wanted 20 bytes");
    let behind = ints(5).no_buffer().offset(3);
    assert_eq!(fault(schema(c"i"), behind), "root: buffer 1 is null, wanted 32 bytes");
    assert_eq!(fault(schema(c"b"), ints(9).no_buffer()), "root: buffer 1 is null, wanted 2 bytes");
    assert_eq!(
        fault(schema(c"u"), ints(2).no_buffer().no_buffer()),
        "root: buffer 1 is null, wanted 12 bytes"
    );
    assert_eq!(
        fault(schema(c"Z"), ints(2).no_buffer().no_buffer()),
        "root: buffer 1 is null, wanted 24 bytes"
    );
    assert_eq!(fault(schema(c"n"), ints(2)), "root: found 1 buffers, wanted 0");
    // C25
    assert_eq!(fault(schema(c"vu"), ints(1).buffer(&SOME)), "root: found 2 buffers, wanted 3");
    let no_sizes = ints(1).buffer(&SOME).buffer(&SOME).buffer(&SOME).no_buffer();
    assert_eq!(fault(schema(c"vz"), no_sizes), "root: buffer 4 is null, wanted 16 bytes");

    let valid = |format, array: Stub<ArrowArray>| {
        let (schema, array) = (schema(format).own(), array.own());
        array.validate(schema.view().unwrap(), &LIMITS)
    };
    // C25: without data buffers there are no sizes either.
    assert_eq!(valid(c"vu", ints(1).buffer(&SOME).no_buffer()), Ok(()));
    assert_eq!(valid(c"w:0", ints(5).no_buffer()), Ok(()));
    // C7: no elements, no bytes.
    for (format, buffers) in [(c"i", 2), (c"u", 3), (c"vz", 3), (c"+us:", 1), (c"+ud:", 2), (c"n", 0)] {
        let empty = (0..buffers).fold(array(0), |array, _| array.no_buffer());
        assert_eq!(valid(format, empty), Ok(()), "{format:?}");
    }
    // B7: what has no bytes may be anywhere.
    assert_eq!(valid(c"i", array(0).no_buffer().buffer_at(nowhere())), Ok(()));
    let most = i64::MAX / 8 + 1;
    if cfg!(target_pointer_width = "64") {
        assert_eq!(
            fault(schema(c"l"), array(most).no_buffer().no_buffer()),
            "root: buffer 1 is larger than memory can be"
        );
    }
}

/// B8, C24: null counts that no array of its type can have.
#[test]
fn null_counts() {
    static SOME: [u8; 8] = [0; 8];
    let text = |schema, array| fault(schema, array);
    let none = "null_count is 2, more than the elements or without a validity bitmap";
    let array_of = |nulls| array(3).nulls(nulls);
    assert_eq!(text(schema(c"i"), array_of(2).no_buffer().buffer(&SOME)), format!("root: array: {none}"));
    let wrong = "root: array: null_count is neither a count nor -1: -2";
    assert_eq!(text(schema(c"i"), array_of(-2).no_buffer().buffer(&SOME)), wrong);
    let union = array_of(1).buffer(&SOME).child(array(3)).child(array(3));
    let pair = schema(c"+us:0,1").child(schema(c"n")).child(schema(c"n"));
    assert_eq!(text(pair, union), "root: null_count is 1, wanted 0");
    let runs = || schema(c"+r").child(schema(c"i")).child(schema(c"n"));
    let ends = || array(1).no_buffer().buffer(&[3_i32]);
    assert_eq!(text(runs(), array_of(3).child(ends()).child(array(1))), "root: null_count is 3, wanted 0");
    let hidden = array(1).nulls(1).buffer(&[0_u8]).buffer(&[3_i32]);
    assert_eq!(text(runs(), array(3).child(hidden).child(array(1))), "root[0]: null_count is 1, wanted 0");
    let (schema, array) = (schema(c"i").own(), array_of(-1).no_buffer().buffer(&SOME).own());
    assert_eq!(array.validate(schema.view().unwrap(), &LIMITS), Ok(()));
}

/// C26: children reach as far as their parent, whose offset is one into them.
#[test]
fn children_reach_as_far_as_their_parent() {
    static SOME: [u64; 8] = [0; 8];
    let ints = |length, offset| array(length).offset(offset).no_buffer().buffer(&SOME);
    let pair = || schema(c"+s").child(schema(c"i"));
    let parent = || array(5).offset(1).no_buffer();
    let (whole, valid) = (pair().own(), parent().child(ints(6, 0)).own());
    assert_eq!(valid.validate(whole.view().unwrap(), &LIMITS), Ok(()));
    // Sliced twice: the parent's offset counts on top of the child's.
    let short = "root[0]: length is 5, its parent needs 6";
    assert_eq!(fault(pair(), parent().child(ints(5, 1))), short);
    let sparse = schema(c"+us:7").child(schema(c"i"));
    assert_eq!(
        fault(sparse, array(5).offset(1).buffer(b"\x07\x07\x07\x07\x07\x07").child(ints(5, 0))),
        short
    );
    let lists = |format| schema(format).child(schema(c"n"));
    let of_lists = |length| array(2).offset(1).no_buffer().child(array(length));
    assert_eq!(fault(lists(c"+w:3"), of_lists(8)), "root[0]: length is 8, its parent needs 9");
    let (whole, valid) = (lists(c"+w:3").own(), of_lists(9).own());
    assert_eq!(valid.validate(whole.view().unwrap(), &LIMITS), Ok(()));
    let most = usize::MAX;
    let huge = array(i64::from(i32::MAX)).offset(i64::from(i32::MAX)).no_buffer().child(array(1));
    if cfg!(target_pointer_width = "32") {
        let text = format!("root[0]: length is 1, its parent needs {most}");
        assert_eq!(fault(lists(c"+w:2147483647"), huge), text);
    } else {
        let huge = array(i64::MAX / 2).no_buffer().child(array(1));
        let text = format!("root[0]: length is 1, its parent needs {most}");
        assert_eq!(fault(lists(c"+w:2147483647"), huge), text);
    }
}

/// B1: what is wrong with the structs is found before anything is compared with what they hold (found by a fuzzer).
#[test]
fn structure_comes_first() {
    let mut schema = schema(c"+l").child(schema(c"n")).own();
    let array = array(1).no_buffer().buffer(&[0_i32, 9]).child(array(1)).own();
    // SAFETY: the schema is the array's own.
    let contents = unsafe { array.validate_contents(schema.view().unwrap(), &LIMITS) }.unwrap_err();
    assert_eq!(contents.to_string(), "root: offset of element 1 is 9, wanted 0 to 1");
    drop(schema.take_child(0).unwrap());
    let released = array.validate(schema.view().unwrap(), &LIMITS).unwrap_err();
    assert_eq!(released.to_string(), "root[0]: schema: the struct is released or was moved away");
    // SAFETY: the schema is the array's own.
    assert_eq!(unsafe { array.validate_contents(schema.view().unwrap(), &LIMITS) }, Err(released));
}

/// B1, B2: what hangs on a node is what its schema has.
#[test]
fn children_and_dictionaries() {
    static SOME: [u64; 8] = [0; 8];
    let ints = || array(1).no_buffer().buffer(&SOME);
    let pair = || schema(c"+s").child(schema(c"i"));
    assert_eq!(fault(pair(), array(0).no_buffer()), "root: found 0 children, wanted 1");
    assert_eq!(fault(schema(c"i"), ints().child(ints())), "root: found 1 children, wanted 0");
    assert_eq!(fault(schema(c"i"), ints().dictionary(ints())), "root: found a dictionary, wanted none");
    let encoded = || schema(c"i").dictionary(schema(c"i"));
    assert_eq!(fault(encoded(), ints()), "root: found no dictionary, wanted one");
    assert_eq!(fault(schema(c"ii"), ints()), "root: format \"ii\": unknown");
    let negative = array(0).no_buffer().child(array(-1));
    assert_eq!(fault(pair(), negative), "root[0]: array: length is negative: -1");
    let runs = schema(c"+r").child(schema(c"i")).child(schema(c"n"));
    let fewer = array(2).child(array(2).no_buffer().buffer(&[1_i32, 2])).child(array(1));
    assert_eq!(fault(runs, fewer), "root[1]: length is 1, its parent needs 2");
    let runs = schema(c"+r").child(schema(c"i")).child(schema(c"n"));
    let none = array(2).child(array(0).no_buffer().no_buffer()).child(array(1));
    assert_eq!(fault(runs, none), "root[0]: length is 0, its parent needs 1");
    assert_eq!(
        OwnedArray::released().validate(pair().own().view().unwrap(), &LIMITS).unwrap_err().fault(),
        &Fault::Array(ViewError::Released)
    );
}

/// D1, D5, C19: the structure of an array on a device is checked where it is, with buffers that nobody may read and an
/// event that nobody waits for; its contents only where the host may read them.
#[test]
fn on_a_device() {
    let destroyed = Counter::new();
    let on = |device_type| {
        let stub = array(3).no_buffer().buffer_at(nowhere());
        let event = Event::new(nowhere(), &destroyed);
        own(on_device(stub, Device::new(device_type, 0), Some(event)))
    };
    let (ints, bytes) = (schema(c"i").own(), schema(c"w:9223372036854775807").own());
    let ints = ints.view().unwrap();
    let on_cuda: OwnedDeviceArray = on(ArrowDeviceType::CUDA);
    assert_eq!(on_cuda.validate(ints, &LIMITS), Ok(()));
    let invalid = on_cuda.validate(bytes.view().unwrap(), &LIMITS).unwrap_err();
    assert!(
        invalid.to_string().starts_with("root: format \"w:9223372036854775807\": the width"),
        "{invalid}"
    );
    assert_eq!(destroyed.get(), 0);

    for (device_type, queued) in [(ArrowDeviceType::CUDA, false), (ArrowDeviceType::CUDA_HOST, true)] {
        let array = on(device_type);
        let ready = if queued {
            array.synchronize(&Queue).unwrap()
        } else {
            // SAFETY: nobody writes the buffers, nor reads them.
            unsafe { array.assume_ready() }
        };
        // SAFETY: the schema is the array's own.
        let invalid = unsafe { ready.validate_contents(ints, &LIMITS) }.unwrap_err();
        assert_eq!(invalid.fault(), &Fault::NotHostReady { device: Device::new(device_type, 0) });
        assert!(invalid.to_string().starts_with("root: the contents on CUDA"), "{invalid}");
    }
    let stub = array(3).no_buffer().buffer(&[1_i32, 2, 3]);
    let host = own(on_device(stub, Device::new(ArrowDeviceType::CUDA_HOST, 0), None));
    // SAFETY: the schema is the array's own.
    assert_eq!(unsafe { host.synchronize(&NoWait).unwrap().validate_contents(ints, &LIMITS) }, Ok(()));
}

/// Says that a queue waits.
struct Queue;

// SAFETY: nothing is queued here, so nothing comes after the wait.
unsafe impl EventWaiter for Queue {
    type Error = Infallible;

    fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, Infallible> {
        Ok(Readiness::Queued)
    }
}
