//! Trees to export: what is put in, and the comparison with what a consumer reads.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test program uses a part")]

pub mod allocator;
pub mod cases;
mod chain;
mod held;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub mod huge;
mod layouts;
pub mod stream;

use core::ffi::c_void;
use core::ptr;
use std::cell::OnceCell;

use arrow_device_abi::{ArrayNode, ArrayView, OwnedArray, OwnedSchema, SchemaNode};

use crate::common::Counter;

pub use chain::{with_array_chain, with_schema_chain};
pub use held::{Held, below, descendants};
pub use layouts::{dictionary, layouts, leaf, structure, without_contents};

/// Bytes of a buffer, or `None` for a null pointer.
pub type Bytes = Option<Vec<u8>>;

/// An array and its type. `B` is a buffer: bytes as expected, or a pointer as exported.
#[derive(Clone, Debug)]
pub struct Tree<B = Bytes> {
    pub format: String,
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub buffers: Vec<B>,
    pub children: Vec<Self>,
    pub dictionary: Option<Box<Self>>,
}

/// What keeps an exported tree's buffers alive. When it is dropped it counts that, and spoils and frees them.
#[derive(Default)]
pub struct Keep {
    buffers: Vec<Vec<u8>>,
    dropped: Counter,
}

impl Keep {
    pub fn counted(dropped: &Counter) -> Self {
        Self { buffers: Vec::new(), dropped: dropped.clone() }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        for buffer in &mut self.buffers {
            buffer.fill(0x5A);
            // The compiler must not leave the bytes as they are because they are freed next.
            core::hint::black_box(buffer);
        }
        self.dropped.add();
    }
}

/// A cell for the children of each node, and one for its dictionary: what a description borrows.
pub type Cells<'a, N> = core::slice::Iter<'a, OnceCell<Vec<N>>>;

pub fn cells<N>(count: usize) -> Vec<OnceCell<Vec<N>>> {
    (0..count).map(|_| OnceCell::new()).collect()
}

pub fn fill<'a, N>(cells: &mut Cells<'a, N>, nodes: impl Iterator<Item = N>) -> &'a [N] {
    let cell = cells.next().expect("a cell for each node");
    cell.get_or_init(|| nodes.collect())
}

impl<B> Tree<B> {
    fn below(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().chain(self.dictionary.as_deref())
    }

    /// How many nodes there are, the root included.
    pub fn count(&self) -> usize {
        1 + self.below().map(Self::count).sum::<usize>()
    }

    /// The node with this index, depth first, the root being 0.
    pub fn nth_mut(&mut self, index: usize) -> &mut Self {
        let Some(mut rest) = index.checked_sub(1) else {
            return self;
        };
        for node in self.children.iter_mut().chain(self.dictionary.as_deref_mut()) {
            let count = node.count();
            if rest < count {
                return node.nth_mut(rest);
            }
            rest -= count;
        }
        panic!("no node {index}");
    }

    pub fn map<C>(&self, buffer: &mut impl FnMut(&B) -> C) -> Tree<C> {
        Tree {
            format: self.format.clone(),
            length: self.length,
            null_count: self.null_count,
            offset: self.offset,
            buffers: self.buffers.iter().map(&mut *buffer).collect(),
            children: self.children.iter().map(|child| child.map(buffer)).collect(),
            dictionary: self.dictionary.as_ref().map(|dictionary| Box::new(dictionary.map(buffer))),
        }
    }

    fn schema_node<'a>(&'a self, cells: &mut Cells<'a, SchemaNode<'a>>) -> SchemaNode<'a> {
        let mut below: Vec<_> = self.below().map(|node| node.schema_node(cells)).collect();
        let dictionary = self.dictionary.as_ref().and_then(|_| below.pop());
        SchemaNode {
            format: &self.format,
            children: fill(cells, below.into_iter()),
            dictionary: fill(cells, dictionary.into_iter()).first(),
            ..SchemaNode::default()
        }
    }

    /// The schema of the tree's type.
    pub fn schema(&self) -> OwnedSchema {
        let cells = cells(2 * self.count());
        self.schema_node(&mut cells.iter()).export().unwrap()
    }
}

impl Tree<*const c_void> {
    fn array_node<'a>(&'a self, cells: &mut Cells<'a, ArrayNode<'a>>) -> ArrayNode<'a> {
        let mut below: Vec<_> = self.below().map(|node| node.array_node(cells)).collect();
        let dictionary = self.dictionary.as_ref().and_then(|_| below.pop());
        ArrayNode {
            length: self.length,
            null_count: self.null_count,
            offset: self.offset,
            buffers: &self.buffers,
            children: fill(cells, below.into_iter()),
            dictionary: fill(cells, dictionary.into_iter()).first(),
        }
    }

    /// Calls `f` with the description of the tree.
    pub fn with_node<R>(&self, f: impl FnOnce(&ArrayNode<'_>) -> R) -> R {
        let cells = cells(2 * self.count());
        f(&self.array_node(&mut cells.iter()))
    }
}

impl Tree {
    /// Copies of the buffers, and the tree with pointers to them.
    pub fn place(&self, dropped: &Counter) -> (Tree<*const c_void>, Keep) {
        let mut keep = Keep::counted(dropped);
        let placed = self.map(&mut |bytes| {
            bytes.as_ref().map_or(ptr::null(), |bytes| {
                keep.buffers.push(bytes.clone());
                keep.buffers.last().unwrap().as_ptr().cast()
            })
        });
        (placed, keep)
    }

    /// Exports the tree; `dropped` counts the end of its buffers.
    pub fn export(&self, dropped: &Counter) -> OwnedArray {
        let (placed, keep) = self.place(dropped);
        // SAFETY: the tree has the buffers of its type, and they live as long as the keep-alive.
        placed.with_node(|node| unsafe { node.export(keep) }).unwrap()
    }

    /// Asserts that a consumer of `array` reads this tree: every number, and every byte of every buffer.
    ///
    /// A node that was moved out is not looked at.
    pub fn assert_read_by(&self, array: ArrayView<'_>) {
        assert_eq!((array.length() as i64, array.offset() as i64), (self.length, self.offset));
        // C24: what is not counted is known all the same where the first buffer is null.
        let counted = self.null_count != -1 || self.buffers.first().is_none_or(Option::is_some);
        assert_eq!(array.as_raw().null_count, if counted { self.null_count } else { 0 });
        assert_eq!((array.buffers().len(), array.n_children()), (self.buffers.len(), self.children.len()));
        for (index, bytes) in self.buffers.iter().enumerate() {
            assert_eq!(array.buffers()[index].is_null(), bytes.is_none());
            let bytes = bytes.as_deref().unwrap_or_default();
            // SAFETY: the buffer has these bytes, and lives as long as the array.
            assert_eq!(unsafe { array.buffer_as::<u8>(index, bytes.len()) }.unwrap(), bytes);
        }
        assert_eq!(array.as_raw().dictionary.is_null(), self.dictionary.is_none());
        for (tree, node) in below(self, array.as_raw()) {
            // SAFETY: the node is one of a live tree.
            let node = unsafe { &*node };
            if !node.is_released() {
                // SAFETY: as above.
                tree.assert_read_by(unsafe { ArrayView::from_raw(node) }.unwrap());
            }
        }
    }
}
