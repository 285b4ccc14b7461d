//! One array of every layout of the format: four elements, the second of them null where the layout has a bitmap.

use super::{Bytes, Tree};

const LENGTH: i64 = 4;

fn bytes<T: Copy, const N: usize>(values: &[T], encode: fn(T) -> [u8; N]) -> Bytes {
    Some(values.iter().flat_map(|value| encode(*value)).collect())
}

fn i32s(values: &[i32]) -> Bytes {
    bytes(values, i32::to_ne_bytes)
}

fn i64s(values: &[i64]) -> Bytes {
    bytes(values, i64::to_ne_bytes)
}

fn validity() -> Bytes {
    Some(vec![0b1101])
}

/// A tree of one node.
pub fn leaf(format: &str, length: i64, buffers: impl Into<Vec<Bytes>>) -> Tree {
    Tree {
        format: format.to_owned(),
        length,
        null_count: 0,
        offset: 0,
        buffers: buffers.into(),
        children: Vec::new(),
        dictionary: None,
    }
}

fn one_null(format: &str, buffers: impl Into<Vec<Bytes>>) -> Tree {
    Tree { null_count: 1, ..leaf(format, LENGTH, buffers) }
}

fn with_children(tree: Tree, children: impl Into<Vec<Tree>>) -> Tree {
    Tree { children: children.into(), ..tree }
}

/// Values of this many bytes each, all different.
fn fixed(format: &str, length: i64, width: i64) -> Tree {
    leaf(format, length, [None, Some((0..length * width).map(|byte| byte as u8).collect())])
}

fn int32() -> Tree {
    fixed("i", LENGTH, 4)
}

fn utf8() -> Tree {
    leaf("u", LENGTH, [None, i32s(&[0, 1, 1, 3, 6]), Some(b"abcdef".to_vec())])
}

/// A struct without nulls.
pub fn structure(length: i64, children: impl Into<Vec<Tree>>) -> Tree {
    with_children(leaf("+s", length, [None]), children)
}

/// An array of indices into `values`.
pub fn dictionary(values: Tree) -> Tree {
    Tree { dictionary: Some(Box::new(values)), ..leaf("i", LENGTH, [None, i32s(&[0, 1, 0, 1])]) }
}

fn view_array(format: &str, data: &[&[u8]]) -> Tree {
    let mut views = Vec::new();
    for index in 0..LENGTH {
        match data.get(index as usize) {
            Some(data) => {
                let numbers = [data.len() as i32, index as i32, 0].map(i32::to_ne_bytes);
                views.extend([numbers[0], data[..4].try_into().unwrap(), numbers[1], numbers[2]].concat());
            }
            None => views.extend([&1i32.to_ne_bytes()[..], b"z", &[0; 11]].concat()),
        }
    }
    let sizes: Vec<_> = data.iter().map(|data| data.len() as i64).collect();
    let mut buffers = vec![validity(), Some(views)];
    buffers.extend(data.iter().map(|data| Some(data.to_vec())));
    buffers.push(if sizes.is_empty() { None } else { i64s(&sizes) });
    one_null(format, buffers)
}

fn primitives() -> impl Iterator<Item = Tree> {
    let widths = [
        ("c", 1),
        ("C", 1),
        ("s", 2),
        ("S", 2),
        ("i", 4),
        ("I", 4),
        ("l", 8),
        ("L", 8),
        ("e", 2),
        ("f", 4),
        ("g", 8),
        ("d:9,2,32", 4),
        ("d:18,2,64", 8),
        ("d:38,10", 16),
        ("d:76,0,256", 32),
        ("w:5", 5),
        ("tdD", 4),
        ("tdm", 8),
        ("tts", 4),
        ("ttn", 8),
        ("tss:", 8),
        ("tsu:Europe/Paris", 8),
        ("tDm", 8),
        ("tiM", 4),
        ("tiD", 8),
        ("tin", 16),
    ];
    widths.into_iter().map(|(format, width)| {
        let mut tree = Tree { null_count: 1, ..fixed(format, LENGTH, width) };
        tree.buffers[0] = validity();
        tree
    })
}

fn variable() -> [Tree; 10] {
    let small = || [validity(), i32s(&[0, 1, 1, 3, 6]), Some(b"abcdef".to_vec())];
    let large = || [validity(), i64s(&[0, 1, 1, 3, 6]), Some(b"abcdef".to_vec())];
    let data: [&[u8]; 3] = [b"sixteen bytes...", b"thirteen byte", b"and even more than these"];
    [
        one_null("z", small()),
        one_null("u", small()),
        one_null("Z", large()),
        one_null("U", large()),
        view_array("vz", &data),
        view_array("vu", &data),
        view_array("vz", &data[..1]),
        view_array("vu", &[]),
        leaf("n", LENGTH, []),
        one_null("b", [validity(), Some(vec![0b1010])]),
    ]
}

fn nested() -> [Tree; 9] {
    let list = |format, buffers: &[Bytes], child| {
        with_children(one_null(format, [&[validity()], buffers].concat()), [child])
    };
    let entries = structure(LENGTH, [utf8(), int32()]);
    let type_ids = || Some(vec![5, 9, 5, 9]);
    [
        list("+l", &[i32s(&[0, 2, 2, 3, 4])], int32()),
        list("+L", &[i64s(&[0, 2, 2, 3, 4])], utf8()),
        list("+vl", &[i32s(&[2, 0, 0, 3]), i32s(&[2, 0, 2, 1])], int32()),
        list("+vL", &[i64s(&[2, 0, 0, 3]), i64s(&[2, 0, 2, 1])], int32()),
        list("+w:2", &[], fixed("s", 2 * LENGTH, 2)),
        list("+m", &[i32s(&[0, 2, 2, 3, 4])], entries),
        with_children(
            leaf("+ud:5,9", LENGTH, [type_ids(), i32s(&[0, 0, 1, 1])]),
            [fixed("l", 2, 8), fixed("s", 2, 2)],
        ),
        with_children(leaf("+us:5,9", LENGTH, [type_ids()]), [int32(), utf8()]),
        with_children(leaf("+r", LENGTH, []), [leaf("i", 3, [None, i32s(&[1, 3, 4])]), fixed("l", 3, 8)]),
    ]
}

fn deep() -> Tree {
    let list =
        with_children(leaf("+l", LENGTH, [None, i32s(&[0, 2, 2, 3, 4])]), [dictionary(dictionary(utf8()))]);
    let [.., map, dense, _, run_end] = nested();
    structure(LENGTH, [list, structure(LENGTH, [map, dense]), structure(LENGTH, []), run_end])
}

/// An array of every layout, and some that hold others.
pub fn layouts() -> Vec<Tree> {
    let mut null = leaf("n", LENGTH, []);
    null.null_count = LENGTH;
    let mut all: Vec<_> = primitives().chain(variable()).chain(nested()).collect();
    all.extend([null, structure(LENGTH, [int32(), utf8()]), dictionary(utf8()), deep()]);
    all
}

/// The same type without elements, each buffer being `buffer` (B7).
pub fn without_contents(tree: &Tree, buffer: &Bytes) -> Tree {
    let empty = |tree: &Tree| without_contents(tree, buffer);
    Tree {
        format: tree.format.clone(),
        length: 0,
        null_count: 0,
        offset: 0,
        buffers: vec![buffer.clone(); tree.buffers.len()],
        children: tree.children.iter().map(empty).collect(),
        dictionary: tree.dictionary.as_deref().map(|dictionary| Box::new(empty(dictionary))),
    }
}
