//! Checking what buffers hold: each kind of fault where it is, with what was found and what was wanted.

mod arrays;
mod common;
mod export;

use arrow_device_abi::Limits;

use arrays::contents::{bits, integers};
use common::Counter;
use export::{Bytes, Tree, dictionary, leaf, structure};

fn i32s(values: &[i32]) -> Bytes {
    integers("i", values.iter().map(|value| (*value).into()))
}

fn i64s(values: &[i64]) -> Bytes {
    integers("l", values.iter().map(|value| (*value).into()))
}

fn found(tree: &Tree) -> Result<(), String> {
    let (schema, array) = (tree.schema(), tree.export(&Counter::new()));
    let schema = schema.view().unwrap();
    assert_eq!(array.validate(schema, &Limits::DEFAULT), Ok(()), "{tree:?}");
    // SAFETY: the schema is the array's own.
    unsafe { array.validate_contents(schema, &Limits::DEFAULT) }.map_err(|invalid| invalid.to_string())
}

fn fault(tree: &Tree) -> String {
    found(tree).unwrap_err()
}

fn node(format: &str, length: i64, buffers: impl Into<Vec<Bytes>>, children: impl Into<Vec<Tree>>) -> Tree {
    Tree { children: children.into(), ..leaf(format, length, buffers) }
}

fn ints(values: &[i32]) -> Tree {
    leaf("i", values.len() as i64, [None, i32s(values)])
}

/// B8, C23: the null count is that of the bitmap within offset and length, or unknown.
#[test]
fn null_counts() {
    let of = |null_count, offset, length| Tree {
        null_count,
        offset,
        buffers: vec![Some(vec![0b1010_0110, 0b0000_0001]), i32s(&[0; 16])],
        ..leaf("i", length, [])
    };
    assert_eq!(found(&of(-1, 0, 9)), Ok(()));
    assert_eq!(found(&of(4, 0, 9)), Ok(()));
    assert_eq!(found(&of(3, 1, 8)), Ok(()));
    assert_eq!(found(&of(1, 3, 3)), Err("root: null_count is 1, wanted 2".into()));
    assert_eq!(found(&of(7, 8, 8)), Ok(()));
    assert_eq!(found(&of(0, 9, 1)), Err("root: null_count is 0, wanted 1".into()));
    let long: Vec<bool> = (0..200).map(|bit| bit % 3 == 0).collect();
    for (offset, length) in [(0, 200), (1, 150), (63, 66), (64, 64), (7, 2), (8, 129)] {
        let nulls = long[offset..offset + length].iter().filter(|bit| !**bit).count() as i64;
        let of = |null_count| Tree {
            null_count,
            offset: offset as i64,
            ..leaf("c", length as i64, [bits(&long), Some(vec![0; 200])])
        };
        assert_eq!(found(&of(nulls)), Ok(()));
        assert_eq!(fault(&of(nulls - 1)), format!("root: null_count is {}, wanted {nulls}", nulls - 1));
    }
    let null = |null_count| Tree { null_count, ..leaf("n", 3, []) };
    assert_eq!([3, -1].map(|nulls| found(&null(nulls))), [Ok(()), Ok(())]);
    assert_eq!(fault(&null(2)), "root: null_count is 2, wanted 3");
    // The keys of a map may not be null, counted or not: of this type there can be none.
    let entries = Tree { children: vec![null(-1), null(-1)], ..leaf("+s", 3, [None]) };
    let map = Tree { children: vec![entries], ..leaf("+m", 1, [None, i32s(&[0, 3])]) };
    let found = fault(&map);
    assert!(found.ends_with("null_count is 3, wanted 0"), "{found}");
}

/// B7: offsets ascend, from 0 or more, and stay inside what they are offsets into.
#[test]
fn offsets() {
    let text = |offsets: &[i32]| {
        let length = offsets.len() as i64 - 1;
        leaf("u", length, [None, i32s(offsets), Some(b"abcdef".to_vec())])
    };
    assert_eq!(found(&text(&[2, 2, 3, 6])), Ok(()));
    assert_eq!(
        fault(&text(&[-1, 2])),
        format!("root: offset of element 0 is -1, wanted 0 to {}", isize::MAX)
    );
    assert_eq!(
        fault(&text(&[0, 4, 3, 6])),
        format!("root: offset of element 2 is 3, wanted 4 to {}", isize::MAX)
    );
    // What stands before the array's own offset is nobody's.
    assert_eq!(found(&Tree { offset: 1, length: 2, ..text(&[9, 1, 3, 6]) }), Ok(()));
    let none = Tree { buffers: vec![None, i32s(&[0, 0, 0]), None], ..text(&[0, 0, 0]) };
    assert_eq!(found(&none), Ok(()));
    let missing = Tree { buffers: vec![None, i32s(&[0, 2]), None], ..text(&[0, 2]) };
    assert_eq!(fault(&missing), "root: buffer 2 is null, wanted 2 bytes");

    let list = |format, offsets: Bytes| node(format, 2, [None, offsets], [ints(&[1, 2, 3])]);
    assert_eq!(found(&list("+l", i32s(&[0, 1, 3]))), Ok(()));
    assert_eq!(fault(&list("+l", i32s(&[0, 1, 4]))), "root: offset of element 2 is 4, wanted 0 to 3");
    assert_eq!(fault(&list("+L", i64s(&[1, 0, 3]))), "root: offset of element 1 is 0, wanted 1 to 3");
    let max = i64::MAX;
    assert_eq!(
        fault(&list("+L", i64s(&[1, 2, max]))),
        format!("root: offset of element 2 is {max}, wanted 1 to 3")
    );
}

/// Text is UTF-8, each element by itself; what a null hides is not looked at.
#[test]
fn texts() {
    let word = "aøb".as_bytes();
    let text = |ends: &[i32], validity: Bytes, data: &[u8]| Tree {
        null_count: -1,
        ..leaf("u", ends.len() as i64 - 1, [validity, i32s(ends), Some(data.to_vec())])
    };
    assert_eq!(found(&text(&[0, 1, 3, 4], None, word)), Ok(()));
    assert_eq!(fault(&text(&[0, 2, 4], None, word)), "root: element 0 is not UTF-8");
    assert_eq!(fault(&text(&[0, 1, 3, 4], None, b"a\xFF\xFEb")), "root: element 1 is not UTF-8");
    assert_eq!(found(&text(&[0, 1, 3, 4], bits(&[true, false, true]), b"a\xFF\xFEb")), Ok(()));
    assert_eq!(fault(&text(&[2, 3, 4], None, word)), "root: element 0 is not UTF-8");
    assert_eq!(found(&Tree { format: "z".into(), ..text(&[0, 2, 4], None, word) }), Ok(()));
    let large = |format| leaf(format, 1, [None, i64s(&[0, 1]), Some(vec![0xFF])]);
    assert_eq!(fault(&large("U")), "root: element 0 is not UTF-8");
    assert_eq!(found(&large("Z")), Ok(()));
}

fn view(words: [i32; 4]) -> Vec<u8> {
    words.map(i32::to_ne_bytes).concat()
}

/// C25: views are of what is there.
#[test]
fn views() {
    let data = b"thirteen byte and more".to_vec();
    let prefix = i32::from_ne_bytes(*b"thir");
    let of = |format: &str, views: Vec<u8>, data: &[&[u8]], sizes: &[i64], validity| {
        let mut buffers = vec![validity, Some(views)];
        buffers.extend(data.iter().map(|data| Some(data.to_vec())));
        buffers.push(i64s(sizes));
        Tree { null_count: -1, ..leaf(format, 1, buffers) }
    };
    let one = |words| of("vu", view(words), &[&data], &[22], None);
    assert_eq!(found(&one([13, prefix, 0, 0])), Ok(()));
    assert_eq!(found(&one([0, 0, 0, 0])), Ok(()));
    let size = i32::MAX;
    assert_eq!(
        fault(&one([-1, 0, 0, 0])),
        format!("root: size of the view of element 0 is -1, wanted 0 to {size}")
    );
    assert_eq!(
        fault(&one([3, i32::from_ne_bytes(*b"abcd"), 0, 0])),
        "root: the view of element 0 is not filled up with zeros"
    );
    assert_eq!(
        fault(&one([13, prefix, 1, 0])),
        "root: data buffer of the view of element 0 is 1, wanted 0 to 0"
    );
    assert_eq!(
        fault(&one([13, prefix, -1, 0])),
        "root: data buffer of the view of element 0 is -1, wanted 0 to 0"
    );
    assert_eq!(
        fault(&one([13, prefix, 0, 10])),
        "root: offset of the view of element 0 is 10, wanted 0 to 9"
    );
    assert_eq!(
        fault(&one([13, prefix, 0, -1])),
        "root: offset of the view of element 0 is -1, wanted 0 to 9"
    );
    assert_eq!(
        fault(&one([23, prefix, 0, 0])),
        "root: offset of the view of element 0 is 0, and none can be right"
    );
    assert_eq!(fault(&one([13, prefix, 0, 1])), "root: the view of element 0 begins otherwise than its data");
    assert_eq!(fault(&one([1, 0xFF_i32.to_le(), 0, 0])), "root: element 0 is not UTF-8");
    let binary = |words, validity| of("vz", view(words), &[&data], &[22], validity);
    assert_eq!(found(&binary([1, 0xFF_i32.to_le(), 0, 0], None)), Ok(()));
    assert_eq!(found(&binary([-1, 0, 0, 0], bits(&[false]))), Ok(()));
    let none = of("vu", view([13, 0, 0, 0]), &[], &[], None);
    assert_eq!(fault(&none), "root: data buffer of the view of element 0 is 0, and none can be right");
    let negative = of("vu", view([0; 4]), &[&data], &[-1], None);
    assert_eq!(
        fault(&negative),
        format!("root: size of the data buffer of element 0 is -1, wanted 0 to {}", isize::MAX)
    );
    let mut missing = of("vz", view([0; 4]), &[&[], &data], &[0, 22], None);
    missing.buffers[2] = None;
    assert_eq!(found(&missing), Ok(()));
    missing.buffers[3] = None;
    assert_eq!(fault(&missing), "root: buffer 3 is null, wanted 22 bytes");
}

/// Unions: ids of their children; offsets of dense ones within these, and never back.
#[test]
fn unions() {
    let ids = |ids: &[i128]| integers("c", ids.iter().copied());
    let sparse = |all: &[i128]| node("+us:5,9", 2, [ids(all)], [ints(&[1, 2]), ints(&[3, 4])]);
    assert_eq!(found(&sparse(&[9, 5])), Ok(()));
    assert_eq!(fault(&sparse(&[9, 1])), "root: type id of element 1 is 1, which the union has not");
    assert_eq!(fault(&sparse(&[-1, 9])), "root: type id of element 0 is -1, which the union has not");
    let dense = |offsets: &[i32]| {
        node("+ud:5,9", 3, [ids(&[5, 9, 5]), i32s(offsets)], [ints(&[1, 2]), ints(&[3, 4, 5])])
    };
    assert_eq!(found(&dense(&[0, 2, 1])), Ok(()));
    assert_eq!(found(&dense(&[1, 0, 1])), Ok(()));
    assert_eq!(fault(&dense(&[0, 3, 1])), "root: offset of element 1 is 3, wanted 0 to 2");
    assert_eq!(fault(&dense(&[0, 0, 2])), "root: offset of element 2 is 2, wanted 0 to 1");
    assert_eq!(fault(&dense(&[1, 0, 0])), "root: offset of element 2 is 0, wanted 1 to 1");
    assert_eq!(fault(&dense(&[-1, 0, 0])), "root: offset of element 0 is -1, wanted 0 to 1");
}

/// Run ends ascend from 1, and reach the end of the array with its offset.
#[test]
fn run_ends() {
    let runs = |offset, ends: Tree| Tree { offset, ..node("+r", 4, [], [ends, ints(&[7, 8, 9])]) };
    assert_eq!(found(&runs(0, ints(&[1, 3, 4]))), Ok(()));
    assert_eq!(found(&runs(5, ints(&[1, 3, 90]))), Ok(()));
    assert_eq!(
        fault(&runs(1, ints(&[1, 3, 4]))),
        format!("root[0]: run end of element 2 is 4, wanted 5 to {}", i32::MAX)
    );
    assert_eq!(
        fault(&runs(0, ints(&[1, 1, 4]))),
        format!("root[0]: run end of element 1 is 1, wanted 2 to {}", i32::MAX)
    );
    assert_eq!(
        fault(&runs(0, ints(&[0, 1, 4]))),
        format!("root[0]: run end of element 0 is 0, wanted 1 to {}", i32::MAX)
    );
    let short = leaf("s", 2, [None, integers("s", [-3, 9])]);
    assert_eq!(
        fault(&runs(0, short)),
        format!("root[0]: run end of element 0 is -3, wanted 1 to {}", i16::MAX)
    );
    let hidden = Tree { null_count: -1, buffers: vec![bits(&[true, false]), i32s(&[1, 4])], ..ints(&[1, 4]) };
    assert_eq!(fault(&runs(0, hidden)), "root[0]: null_count is 1, wanted 0");
    assert_eq!(found(&Tree { length: 0, ..runs(0, ints(&[])) }), Ok(()));
}

/// Dictionary indices are those of values, but for nulls; entries and keys of maps are no nulls.
#[test]
fn dictionaries_and_maps() {
    let two = || Tree { length: 2, ..ints(&[4, 5]) };
    let encoded = |format: &str, indices: &[i128], validity: Bytes| Tree {
        null_count: -1,
        buffers: vec![validity, integers(format, indices.iter().copied())],
        dictionary: Some(Box::new(two())),
        ..leaf(format, indices.len() as i64, [])
    };
    for format in arrays::INTEGERS {
        assert_eq!(found(&encoded(format, &[1, 0], None)), Ok(()));
        let beyond = "root: dictionary index of element 1 is 2, wanted 0 to 1";
        assert_eq!(fault(&encoded(format, &[1, 2], None)), beyond);
        assert_eq!(found(&encoded(format, &[1, 2], bits(&[true, false]))), Ok(()));
    }
    let negative = |found| format!("root: dictionary index of element 0 is {found}, wanted 0 to 1");
    assert_eq!(fault(&encoded("s", &[-1], None)), negative(-1));
    assert_eq!(fault(&encoded("S", &[-1], None)), negative(i128::from(u16::MAX)));
    assert_eq!(fault(&encoded("L", &[-1], None)), negative(i128::from(u64::MAX)));
    let mut deep = structure(4, [dictionary(dictionary(ints(&[1, 2])))]);
    deep.children[0].dictionary.as_mut().unwrap().buffers[1] = i32s(&[0, 1, 2, 1]);
    assert_eq!(fault(&deep), "root[0].dictionary: dictionary index of element 2 is 2, wanted 0 to 1");

    let map = |entries: Bytes, keys: Bytes| {
        let keys = Tree { null_count: -1, buffers: vec![keys, i32s(&[1, 2])], ..ints(&[1, 2]) };
        let entries = Tree { null_count: -1, buffers: vec![entries], ..structure(2, [keys, ints(&[3, 4])]) };
        node("+m", 1, [None, i32s(&[0, 2])], [entries])
    };
    let hidden = || bits(&[true, false]);
    assert_eq!(found(&map(bits(&[true, true]), None)), Ok(()));
    assert_eq!(fault(&map(hidden(), None)), "root[0]: null_count is 1, wanted 0");
    assert_eq!(fault(&map(None, hidden())), "root[0][0]: null_count is 1, wanted 0");
}

/// List views are within their child, null or not.
#[test]
fn list_views() {
    let of = |starts: &[i32], sizes: &[i32], validity: Bytes| {
        let length = starts.len() as i64;
        let list = node("+vl", length, [validity, i32s(starts), i32s(sizes)], [ints(&[1, 2, 3])]);
        Tree { null_count: -1, ..list }
    };
    assert_eq!(found(&of(&[3, 0, 1], &[0, 3, 1], None)), Ok(()));
    assert_eq!(fault(&of(&[4], &[0], None)), "root: offset of element 0 is 4, wanted 0 to 3");
    assert_eq!(fault(&of(&[0, -1], &[0, 0], None)), "root: offset of element 1 is -1, wanted 0 to 3");
    assert_eq!(fault(&of(&[2], &[2], None)), "root: size of element 0 is 2, wanted 0 to 1");
    assert_eq!(fault(&of(&[2], &[-1], bits(&[false]))), "root: size of element 0 is -1, wanted 0 to 1");
}

/// C27: buffers stand at any address.
#[test]
fn unaligned_buffers() {
    for tree in export::layouts() {
        if tree.format == "n" && tree.null_count == 0 {
            continue;
        }
        for at in [1, 2, 3] {
            let dropped = Counter::new();
            let mut kept = Vec::new();
            let placed = tree.map(&mut |bytes: &Bytes| match bytes {
                None => core::ptr::null(),
                Some(bytes) => {
                    let moved = [&vec![0xAA; at][..], bytes].concat().into_boxed_slice();
                    kept.push(moved);
                    let moved = kept.last().unwrap();
                    moved.as_ptr().wrapping_add(at).cast()
                }
            });
            let schema = tree.schema();
            // SAFETY: the buffers are those of the tree, and live as long as they are kept.
            let array = placed.with_node(|node| unsafe { node.export((kept, dropped)) }).unwrap();
            // SAFETY: the schema is the array's own.
            let valid = unsafe { array.validate_contents(schema.view().unwrap(), &Limits::DEFAULT) };
            assert_eq!(valid, Ok(()), "{tree:?}");
        }
    }
}
