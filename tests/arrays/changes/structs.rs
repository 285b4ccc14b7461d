//! Changes of what the array's structs say.

use core::ffi::c_void;
use core::ptr;

use arrow_device_abi::raw::ArrowArray;

use super::Breaks::{Contents, Nothing, Structure};
use super::{Apply, Breaks, Change};
use crate::export::Tree;

const fn array(
    name: &'static str,
    breaks: Breaks,
    when: fn(&Tree) -> bool,
    then: fn(&mut ArrowArray, &Tree),
) -> Change {
    Change { name, breaks, apply: Apply::Array(when, then) }
}

pub const ALL: &[Change] = &[
    array(
        "unknown null count without a bitmap (C24)",
        Nothing,
        |tree| has_bitmap(tree) && tree.buffers[0].is_none(),
        |raw, _| raw.null_count = -1,
    ),
    array("no buffers without elements (C7)", Nothing, is_empty, |raw, _| set_all(raw, ptr::null())),
    array(
        "pointers to nothing without elements (B7)",
        Nothing,
        |tree| is_empty(tree) && tree.buffers.len() == 2 && tree.children.is_empty(),
        |raw, _| set_all(raw, ptr::dangling()),
    ),
    array(
        "unaligned values (C27)",
        Nothing,
        |tree| {
            matches!(tree.format.as_str(), "g" | "d:30,4" | "tss:" | "tin") && tree.offset + tree.length < 40
        },
        |raw, _| set(raw, 1, ZEROS.0.as_ptr().wrapping_add(1).cast()),
    ),
    array("negative length", Structure, any, |raw, _| raw.length = -1),
    array("negative offset", Structure, any, |raw, _| raw.offset = -1),
    array("offset beyond all numbers", Structure, has_elements, |raw, _| raw.offset = i64::MAX),
    array("null count of -2", Structure, any, |raw, _| raw.null_count = -2),
    array(
        "more nulls than elements",
        Structure,
        |tree| has_bitmap(tree) && tree.buffers[0].is_some(),
        |raw, tree| raw.null_count = tree.length + 1,
    ),
    array(
        "nulls without a bitmap",
        Structure,
        |tree| has_bitmap(tree) && tree.buffers[0].is_none() && has_elements(tree),
        |raw, _| raw.null_count = 1,
    ),
    array(
        "nulls in a union",
        Structure,
        |tree| tree.format.starts_with("+u") && has_elements(tree),
        |raw, _| raw.null_count = 1,
    ),
    array(
        "nulls in a run-end encoded array",
        Structure,
        |tree| tree.format == "+r" && has_elements(tree),
        |raw, _| raw.null_count = 1,
    ),
    array(
        "a buffer less",
        Structure,
        |tree| has_buffers(tree) && !has_data_buffers(tree),
        |raw, _| raw.n_buffers -= 1,
    ),
    array(
        "a buffer where there are none",
        Structure,
        |tree| tree.buffers.is_empty(),
        |raw, _| (raw.n_buffers, raw.buffers) = (1, NOTHING.0.as_ptr().cast_mut()),
    ),
    array("no buffer pointers", Structure, has_buffers, |raw, _| raw.buffers = ptr::null_mut()),
    array(
        "a buffer that is null",
        Structure,
        |tree| has_elements(tree) && has_bytes(tree, usize::from(has_bitmap(tree))),
        |raw, tree| set(raw, usize::from(has_bitmap(tree)), ptr::null()),
    ),
    array(
        "sizes of a list view that are null",
        Structure,
        |tree| tree.format.starts_with("+v") && has_elements(tree),
        |raw, _| set(raw, 2, ptr::null()),
    ),
    array(
        "offsets of a dense union that are null",
        Structure,
        |tree| tree.format.starts_with("+ud") && has_elements(tree),
        |raw, _| set(raw, 1, ptr::null()),
    ),
    array(
        "sizes of data buffers that are null",
        Structure,
        |tree| has_data_buffers(tree) && has_elements(tree),
        |raw, tree| set(raw, tree.buffers.len() - 1, ptr::null()),
    ),
    array(
        "data that is null",
        Contents,
        |tree| {
            matches!(tree.format.as_str(), "z" | "u" | "Z" | "U") && has_elements(tree) && has_bytes(tree, 2)
        },
        |raw, _| set(raw, 2, ptr::null()),
    ),
    array(
        "a data buffer that is null",
        Contents,
        |tree| has_data_buffers(tree) && has_elements(tree) && has_bytes(tree, 2),
        |raw, _| set(raw, 2, ptr::null()),
    ),
    array("a child less", Structure, has_children, |raw, _| raw.n_children -= 1),
    array("no child pointers", Structure, has_children, |raw, _| raw.children = ptr::null_mut()),
    array("a child that is null", Structure, has_children, |raw, _| set_child(raw, ptr::null_mut())),
    array("a child that is released", Structure, has_children, |raw, _| {
        set_child(raw, (&raw const RELEASED.0).cast_mut());
    }),
    array(
        "no dictionary",
        Structure,
        |tree| tree.dictionary.is_some(),
        |raw, _| raw.dictionary = ptr::null_mut(),
    ),
    array(
        "a dictionary where there is none",
        Structure,
        |tree| has_children(tree) && tree.dictionary.is_none(),
        // SAFETY: a live array has as many children as its tree.
        |raw, _| raw.dictionary = unsafe { *raw.children },
    ),
];

pub fn has_bitmap(tree: &Tree) -> bool {
    !matches!(tree.format.as_str(), "n" | "+r") && !tree.format.starts_with("+u")
}

pub fn has_elements(tree: &Tree) -> bool {
    tree.length > 0
}

/// Whether it is a view array with data buffers.
pub fn has_data_buffers(tree: &Tree) -> bool {
    tree.format.starts_with('v') && tree.buffers.len() > 3
}

fn has_bytes(tree: &Tree, buffer: usize) -> bool {
    tree.buffers.get(buffer).is_some_and(|bytes| bytes.as_ref().is_some_and(|bytes| !bytes.is_empty()))
}

fn any(_: &Tree) -> bool {
    true
}

fn has_buffers(tree: &Tree) -> bool {
    !tree.buffers.is_empty()
}

fn has_children(tree: &Tree) -> bool {
    !tree.children.is_empty()
}

fn is_empty(tree: &Tree) -> bool {
    tree.length == 0 && tree.offset == 0 && has_buffers(tree)
}

/// What is shared and only read.
struct Shared<T>(T);

// SAFETY: nobody writes to it, and the pointers in it are null.
unsafe impl<T> Sync for Shared<T> {}

static NOTHING: Shared<[*const c_void; 1]> = Shared([ptr::null()]);
static RELEASED: Shared<ArrowArray> = Shared(ArrowArray::released());
static ZEROS: Shared<[u8; 1024]> = Shared([0; 1024]);

fn set(raw: &mut ArrowArray, index: usize, buffer: *const c_void) {
    assert!((index as i64) < raw.n_buffers);
    // SAFETY: a live array has as many buffers as it says.
    unsafe { raw.buffers.add(index).write(buffer) };
}

fn set_all(raw: &mut ArrowArray, buffer: *const c_void) {
    (0..raw.n_buffers as usize).for_each(|index| set(raw, index, buffer));
}

fn set_child(raw: &mut ArrowArray, child: *mut ArrowArray) {
    // SAFETY: a live array has as many children as it says, and this one has some.
    unsafe { raw.children.write(child) };
}
