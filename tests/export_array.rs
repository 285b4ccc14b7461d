//! [`ArrayNode`]: what is described is what a consumer reads, and what cannot be is refused.

mod common;
mod export;

use core::ptr;
use std::error::Error;

use arrow_device_abi::format::Format;
use arrow_device_abi::{ArrayNode, ExportErrorKind, OwnedSchema, SchemaNode, ViewError};

use common::{Counter, schema};
use export::{Keep, Tree, dictionary, layouts, leaf, structure, without_contents};

/// Exports, reads back beside the schema of the type, and releases.
fn assert_round_trip(tree: &Tree) {
    let dropped = Counter::new();
    let (placed, keep) = tree.place(&dropped);
    let schema = tree.schema();
    let array = placed.with_node(|node| {
        node.fits(schema.view().unwrap()).unwrap();
        // SAFETY: the tree has the buffers of its type, and they live as long as the keep-alive.
        unsafe { node.export(keep) }.unwrap()
    });
    drop(placed);
    tree.assert_read_by(array.view().unwrap());
    assert_eq!(dropped.get(), 0);
    drop(array);
    assert_eq!(dropped.get(), 1);
}

fn has_bitmap(tree: &Tree) -> bool {
    !matches!(&*tree.format, "n" | "+r") && !tree.format.starts_with("+u")
}

/// B7, B8, C24, C25: every layout, whole and sliced, with a validity bitmap of each kind.
#[test]
fn every_layout_is_read_as_it_was_described() {
    for tree in layouts() {
        assert_round_trip(&tree);
        let null_count = tree.null_count.min(2);
        assert_round_trip(&Tree { length: 2, offset: 1, null_count, ..tree.clone() });
        if !has_bitmap(&tree) {
            continue;
        }
        for (bitmap, null_count) in [
            (None, 0),
            (None, -1),
            (Some(vec![0b1111]), 0),
            (Some(vec![0b0000]), 4),
            (Some(vec![0b0110]), -1),
            (Some(vec![0b0110]), 2),
        ] {
            let mut tree = tree.clone();
            (tree.buffers[0], tree.null_count) = (bitmap, null_count);
            assert_round_trip(&tree);
        }
    }
}

/// D15: the table of layouts leaves out no type of the C data interface.
#[test]
fn every_layout_is_there() {
    let known = layouts();
    for format in [
        "n", "b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "z", "Z", "vz", "u", "U", "vu",
        "d:", "w:", "tdD", "tdm", "tts", "ttn", "tss:", "tDm", "tiM", "tiD", "tin", "+l", "+L", "+vl", "+vL",
        "+w:", "+s", "+m", "+ud:", "+us:", "+r",
    ] {
        let same =
            |tree: &Tree| tree.format == format || format.ends_with(':') && tree.format.starts_with(format);
        assert!(known.iter().any(same), "{format}");
    }
    assert!(known.iter().any(|tree| tree.dictionary.is_some()));
}

/// B7, C7: arrays of nothing, with null pointers and with dangling ones, of every layout.
#[test]
fn empty_arrays_need_no_buffers() {
    for tree in layouts() {
        for buffer in [None, Some(Vec::new())] {
            assert_round_trip(&without_contents(&tree, &buffer));
        }
    }
}

/// D1, B7: where there are none, the pointers to buffers and children are null, and a node has no dictionary.
#[test]
fn pointers_to_nothing_are_null() {
    let array = structure(0, [leaf("n", 0, [])]).export(&Counter::new());
    let raw = array.as_raw();
    assert_eq!((raw.n_buffers, raw.n_children), (1, 1));
    assert!(!raw.buffers.is_null() && !raw.children.is_null() && raw.dictionary.is_null());
    let child = array.view().unwrap().child(0).unwrap().as_raw();
    assert_eq!((child.n_buffers, child.n_children), (0, 0));
    assert!(child.buffers.is_null() && child.children.is_null() && child.dictionary.is_null());
}

/// B2, B4: every node can be released, each has its own numbers, and its own pointer arrays.
#[test]
fn every_node_is_a_whole_struct() {
    let tree = structure(4, [dictionary(leaf("u", 2, [None, None, None])), structure(4, [])]);
    let array = tree.export(&Counter::new());
    let view = array.view().unwrap();
    let first = view.child(0).unwrap();
    let nodes = [view, first, first.dictionary().unwrap().unwrap(), view.child(1).unwrap()];
    for (index, node) in nodes.iter().enumerate() {
        assert!(node.as_raw().release.is_some());
        for other in &nodes[..index] {
            assert_ne!(node.as_raw().private_data, other.as_raw().private_data);
            assert_ne!(node.as_raw().buffers, other.as_raw().buffers);
        }
    }
}

/// What `node` is refused for, by itself and in every place of a tree. The keep-alive comes back each time.
fn assert_refused(node: ArrayNode<'_>, kind: ExportErrorKind) {
    let good = ArrayNode::default();
    let children = [good, node, good];
    let parent = ArrayNode { children: &children, ..good };
    let dictionary = ArrayNode { dictionary: Some(&node), ..good };
    let below_dictionary = ArrayNode { dictionary: Some(&parent), children: &[good], ..good };
    let last = [good, dictionary];
    let deep = ArrayNode { children: &last, dictionary: Some(&good), ..good };
    for (place, tree) in [node, parent, dictionary, below_dictionary, deep].into_iter().enumerate() {
        let dropped = Counter::new();
        // SAFETY: nothing is read, because nothing is made.
        let error = unsafe { tree.export(Keep::counted(&dropped)) }.unwrap_err();
        assert_eq!((error.kind, dropped.get()), (kind, 0), "place {place}");
        // SAFETY: an array without elements needs no buffers.
        drop(unsafe { good.export(error.keep) }.unwrap());
        assert_eq!(dropped.get(), 1, "the keep-alive was not the one");
    }
}

fn lengths(length: i64, offset: i64) -> ArrayNode<'static> {
    ArrayNode { length, offset, ..ArrayNode::default() }
}

/// C28: negative lengths and offsets, and more than an `int64_t` can say.
#[test]
fn impossible_lengths_are_refused() {
    for (length, offset) in
        [(-1, 0), (0, -1), (i64::MIN, 0), (0, i64::MIN), (-1, 1), (1, i64::MAX), (i64::MAX, i64::MAX)]
    {
        assert_refused(lengths(length, offset), ExportErrorKind::Length { length, offset });
    }
    for (length, offset) in [(i64::MAX, 0), (0, i64::MAX), (1, i64::MAX - 1)] {
        // SAFETY: the null layout has no buffers, so it can be as long as it likes.
        let array = unsafe { lengths(length, offset).export(()) }.unwrap();
        assert_eq!((array.as_raw().length, array.as_raw().offset), (length, offset));
    }
}

/// B8, C23, C24: a null count is −1, or at most the length, or 0 without a bitmap.
#[test]
fn impossible_null_counts_are_refused() {
    let bitmap = [0_u8];
    let (there, missing) = ([bitmap.as_ptr().cast()], [ptr::null()]);
    let counts =
        |length, null_count, buffers| ArrayNode { length, null_count, buffers, ..ArrayNode::default() };
    for node in [
        counts(2, -2, &there[..]),
        counts(2, 3, &there),
        counts(2, i64::MIN, &there),
        counts(2, i64::MAX, &there),
        counts(0, 1, &there),
        counts(2, 1, &missing),
        counts(2, 3, &[]),
    ] {
        assert_refused(node, ExportErrorKind::NullCount { null_count: node.null_count });
    }
    for (node, null_count) in [
        (counts(2, 2, &there[..]), 2),
        (counts(2, -1, &there), -1),
        // Without a bitmap there is nothing to count, which strict consumers want to hear.
        (counts(2, -1, &missing), 0),
        (counts(2, 0, &missing), 0),
        (counts(2, 2, &[]), 2),
        (counts(2, -1, &[]), -1),
        (counts(0, 0, &[]), 0),
        // An array of type `n` as some producers have it, with a buffer that need not be.
        (counts(2, 2, &missing), 2),
    ] {
        // SAFETY: the bitmap has a bit for each element, and lives to the end of the test.
        let array = unsafe { node.export(()) }.unwrap();
        assert_eq!(array.as_raw().null_count, null_count);
        assert!(array.view().is_ok());
    }
}

/// C28: errors say what is wrong, and show nothing of a keep-alive that need not be printable.
#[test]
fn errors_have_their_own_words() {
    // SAFETY: nothing is made.
    let error = unsafe { lengths(-1, 2).export(Keep::default()) }.unwrap_err();
    assert_eq!(error.to_string(), "length -1 and offset 2 are negative or too large");
    assert_eq!(format!("{error:?}"), "ExportError { kind: Length { length: -1, offset: 2 }, .. }");
    let kinds = [
        error.kind,
        ExportErrorKind::NullCount { null_count: 3 },
        ExportErrorKind::Nul { field: "name" },
        ExportErrorKind::Format("a decimal has a precision and a scale"),
        ExportErrorKind::Buffers { found: 5 },
        ExportErrorKind::Children { found: 7 },
        ExportErrorKind::TooLarge,
        ExportErrorKind::OutOfMemory,
        ExportErrorKind::Event(arrow_device_abi::raw::ArrowDeviceType::CUDA_HOST),
        ExportErrorKind::View(ViewError::Released),
    ];
    let mut texts: Vec<_> = kinds.iter().map(|kind| (kind as &dyn Error).to_string()).collect();
    for (text, part) in
        texts.iter().zip(["-1", "3", "name", "decimal", "5", "7", "large", "memory", "CUDA_HOST", "released"])
    {
        assert!(text.contains(part), "{text}");
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), kinds.len());
    let boxed: Box<dyn Error> = error.into();
    assert!(boxed.source().is_none());
}

/// What [`ArrayNode::fits`] says of `tree` and a schema.
fn fits(tree: &Tree, schema: &OwnedSchema) -> Result<(), ExportErrorKind> {
    let (placed, _keep) = tree.place(&Counter::new());
    placed.with_node(|node| node.fits(schema.view().unwrap()))
}

/// D15, C25: a buffer, a child or a dictionary too many or too few, at every node of every layout.
#[test]
fn every_node_has_to_fit_its_type() {
    let extra = || leaf("n", 0, []);
    for tree in layouts() {
        let schema = tree.schema();
        for index in 0..tree.count() {
            let changed = |change: &dyn Fn(&mut Tree)| {
                let mut tree = tree.clone();
                let node = tree.nth_mut(index);
                change(node);
                let (buffers, children) = (node.buffers.len(), node.children.len());
                (fits(&tree, &schema), buffers, children)
            };
            let variadic = tree.clone().nth_mut(index).format.starts_with('v');

            let (result, found, _) = changed(&|node| node.buffers.push(None));
            let expected = if variadic { Ok(()) } else { Err(ExportErrorKind::Buffers { found }) };
            assert_eq!(result, expected, "{tree:?}");
            if found > 1 {
                let (result, found, _) = changed(&|node| drop(node.buffers.pop()));
                let expected =
                    if variadic && found > 2 { Ok(()) } else { Err(ExportErrorKind::Buffers { found }) };
                assert_eq!(result, expected, "{tree:?}");
            }
            let (result, _, found) = changed(&|node| node.children.push(extra()));
            assert_eq!(result, Err(ExportErrorKind::Children { found }), "{tree:?}");
            if found > 1 {
                let (result, _, found) = changed(&|node| drop(node.children.pop()));
                assert_eq!(result, Err(ExportErrorKind::Children { found }), "{tree:?}");
            }
            let (result, _, found) = changed(&|node| {
                node.dictionary = if node.dictionary.is_some() { None } else { Some(Box::new(extra())) };
            });
            assert_eq!(result, Err(ExportErrorKind::Children { found }), "{tree:?}");
        }
    }
}

/// D15: types are told apart by what they need: the order of children matters.
#[test]
fn children_have_to_be_in_order() {
    let (strings, numbers) = (leaf("u", 0, [None, None, None]), leaf("i", 0, [None, None]));
    let schema = structure(0, [strings.clone(), numbers.clone()]).schema();
    assert_eq!(fits(&structure(0, [strings.clone(), numbers.clone()]), &schema), Ok(()));
    assert_eq!(fits(&structure(0, [numbers, strings]), &schema), Err(ExportErrorKind::Buffers { found: 2 }));
}

/// D15: a type that is not known may have any buffers; only its children and dictionary are compared.
#[test]
fn unknown_types_fit_by_their_shape() {
    assert!(Format::parse("quaternion").unwrap_err().is_unknown());
    let child = SchemaNode { format: "i", ..SchemaNode::default() };
    let schema =
        SchemaNode { format: "quaternion", children: &[child], ..SchemaNode::default() }.export().unwrap();
    let tree =
        |buffers| Tree { children: vec![leaf("i", 0, [None, None])], ..leaf("", 0, vec![None; buffers]) };
    for buffers in [0, 1, 7] {
        assert_eq!(fits(&tree(buffers), &schema), Ok(()));
    }
    assert_eq!(fits(&leaf("", 0, []), &schema), Err(ExportErrorKind::Children { found: 0 }));
    let mut below = tree(0);
    below.children[0].buffers.clear();
    assert_eq!(fits(&below, &schema), Err(ExportErrorKind::Buffers { found: 0 }));
}

/// B1, D15: a foreign schema that is itself malformed is an error of its own, wherever it is malformed.
#[test]
fn malformed_schemas_fit_nothing() {
    let node = |n_children| structure(0, vec![leaf("i", 0, [None, None]); n_children]);
    let parent = |child| schema(c"+s").child(child).own();

    let not_utf8 = parent(schema(c"\xff"));
    let error = ExportErrorKind::View(ViewError::NotUtf8 { field: "format" });
    assert_eq!(fits(&node(1), &not_utf8), Err(error));

    let Err(ExportErrorKind::Format(problem)) = fits(&node(1), &parent(schema(c"d:0,0"))) else {
        panic!("an impossible decimal");
    };
    assert_eq!(problem, Format::parse("d:0,0").unwrap_err().problem());

    let mut moved = parent(schema(c"i"));
    drop(moved.take_child(0).unwrap());
    assert_eq!(fits(&node(1), &moved), Err(ExportErrorKind::View(ViewError::Released)));

    // As many children as the array has, but not as the type.
    let two = schema(c"+l").child(schema(c"i")).child(schema(c"i")).own();
    let mut tree = node(2);
    tree.buffers.push(None);
    assert_eq!(fits(&tree, &two), Err(ExportErrorKind::Children { found: 2 }));
}
