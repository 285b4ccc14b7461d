//! Trees taken apart by their consumer: nodes moved out and released in any order, anywhere (B4, B5, B6, C2).

mod common;
mod export;

use core::cell::{Cell, RefCell};
use core::ptr;
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, ThreadId};

use arrow_device_abi::{ArrayNode, OwnedArray, ViewError};

use common::Counter;
use export::{Held, Tree, descendants, dictionary, leaf, structure};

/// How often a test with threads is repeated, for their races to go many ways.
const ROUNDS: usize = if cfg!(miri) { 4 } else { 200 };

fn values(byte: u8) -> Tree {
    leaf("C", 2, [None, Some(vec![byte, byte])])
}

/// C2's tree: a struct of a dictionary-encoded array and of one more struct.
fn family() -> Tree {
    structure(2, [dictionary(values(1)), structure(2, [values(2)])])
}

/// Calls `f` with each order of the numbers below `n`.
fn for_each_order(n: usize, f: &mut dyn FnMut(&[usize])) {
    fn extend(order: &mut Vec<usize>, n: usize, f: &mut dyn FnMut(&[usize])) {
        if order.len() == n {
            return f(order);
        }
        for next in 0..n {
            if !order.contains(&next) {
                order.push(next);
                extend(order, n, f);
                order.pop();
            }
        }
    }
    extend(&mut Vec::new(), n, f);
}

/// Exports the tree and moves out the descendants that have a bit in `which`; the root comes first.
fn taken_apart<'a>(tree: &'a Tree, which: usize, dropped: &Counter) -> Vec<Held<'a>> {
    let root = Held::new(tree, tree.export(dropped).into_raw());
    let below = descendants(tree, &root.array);
    let moved = below.into_iter().enumerate().filter(|(index, _)| which >> index & 1 == 1);
    // SAFETY: each is a node of a live tree, used by nobody else and moved once.
    let moved = moved.map(|(_, (tree, node))| unsafe { Held::move_out(tree, node) });
    let mut held: Vec<_> = moved.collect();
    held.insert(0, root);
    held
}

/// B4, B5, B6, C2: every set of nodes of the family moved out, released in every order. What is not released yet
/// can be read, and the keep-alive goes with the last.
#[test]
fn every_set_of_nodes_in_every_order() {
    let tree = family();
    for which in 0..1 << (tree.count() - 1) {
        let nodes = 1 + (which as u32).count_ones() as usize;
        if cfg!(miri) && nodes > 4 {
            continue;
        }
        for_each_order(nodes, &mut |order| {
            let dropped = Counter::new();
            let mut held: Vec<_> = taken_apart(&tree, which, &dropped).into_iter().map(Some).collect();
            for &next in order {
                assert_eq!(dropped.get(), 0, "dropped with nodes left: {which:b} {order:?}");
                held[next].take().unwrap().release();
                held.iter().flatten().filter(|_| dropped.get() == 0).for_each(Held::assert_readable);
            }
            assert_eq!(dropped.get(), 1, "{which:b} {order:?}");
        });
    }
}

/// B5: the same by the owners of this crate: child, grandchild and dictionary outlive what they were moved out of.
#[test]
fn owned_nodes_outlive_their_parents() {
    let (tree, dropped) = (family(), Counter::new());
    let mut root = tree.export(&dropped);
    let mut encoded = root.take_child(0).unwrap();
    let mut parent = root.take_child(1).unwrap();
    assert_eq!(root.take_child(1).unwrap_err(), ViewError::Released);
    drop(root);
    // Only now, out of trees whose root is gone.
    let child = parent.take_child(0).unwrap();
    let words = encoded.take_dictionary().unwrap().unwrap();
    assert_eq!(encoded.take_dictionary().unwrap_err(), ViewError::Released);
    for (array, tree) in [(parent, &tree.children[1]), (encoded, &tree.children[0])] {
        tree.assert_read_by(array.view().unwrap());
    }
    assert_eq!(dropped.get(), 0);
    tree.children[1].children[0].assert_read_by(child.view().unwrap());
    drop(child);
    tree.children[0].dictionary.as_ref().unwrap().assert_read_by(words.view().unwrap());
    assert_eq!(dropped.get(), 0);
    drop(words);
    assert_eq!(dropped.get(), 1);
}

/// B5: what was moved out may be moved on, and back to its place, before the root is released.
#[test]
fn nodes_may_be_moved_again() {
    let (tree, dropped) = (family(), Counter::new());
    for goes_back in [false, true] {
        let root = Held::new(&tree, tree.export(&dropped).into_raw());
        let before = dropped.get();
        let (child, place) = descendants(&tree, &root.array)[2];
        // SAFETY: a node of a live tree, moved from where it is each time.
        let (first, second) = unsafe {
            let mut first = Held::move_out(child, place);
            let second = Held::move_out(child, &raw mut *first.array);
            (first, second)
        };
        assert!(first.array.is_released());
        if goes_back {
            // SAFETY: the place is one of the live root's, and empty.
            unsafe { place.write(*second.array) };
            root.release();
        } else {
            root.release();
            assert_eq!(dropped.get(), before);
            second.release();
        }
        assert_eq!(dropped.get(), before + 1);
    }
}

/// B4, B6, C4: a release acts on the struct that it is given, wherever that is: it is marked, a stale copy is not
/// looked at, and a second call or one on nothing does nothing.
#[test]
fn release_clears_the_struct_it_is_given() {
    let (tree, dropped) = (family(), Counter::new());
    let stale = tree.export(&dropped).into_raw();
    let release = stale.release.unwrap();
    // SAFETY: a copy of the bytes; `stale` is not used as an array any more.
    let mut copy = Box::new(unsafe { ptr::read(&raw const stale) });
    // SAFETY: a live array, then a released one, then none.
    unsafe {
        release(&raw mut *copy);
        assert!(copy.is_released() && !stale.is_released());
        assert_eq!(dropped.get(), 1);
        release(&raw mut *copy);
        release(ptr::null_mut());
    }
    assert_eq!(dropped.get(), 1);
}

/// B2: some consumers wrongly release children in place, before their parent (arrow-rs#20). Each is released once.
#[test]
fn children_released_in_place() {
    let (tree, dropped) = (family(), Counter::new());
    // The family's descendants, depth first, and who is above each.
    let above = [None, Some(0), None, Some(2)];
    for_each_order(above.len(), &mut |order| {
        let before = dropped.get();
        let root = Held::new(&tree, tree.export(&dropped).into_raw());
        let below = descendants(&tree, &root.array);
        let mut released = [false; 4];
        for &index in order {
            // A node goes with the one above it, and is not looked at again (B3).
            if above[index].is_some_and(|above: usize| released[above]) {
                continue;
            }
            released[index] = true;
            let node = below[index].1;
            // SAFETY: a node of a live tree, released once.
            unsafe {
                (*node).release.unwrap()(node);
                assert!((*node).is_released());
            }
            assert_eq!(dropped.get(), before);
        }
        root.release();
        assert_eq!(dropped.get(), before + 1);
    });
}

/// B5, C33: parent, children, grandchild and dictionary released on threads of their own at once. Each reads its
/// buffers to the last, and one of the threads drops the keep-alive.
#[test]
fn nodes_released_on_different_threads_at_once() {
    let tree = family();
    for round in 0..ROUNDS {
        let dropped = Counter::new();
        let held = taken_apart(&tree, [0b1111, 0b0101, 0b1010][round % 3], &dropped);
        let start = Barrier::new(held.len());
        thread::scope(|scope| {
            for node in held {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    node.release();
                });
            }
        });
        assert_eq!(dropped.get(), 1);
    }
}

/// B5, C33: a thread takes a moved subtree further apart while another releases what it came from.
#[test]
fn a_subtree_is_taken_apart_while_the_rest_is_released() {
    let (tree, dropped) = (family(), Counter::new());
    for round in 1..=ROUNDS {
        let mut root = tree.export(&dropped);
        let mut child = root.take_child(1).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                drop(root);
            });
            scope.spawn(|| {
                start.wait();
                let grandchild = child.take_child(0).unwrap();
                drop(child);
                tree.children[1].children[0].assert_read_by(grandchild.view().unwrap());
            });
        });
        assert_eq!(dropped.get(), round);
    }
}

/// Says which thread dropped it.
struct Tells(Arc<Mutex<Option<ThreadId>>>);

impl Drop for Tells {
    fn drop(&mut self) {
        assert!(self.0.lock().unwrap().replace(thread::current().id()).is_none());
    }
}

/// C33: the last release drops the keep-alive on its own thread, one that is about to exit included.
#[test]
fn the_keep_alive_is_dropped_where_the_last_node_is() {
    thread_local! {
        static AT_EXIT: RefCell<Option<OwnedArray>> = const { RefCell::new(None) };
    }
    let told = Arc::default();
    let leaf = ArrayNode::default();
    let node = ArrayNode { children: &[leaf], ..leaf };
    // SAFETY: the null layout has no buffers.
    let mut root = unsafe { node.export(Tells(Arc::clone(&told))) }.unwrap();
    let child = root.take_child(0).unwrap();
    thread::spawn(move || drop(root)).join().unwrap();
    assert!(told.lock().unwrap().is_none());
    let last = thread::spawn(move || AT_EXIT.set(Some(child)));
    let id = last.thread().id();
    last.join().unwrap();
    assert_eq!(*told.lock().unwrap(), Some(id));
}

/// Counts that it is dropped, at an address that its alignment allows, with what was put into it.
struct Checks<A: Send>(Counter, u8, [A; 0]);

impl<A: Send> Drop for Checks<A> {
    fn drop(&mut self) {
        assert_eq!((ptr::from_mut(self).addr() % align_of::<Self>(), self.1), (0, 0xA5));
        self.0.add();
    }
}

thread_local! {
    static NOTHINGS: Cell<usize> = const { Cell::new(0) };
}

struct Nothing;

impl Drop for Nothing {
    fn drop(&mut self) {
        NOTHINGS.set(NOTHINGS.get() + 1);
    }
}

/// B4: keep-alives of all alignments and of no size are dropped where they were put.
#[test]
fn keep_alives_of_any_layout() {
    fn test<A: Send + 'static>() {
        for n_children in [0, 1, 5] {
            let dropped = Counter::new();
            let children = vec![ArrayNode::default(); n_children];
            let node = ArrayNode { children: &children, ..ArrayNode::default() };
            // SAFETY: the null layout has no buffers.
            let array = unsafe { node.export((1_u8, Checks::<A>(dropped.clone(), 0xA5, []))) }.unwrap();
            assert_eq!(array.view().unwrap().n_children(), n_children);
            drop(array);
            assert_eq!(dropped.get(), 1);
        }
    }
    #[repr(align(64))]
    struct Align64;
    #[repr(align(4096))]
    struct Align4096;
    test::<u8>();
    test::<u64>();
    test::<u128>();
    test::<Align64>();
    test::<Align4096>();

    // SAFETY: the null layout has no buffers.
    drop(unsafe { ArrayNode::default().export(Nothing) }.unwrap());
    assert_eq!(NOTHINGS.get(), 1);
}

/// B4: a keep-alive may itself be an array, and what is dropped may release others.
#[test]
fn a_tree_may_keep_another_alive() {
    let (tree, dropped) = (family(), Counter::new());
    let mut inner = tree.export(&dropped);
    let moved = inner.take_child(0).unwrap();
    let node = ArrayNode { length: 2, ..ArrayNode::default() };
    // SAFETY: the null layout has no buffers.
    let outer = unsafe { node.export((inner, moved)) }.unwrap();
    assert_eq!(dropped.get(), 0);
    drop(outer);
    assert_eq!(dropped.get(), 1);
}
