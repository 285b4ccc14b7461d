//! [`SchemaNode`] and `try_clone`: what is described is what a consumer reads, and so is what is copied.

mod common;
mod export;

use core::ffi::{CStr, c_char};
use core::{ptr, slice};

use arrow_device_abi::format::{Children, Format};
use arrow_device_abi::raw::{ARROW_FLAG_NULLABLE, ArrowSchema};
use arrow_device_abi::{ExportErrorKind, OwnedSchema, SchemaNode, SchemaView, ViewError};

use common::{Counter, Stub, own, schema};
use export::layouts;

const LEAF: SchemaNode<'_> = SchemaNode {
    format: "n",
    name: None,
    metadata: &[],
    flags: ARROW_FLAG_NULLABLE,
    children: &[],
    dictionary: None,
};

fn children(n: usize) -> Vec<SchemaNode<'static>> {
    vec![LEAF; n]
}

/// Asserts that two schemas say the same, everywhere. Zero pairs of metadata are as good as none (C29).
fn assert_same(a: SchemaView<'_>, b: SchemaView<'_>) {
    assert_eq!((a.format_bytes(), a.name_bytes()), (b.format_bytes(), b.name_bytes()));
    assert_eq!((a.metadata().unwrap(), a.flags()), (b.metadata().unwrap(), b.flags()));
    assert_eq!(a.n_children(), b.n_children());
    for (a, b) in a.children().zip(b.children()) {
        assert_same(a.unwrap(), b.unwrap());
    }
    match (a.dictionary().unwrap(), b.dictionary().unwrap()) {
        (None, None) => {}
        (Some(a), Some(b)) => assert_same(a, b),
        different => panic!("{different:?}"),
    }
}

/// D15: every format of the interface is exported as it is written, beside the children of its type.
#[test]
fn every_format() {
    for tree in layouts() {
        let schema = tree.schema();
        assert_eq!(schema.view().unwrap().format(), Ok(&*tree.format));
    }
    for format in ["tssUTC", "+quaternion", "x", "é", "+ud", "vuu", "tsx:UTC", "W:3", " i"] {
        for n in [0, 1, 5] {
            let schema = SchemaNode { format, children: &children(n), ..LEAF }.export().unwrap();
            assert_eq!(schema.view().unwrap().format(), Ok(format), "an unknown format is passed on");
            assert_eq!(schema.view().unwrap().n_children(), n);
        }
    }
}

/// D15: `Default` is a nullable field of type `n`.
#[test]
fn the_default() {
    let schema = SchemaNode::default().export().unwrap();
    assert_same(schema.view().unwrap(), LEAF.export().unwrap().view().unwrap());
    let raw = schema.as_raw();
    assert!(
        raw.name.is_null() && raw.metadata.is_null() && raw.children.is_null() && raw.dictionary.is_null()
    );
    assert_eq!((raw.flags, raw.n_children), (ARROW_FLAG_NULLABLE, 0));
}

/// D15: no name is a null pointer and an empty one is not; names are texts of any language.
#[test]
fn names() {
    for name in [None, Some(""), Some("id"), Some("größe 数 \u{1f980}"), Some("\n\u{1}")] {
        let schema = SchemaNode { name, ..LEAF }.export().unwrap();
        assert_eq!(schema.view().unwrap().name(), Ok(name));
        assert_eq!(schema.as_raw().name.is_null(), name.is_none());
    }
}

/// C30: 64 bits, passed on as they are.
#[test]
fn flags() {
    for flags in [0, 1, 2, 4, 7, 64 | 2, i64::MIN, -1] {
        let schema = SchemaNode { flags, ..LEAF }.export().unwrap();
        assert_eq!(schema.view().unwrap().flags(), flags);
    }
}

type Pairs<'a> = &'a [(&'a [u8], &'a [u8])];

/// B9 to the byte: counts and lengths in native order, texts without an end mark.
fn encoded(pairs: Pairs<'_>) -> Vec<u8> {
    let number = |number: usize| (number as i32).to_ne_bytes();
    let mut bytes = number(pairs.len()).to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(number(text.len()));
        bytes.extend(*text);
    }
    bytes
}

/// B9, C29: no pairs are a null pointer; else any bytes go in, and the same come out.
#[test]
fn metadata() {
    let long = vec![7; 1000];
    let all: [Pairs<'_>; 6] = [
        &[],
        &[(b"", b"")],
        &[(b"k", b"\xff\xfe")],
        &[(b"ARROW:extension:name", b"uuid"), (b"a\0b", b"\0"), (b"a\0b", b"again")],
        &[(b"\xf0", b""), (b"", b"v")],
        &[(&long, &long), (b"1", b"22"), (b"333", &long)],
    ];
    for metadata in all {
        // Names of all lengths put the metadata at addresses of all alignments.
        for name in ["", "x", "xx", "xxx", "xxxx", "xxxxx", "xxxxxx", "xxxxxxx"] {
            let schema = SchemaNode { name: Some(name), metadata, ..LEAF }.export().unwrap();
            let view = schema.view().unwrap();
            assert_eq!(schema.as_raw().metadata.is_null(), metadata.is_empty());
            assert_eq!(view.metadata().unwrap().iter().collect::<Vec<_>>(), metadata);
            assert_eq!((view.format(), view.name()), (Ok("n"), Ok(Some(name))));
            if !metadata.is_empty() {
                let expected = encoded(metadata);
                // SAFETY: the metadata is as long as its encoding says, which is what the view found.
                let bytes =
                    unsafe { slice::from_raw_parts(schema.as_raw().metadata.cast::<u8>(), expected.len()) };
                assert_eq!(bytes, expected);
            }
        }
    }
}

/// A field with everything, in a tree of such fields.
fn full() -> OwnedSchema {
    let pairs: Pairs<'_> = &[(b"k", b"\0\xff")];
    let field = |name| SchemaNode { format: "u", name: Some(name), metadata: pairs, flags: 5, ..LEAF };
    let words = field("words");
    let encoded = SchemaNode { format: "c", dictionary: Some(&words), ..field("encoded") };
    let inner = SchemaNode { format: "+s", children: &[field("é"), encoded, LEAF], ..field("inner") };
    let list = SchemaNode { format: "+l", children: &[inner], name: None, ..field("") };
    SchemaNode { format: "+s", children: &[LEAF, list, encoded], flags: 0, metadata: pairs, ..LEAF }
        .export()
        .unwrap()
}

/// D15: every node of a tree has its own texts.
#[test]
fn trees() {
    let schema = full();
    let view = schema.view().unwrap();
    let inner = view.child(1).unwrap().child(0).unwrap();
    assert_eq!((view.format(), view.name(), view.flags()), (Ok("+s"), Ok(None), 0));
    assert_eq!(view.child(1).unwrap().name(), Ok(None));
    assert_eq!((inner.format(), inner.name(), inner.flags()), (Ok("+s"), Ok(Some("inner")), 5));
    let names: Vec<_> = inner.children().map(|child| child.unwrap().name().unwrap()).collect();
    assert_eq!(names, [Some("é"), Some("encoded"), None]);
    for encoded in [inner.child(1).unwrap(), view.child(2).unwrap()] {
        let words = encoded.dictionary().unwrap().unwrap();
        assert_eq!((encoded.format(), words.format(), words.name()), (Ok("c"), Ok("u"), Ok(Some("words"))));
        assert_eq!(words.metadata().unwrap().get(b"k"), Some(&b"\0\xff"[..]));
    }
}

/// What `node` is refused for, by itself and in every place of a tree.
fn assert_refused(node: SchemaNode<'_>, kind: ExportErrorKind) {
    let child = SchemaNode { format: "+s", children: &[LEAF, node, LEAF], ..LEAF };
    let dictionary = SchemaNode { dictionary: Some(&node), ..LEAF };
    let deep = SchemaNode { dictionary: Some(&child), ..LEAF };
    for (place, tree) in [node, child, dictionary, deep].into_iter().enumerate() {
        assert_eq!(tree.export().unwrap_err(), kind, "place {place} of {:?}", node.format);
    }
}

/// D15: C would see a text end where it has a NUL byte.
#[test]
fn texts_with_nul_are_refused() {
    for text in ["\0", "i\0", "\0i", "a\0b"] {
        assert_refused(SchemaNode { format: text, ..LEAF }, ExportErrorKind::Nul { field: "format" });
        assert_refused(SchemaNode { name: Some(text), ..LEAF }, ExportErrorKind::Nul { field: "name" });
    }
    let zone = SchemaNode { format: "tss:a\0b", ..LEAF };
    assert_refused(zone, ExportErrorKind::Nul { field: "format" });
}

/// D15: a known format with numbers that its type has not.
#[test]
fn impossible_formats_are_refused() {
    for format in
        ["d:0,1", "d:39,1", "d:10", "d:9,2,33", "w:", "w:-1", "+w:x", "+us:1,1", "+ud:128", "w:2147483648"]
    {
        let problem = Format::parse(format).unwrap_err().problem();
        assert_refused(SchemaNode { format, ..LEAF }, ExportErrorKind::Format(problem));
    }
}

/// D15: every type has a format of at least one letter, so this is no unknown one.
#[test]
fn an_empty_format_is_refused() {
    let empty = SchemaNode { format: "", ..LEAF }.export();
    assert!(matches!(empty, Err(ExportErrorKind::Format(_))), "{empty:?}");
}

/// D15: as many children as the type has.
#[test]
fn wrong_numbers_of_children_are_refused() {
    for tree in layouts() {
        let Children::Exactly(right) = Format::parse(&tree.format).unwrap().children() else {
            continue;
        };
        for n in (0..4).filter(|n| *n != right) {
            let children = children(n);
            let node = SchemaNode { format: &tree.format, children: &children, ..LEAF };
            assert_refused(node, ExportErrorKind::Children { found: n });
        }
    }
}

/// B4, B5, B6: moved parts of a schema keep their texts after the rest is gone.
#[test]
fn moved_parts_outlive_the_rest() {
    let mut root = full();
    let mut list = root.take_child(1).unwrap();
    let mut encoded = root.take_child(2).unwrap();
    drop(root);
    let inner = list.take_child(0).unwrap();
    drop(list);
    let words = encoded.take_dictionary().unwrap().unwrap();
    drop(encoded);
    let reference = full();
    let view = reference.view().unwrap();
    assert_same(inner.view().unwrap(), view.child(1).unwrap().child(0).unwrap());
    drop(inner);
    assert_same(words.view().unwrap(), view.child(2).unwrap().dictionary().unwrap().unwrap());
}

/// C4: release sets itself to null, and a second call does nothing.
#[test]
fn release_clears_the_struct_it_is_given() {
    let mut raw = full().into_raw();
    let release = raw.release.unwrap();
    // SAFETY: a live schema, then a released one, then none.
    unsafe {
        release(&raw mut raw);
        assert!(raw.is_released());
        release(&raw mut raw);
        release(ptr::null_mut());
    }
}

/// S6: a copy says the same, has its own memory, and outlives the original.
#[test]
fn a_clone_owes_the_original_nothing() {
    let original = full();
    let copy = original.try_clone().unwrap();
    assert_same(copy.view().unwrap(), original.view().unwrap());
    let (a, b) = (original.as_raw(), copy.as_raw());
    assert!(a.format != b.format && a.metadata != b.metadata && a.children != b.children);
    assert_ne!(a.private_data, b.private_data);
    drop(original);
    assert_same(copy.view().unwrap(), full().view().unwrap());
    assert_same(copy.try_clone().unwrap().view().unwrap(), copy.view().unwrap());
}

fn foreign(format: &'static CStr) -> Stub<ArrowSchema> {
    let metadata: Pairs<'_> = &[(b"k", b"\xff\xfe"), (b"", b"")];
    schema(format).name(c"n\xffme").flags(64 | 7).metadata(&encoded(metadata), 1)
}

/// C29, C30: a schema that another library made: bytes that are not UTF-8, unknown formats and flags, unaligned
/// metadata, and what this crate would not have exported, because its owner had accepted it.
#[test]
fn foreign_schemas_are_copied_as_they_are() {
    let released = Counter::new();
    let original = foreign(c"+l")
        .child(foreign(c"\xff"))
        .child(foreign(c"d:0,0").dictionary(foreign(c"quaternion").name(c"")))
        .child(schema(c"n").metadata(&0i32.to_ne_bytes(), 3))
        .counted(&released)
        .own();
    let copy = original.try_clone().unwrap();
    assert_same(copy.view().unwrap(), original.view().unwrap());
    // Names: one that is empty, one that is none, and metadata of no pairs, which is a null pointer as well as any.
    let empty = copy.view().unwrap().child(1).unwrap().dictionary().unwrap().unwrap();
    assert_eq!(empty.name_bytes(), Some(&b""[..]));
    let bare = copy.view().unwrap().child(2).unwrap();
    assert!(bare.as_raw().name.is_null() && bare.as_raw().metadata.is_null());
    assert_eq!(released.get(), 0);
    drop(original);
    assert_eq!(released.get(), 1);
    assert_eq!(copy.view().unwrap().metadata().unwrap().get(b"k"), Some(&b"\xff\xfe"[..]));
}

/// What a malformed schema gets, wherever it is malformed: an error, and it stays its owner's.
fn assert_not_copied(spoil: impl Fn(&mut ArrowSchema), error: ViewError) {
    let below_dictionary = || schema(c"+s").child(schema(c"i"));
    let tree = || schema(c"+s").child(schema(c"i").dictionary(below_dictionary())).child(schema(c"n"));
    for depth in 0..4 {
        let released = Counter::new();
        let mut root = tree().counted(&released).build();
        let mut node = &raw mut root;
        for level in 0..depth {
            // SAFETY: nodes of a live tree; the second has a dictionary, the first and third a child.
            node = unsafe { if level == 1 { (*node).dictionary } else { *(*node).children } };
        }
        // SAFETY: a node of a live tree, used by nobody else.
        spoil(unsafe { &mut *node });
        let schema = own(root);
        assert_eq!(schema.try_clone().unwrap_err(), ExportErrorKind::View(error), "at depth {depth}");
        assert_eq!(released.get(), 0);
        drop(schema);
        assert_eq!(released.get(), 1);
    }
}

/// C29: the numbers of a foreign schema are not believed.
#[test]
fn malformed_schemas_are_not_copied() {
    assert_not_copied(|node| node.format = ptr::null(), ViewError::Null { field: "format" });
    let negative = ViewError::Negative { field: "n_children", value: -1 };
    assert_not_copied(|node| node.n_children = -1, negative);
    let missing = |node: &mut ArrowSchema| (node.n_children, node.children) = (1, ptr::null_mut());
    assert_not_copied(missing, ViewError::Null { field: "children" });
    let mut no_child = [ptr::null_mut()];
    let children = no_child.as_mut_ptr();
    let null = |node: &mut ArrowSchema| (node.n_children, node.children) = (1, children);
    assert_not_copied(null, ViewError::Null { field: "child" });

    let number = |number: i32| number.to_ne_bytes();
    for (metadata, at, value) in [
        ([number(-1), [0; 4], [0; 4]], 0, -1),
        ([number(1), number(-2), [0; 4]], 4, -2),
        ([number(1), number(0), number(i32::MIN)], 8, i32::MIN),
    ] {
        let metadata = metadata.as_flattened();
        let spoil = |node: &mut ArrowSchema| node.metadata = metadata.as_ptr().cast::<c_char>();
        assert_not_copied(spoil, ViewError::Metadata { at, value });
    }
}

/// B5: what has parts missing, or is gone itself, cannot be copied; neither ours nor another's.
#[test]
fn moved_out_parts_are_not_copied() {
    let theirs = || schema(c"+s").child(schema(c"n")).child(schema(c"+l").dictionary(schema(c"u"))).own();
    let ours = || {
        let encoded = SchemaNode { dictionary: Some(&LEAF), ..LEAF };
        SchemaNode { format: "+s", children: &[LEAF, encoded], ..LEAF }.export().unwrap()
    };
    let error = ExportErrorKind::View(ViewError::Released);
    for mut schema in [theirs(), ours()] {
        let mut parent = schema.take_child(1).unwrap();
        assert_eq!(schema.try_clone().unwrap_err(), error);
        assert!(parent.try_clone().is_ok());
        let dictionary = parent.take_dictionary().unwrap().unwrap();
        assert_eq!(parent.try_clone().unwrap_err(), error);
        assert!(dictionary.try_clone().is_ok());
        // SAFETY: lent to C, which moves it out.
        drop(unsafe { OwnedSchema::take(parent.as_mut_ptr()) }.unwrap());
        assert_eq!(parent.try_clone().unwrap_err(), error);
    }
}

/// C33: a schema exported here may be copied and released there, parts of it at once.
#[test]
fn schemas_on_other_threads() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let mut schema = full();
        let list = schema.take_child(1).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || assert_same(list.view().unwrap(), full().view().unwrap().child(1).unwrap()));
            scope.spawn(move || drop(schema));
        });
    }
}
