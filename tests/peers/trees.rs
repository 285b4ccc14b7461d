//! Descriptions that own what the crate's `ArrayNode` and `SchemaNode` borrow: read from a foreign struct, or put
//! together node by node.
//!
//! `python_exchange.rs` has this module too.

use core::cell::OnceCell;
use core::ffi::c_void;

use arrow_device_abi::{ArrayNode, ArrayView, SchemaNode, SchemaView, ViewError};

/// What an array is, but for the bytes: its buffers are somebody else's.
#[derive(Debug, Default)]
pub struct ArrayTree {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub buffers: Vec<*const c_void>,
    pub children: Vec<Self>,
    pub dictionary: Option<Box<Self>>,
}

impl ArrayTree {
    /// Describes somebody else's array. No buffer is read.
    pub fn of(array: ArrayView<'_>) -> Result<Self, ViewError> {
        let raw = array.as_raw();
        Ok(Self {
            length: raw.length,
            null_count: raw.null_count,
            offset: raw.offset,
            buffers: array.buffers().to_vec(),
            children: array.children().map(|child| Self::of(child?)).collect::<Result<_, _>>()?,
            dictionary: array.dictionary()?.map(|values| Self::of(values).map(Box::new)).transpose()?,
        })
    }

    fn node<'a>(
        &'a self,
        children: &'a [ArrayNode<'a>],
        dictionary: Option<&'a ArrayNode<'a>>,
    ) -> ArrayNode<'a> {
        let Self { length, null_count, offset, .. } = *self;
        ArrayNode { length, null_count, offset, buffers: &self.buffers, children, dictionary }
    }
}

/// A schema, whose texts are somebody else's.
#[derive(Debug)]
pub struct SchemaTree<'t> {
    format: &'t str,
    name: Option<&'t str>,
    metadata: Vec<(&'t [u8], &'t [u8])>,
    flags: i64,
    children: Vec<Self>,
    dictionary: Option<Box<Self>>,
}

impl<'t> SchemaTree<'t> {
    /// Describes somebody else's schema.
    pub fn of(schema: SchemaView<'t>) -> Result<Self, ViewError> {
        Ok(Self {
            format: schema.format()?,
            name: schema.name()?,
            metadata: schema.metadata()?.iter().collect(),
            flags: schema.flags(),
            children: schema.children().map(|child| Self::of(child?)).collect::<Result<_, _>>()?,
            dictionary: schema.dictionary()?.map(|values| Self::of(values).map(Box::new)).transpose()?,
        })
    }

    fn node<'a>(
        &'a self,
        children: &'a [SchemaNode<'a>],
        dictionary: Option<&'a SchemaNode<'a>>,
    ) -> SchemaNode<'a> {
        let Self { format, name, flags, .. } = *self;
        SchemaNode { format, name, metadata: &self.metadata, flags, children, dictionary }
    }
}

macro_rules! with_node {
    ($tree:ty, $node:ident) => {
        impl $tree {
            /// Calls `f` with the tree as the crate wants it described.
            pub fn with_node<R>(&self, f: impl FnOnce(&$node<'_>) -> R) -> R {
                let cells: Vec<_> = (0..self.count()).map(|_| OnceCell::new()).collect();
                f(&self.node_over(&mut cells.iter()))
            }

            fn below(&self) -> impl Iterator<Item = &Self> {
                self.children.iter().chain(self.dictionary.as_deref())
            }

            fn count(&self) -> usize {
                1 + self.below().map(Self::count).sum::<usize>()
            }

            /// A node borrows the slice of its children: each slice stands in a cell of its own.
            fn node_over<'a>(
                &'a self,
                cells: &mut core::slice::Iter<'a, OnceCell<Vec<$node<'a>>>>,
            ) -> $node<'a> {
                let below: Vec<_> = self.below().map(|tree| tree.node_over(cells)).collect();
                let cell = cells.next().expect("there is a cell for each node");
                let (children, dictionary) = cell.get_or_init(|| below).split_at(self.children.len());
                self.node(children, dictionary.first())
            }
        }
    };
}
with_node!(ArrayTree, ArrayNode);
with_node!(SchemaTree<'_>, SchemaNode);
