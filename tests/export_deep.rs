//! Trees as deep or as wide as nobody makes them. Anything recursive would overflow these threads' stacks; anything
//! that takes time in the square of the size would not end.

mod common;
mod export;

use core::ffi::c_void;
use core::{ptr, slice};
use std::{env, mem, thread};

use arrow_device_abi::{ArrayNode, ExportErrorKind, OwnedArray, OwnedSchema, SchemaNode};

use common::Counter;
use export::{Keep, with_array_chain, with_schema_chain};

const WIDTH: usize = if cfg!(miri) { 300 } else { 100_000 };

/// Valgrind is slow, and gives programs little address space. Any recursion would overflow there too.
fn under_valgrind() -> bool {
    env::var("LD_PRELOAD").is_ok_and(|libraries| libraries.contains("vgpreload"))
}

fn depth() -> usize {
    if cfg!(miri) {
        300
    } else if under_valgrind() {
        50_000
    } else {
        1_000_000
    }
}

fn on_a_small_stack(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(256 * 1024);
        thread.spawn_scoped(scope, test).unwrap().join().unwrap();
    });
}

fn only_child<'a>(below: &'a ArrayNode<'a>) -> ArrayNode<'a> {
    ArrayNode { children: slice::from_ref(below), ..ArrayNode::default() }
}

fn only_child_of_a_struct<'a>(below: &'a ArrayNode<'a>) -> ArrayNode<'a> {
    ArrayNode { buffers: &[ptr::null()], ..only_child(below) }
}

fn only_dictionary<'a>(below: &'a ArrayNode<'a>) -> ArrayNode<'a> {
    ArrayNode { dictionary: Some(below), ..ArrayNode::default() }
}

fn only_field<'a>(below: &'a SchemaNode<'a>) -> SchemaNode<'a> {
    SchemaNode { format: "+s", name: Some("x"), children: slice::from_ref(below), ..SchemaNode::default() }
}

fn array_chain(dropped: &Counter) -> OwnedArray {
    // SAFETY: the null layout and structs of nothing have no buffers.
    with_array_chain(depth(), only_child, |node| unsafe { node.export(Keep::counted(dropped)) }).unwrap()
}

fn array_depth(array: &OwnedArray) -> usize {
    let mut view = array.view().unwrap();
    let mut levels = 1;
    while view.n_children() == 1 {
        view = view.child(0).unwrap();
        levels += 1;
    }
    levels
}

fn schema_depth(schema: &OwnedSchema) -> usize {
    let mut view = schema.view().unwrap();
    let mut levels = 1;
    while view.n_children() == 1 {
        assert_eq!((view.format(), view.name()), (Ok("+s"), Ok(Some("x"))));
        view = view.child(0).unwrap();
        levels += 1;
    }
    assert_eq!((view.format(), view.name()), (Ok("n"), Ok(None)));
    levels
}

/// B4: exported and released whole.
#[test]
fn a_deep_array() {
    on_a_small_stack(|| {
        let dropped = Counter::new();
        let array = array_chain(&dropped);
        assert_eq!(array_depth(&array), depth());
        assert_eq!(dropped.get(), 0);
        drop(array);
        assert_eq!(dropped.get(), 1);
    });
}

/// B4, B5: each level moved out of the one above, which is released at once.
#[test]
fn a_deep_array_level_by_level() {
    on_a_small_stack(|| {
        let dropped = Counter::new();
        let mut array = array_chain(&dropped);
        for _ in 1..depth() {
            let child = array.take_child(0).unwrap();
            drop(mem::replace(&mut array, child));
            assert_eq!(dropped.get(), 0);
        }
        assert_eq!(array.view().unwrap().n_children(), 0);
        drop(array);
        assert_eq!(dropped.get(), 1);
    });
}

/// B4, B5: each level moved out of the one above, and all released from the bottom up.
#[test]
fn a_deep_array_from_the_bottom_up() {
    on_a_small_stack(|| {
        let dropped = Counter::new();
        let mut levels = vec![array_chain(&dropped)];
        while let Ok(child) = levels.last_mut().unwrap().take_child(0) {
            levels.push(child);
        }
        assert_eq!(levels.len(), depth());
        while let Some(last) = levels.pop() {
            assert_eq!(dropped.get(), 0);
            drop(last);
        }
        assert_eq!(dropped.get(), 1);
    });
}

/// B4: dictionaries of dictionaries are as deep.
#[test]
fn deep_dictionaries() {
    on_a_small_stack(|| {
        let dropped = Counter::new();
        let keep = Keep::counted(&dropped);
        // SAFETY: the null layout has no buffers.
        let array = with_array_chain(depth(), only_dictionary, |node| unsafe { node.export(keep) }).unwrap();
        let (mut view, mut levels) = (array.view().unwrap(), 1);
        while let Some(dictionary) = view.dictionary().unwrap() {
            (view, levels) = (dictionary, levels + 1);
        }
        assert_eq!(levels, depth());
        drop(array);
        assert_eq!(dropped.get(), 1);
    });
}

/// C28: what is wrong at the bottom is found, and the keep-alive comes back.
#[test]
fn a_fault_at_the_bottom() {
    fn above_a_fault<'a>(below: &'a ArrayNode<'a>) -> ArrayNode<'a> {
        let length = if below.children.is_empty() { -1 } else { 0 };
        ArrayNode { length, ..only_child(below) }
    }
    on_a_small_stack(|| {
        let dropped = Counter::new();
        with_array_chain(depth(), above_a_fault, |node| {
            // SAFETY: nothing is made.
            let error = unsafe { node.export(Keep::counted(&dropped)) }.unwrap_err();
            assert_eq!(error.kind, ExportErrorKind::Length { length: -1, offset: 0 });
            assert_eq!(dropped.get(), 0);
        });
        assert_eq!(dropped.get(), 1);
    });
}

/// B4: exported, compared with an array, copied, and released whole.
#[test]
fn a_deep_schema() {
    on_a_small_stack(|| {
        let schema = with_schema_chain(depth() / 10, only_field, |node| node.export()).unwrap();
        assert_eq!(schema_depth(&schema), depth() / 10);
        with_array_chain(depth() / 10, only_child, |node| {
            // A struct has a validity buffer, and these have none.
            assert_eq!(node.fits(schema.view().unwrap()), Err(ExportErrorKind::Buffers { found: 0 }));
        });
        with_array_chain(depth() / 10, only_child_of_a_struct, |node| {
            assert_eq!(node.fits(schema.view().unwrap()), Ok(()));
        });
        let copy = schema.try_clone().unwrap();
        drop(schema);
        assert_eq!(schema_depth(&copy), depth() / 10);
    });
}

/// B4, B5: many children, half of them moved out, and those released by two threads beside the parent.
#[test]
fn a_wide_array() {
    let dropped = Counter::new();
    let children: Vec<_> =
        (0..WIDTH).map(|index| ArrayNode { length: index as i64, ..ArrayNode::default() }).collect();
    let node = ArrayNode { children: &children, ..ArrayNode::default() };
    // SAFETY: the null layout and structs of nothing have no buffers.
    let mut array = unsafe { node.export(Keep::counted(&dropped)) }.unwrap();
    drop(children);
    let mut moved: Vec<_> =
        (0..WIDTH).step_by(2).map(|index| (index, array.take_child(index).unwrap())).collect();
    let rest = moved.split_off(WIDTH / 4);
    thread::scope(|scope| {
        for part in [moved, rest] {
            scope.spawn(move || {
                for (index, child) in part {
                    assert_eq!(child.view().unwrap().length(), index);
                }
            });
        }
        scope.spawn(move || {
            let view = array.view().unwrap();
            for index in (1..WIDTH).step_by(2) {
                assert_eq!(view.child(index).unwrap().length(), index);
            }
            drop(array);
        });
    });
    assert_eq!(dropped.get(), 1);
}

/// More pointers than the platform can address: many nodes that share one long list of buffers.
fn assert_too_many(buffers: &[*const c_void], leaves: usize, parents: usize) {
    let leaves = vec![ArrayNode { buffers, ..ArrayNode::default() }; leaves];
    let inner = vec![ArrayNode { children: &leaves, ..ArrayNode::default() }; parents];
    let node = ArrayNode { children: &inner, ..ArrayNode::default() };
    let dropped = Counter::new();
    // SAFETY: nothing is made.
    let error = unsafe { node.export(Keep::counted(&dropped)) }.unwrap_err();
    assert_eq!((error.kind, dropped.get()), (ExportErrorKind::TooLarge, 0));
    drop(error);
    assert_eq!(dropped.get(), 1);
}

/// C28: what no block can hold is refused, and the keep-alive comes back.
#[cfg(target_pointer_width = "32")]
#[test]
fn too_many_buffers() {
    assert_too_many(&vec![ptr::null(); 1 << 24], 1 << 6, 1);
}

/// What only a large address space allows.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod huge {
    use super::*;
    use export::huge::Huge;

    /// C28: what no block can hold is refused, and the keep-alive comes back.
    #[test]
    fn too_many_buffers() {
        if under_valgrind() {
            return;
        }
        let pointers = Huge::new(1 << 40);
        // SAFETY: zeros are null pointers.
        assert_too_many(unsafe { pointers.as_slice() }, 1 << 12, 1 << 11);
    }

    /// B9: a text of metadata that is longer than an `int32_t` can say.
    #[test]
    fn too_long_metadata() {
        let bytes = Huge::new(1 << 31);
        // SAFETY: zeros are bytes.
        let long = unsafe { bytes.as_slice::<u8>() };
        for pair in [(long, &b"value"[..]), (&b"key"[..], long)] {
            let field = SchemaNode { metadata: &[(b"k", b"v"), pair], ..SchemaNode::default() };
            let node = SchemaNode { format: "+s", children: &[field], ..SchemaNode::default() };
            assert_eq!(node.export().unwrap_err(), ExportErrorKind::TooLarge);
        }
    }
}
