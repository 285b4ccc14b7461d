//! What is to be copied, and where to.

use alloc::vec::Vec;
use core::cell::OnceCell;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr;

use super::buffers::Buffer;
use super::reads::{Extent, Reads};
use super::{BufferSizes, CopyError, DeviceMemory, Offsets, push};
use crate::consumer::{Depth, Fault, Invalid, Limits, ReadyDeviceArray, check, path, type_of};
use crate::format::Format;
use crate::producer::ArrayNode;
use crate::view::{ArrayView, SchemaView};
use crate::walk::Link;

/// Elements of an array, counted from the start of its buffers.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Window {
    pub(super) const fn end(self) -> usize {
        self.start.saturating_add(self.length)
    }
}

pub(super) struct Node<'a> {
    schema: SchemaView<'a>,
    pub(super) array: ArrayView<'a>,
    pub(super) format: Format<'a>,
    /// Index of the parent, and how this hangs on it.
    parent: Option<(usize, Link)>,
    /// Indices of the children and, last, the dictionary, which stand side by side.
    below: Range<usize>,
    pub(super) window: Window,
    pub(super) extent: Extent,
    /// Indices of the buffers.
    pub(super) buffers: Range<usize>,
    /// That of the copy.
    pub(super) null_count: i64,
    pub(super) offset: usize,
}

/// An array taken apart: its nodes breadth first, their buffers, and where these go in one block of memory, on the host
/// or on a device.
///
/// Whoever copies makes a block of [`block_bytes`](Self::block_bytes), aligned to 64 and zero, does the
/// [`transfers`](Self::transfers) into it, and exports it [`with_node`](Self::with_node). On the host it is
/// [finished](Self::finish) in between, which only matters where offsets are trimmed.
pub(crate) struct Plan<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) block_bytes: usize,
    pub(super) bytes_to_copy: usize,
    offsets: Offsets,
}

impl Node<'_> {
    /// All elements of the array, whatever the parent reaches of them.
    pub(super) fn whole(&self) -> Window {
        Window { start: self.array.offset(), length: self.array.length() }
    }
}

impl<'a> Plan<'a> {
    /// Checks the structure of `array`, and reads through `memory` what its types do not tell.
    ///
    /// # Safety
    ///
    /// - `schema` is the array's own (D15).
    pub(crate) unsafe fn new<M: DeviceMemory + ?Sized>(
        array: &'a ReadyDeviceArray,
        schema: SchemaView<'a>,
        memory: &M,
        offsets: Offsets,
        limits: &Limits,
    ) -> Result<Self, CopyError<M::Error>> {
        memory.accept(array.device(), array.readiness(), array.sync_event()).map_err(CopyError::Memory)?;
        // SAFETY: an owned array obeys the interface, and is neither changed nor released while it is borrowed.
        unsafe { check(array.raw(), schema, limits, Depth::Structure) }?;
        let array = array.view().map_err(|error| Invalid::from(Fault::Array(error)))?;
        let mut plan =
            Self { nodes: Vec::new(), buffers: Vec::new(), block_bytes: 0, bytes_to_copy: 0, offsets };
        plan.take_apart(schema, array)?;
        // SAFETY: the memory has accepted the array, whose structure was checked, and whose buffers are those of the
        // schema's types, as the caller promises.
        unsafe { Reads::run(&mut plan, memory) }?;
        for index in 0..plan.nodes.len() {
            plan.place(index)?;
        }
        Ok(plan)
    }

    /// Finds all nodes. There are not more than the limits allow, which were checked.
    fn take_apart<E>(&mut self, schema: SchemaView<'a>, array: ArrayView<'a>) -> Result<(), CopyError<E>> {
        self.add(schema, array, None)?;
        let mut next = 0_usize;
        while let Some((schema, array)) = self.nodes.get(next).map(|node| (node.schema, node.array)) {
            let start = self.nodes.len();
            for (child, pair) in schema.children().zip(array.children()).enumerate() {
                let (schema, array) = (pair.0.map_err(Fault::Schema), pair.1.map_err(Fault::Array));
                let parent = Some((next, Link::Child(child)));
                self.add(schema.map_err(Invalid::from)?, array.map_err(Invalid::from)?, parent)?;
            }
            let schema = schema.dictionary().map_err(|error| Invalid::from(Fault::Schema(error)))?;
            let array = array.dictionary().map_err(|error| Invalid::from(Fault::Array(error)))?;
            if let (Some(schema), Some(array)) = (schema, array) {
                self.add(schema, array, Some((next, Link::Dictionary)))?;
            }
            let end = self.nodes.len();
            if let Some(node) = self.nodes.get_mut(next) {
                node.below = start..end;
            }
            next = next.saturating_add(1);
        }
        Ok(())
    }

    fn add<E>(
        &mut self,
        schema: SchemaView<'a>,
        array: ArrayView<'a>,
        parent: Option<(usize, Link)>,
    ) -> Result<(), CopyError<E>> {
        let format = type_of(schema)?;
        let node = Node {
            schema,
            array,
            format,
            parent,
            below: 0..0,
            window: Window { start: array.offset(), length: array.length() },
            extent: Extent::default(),
            buffers: 0..0,
            null_count: array.as_raw().null_count,
            offset: 0,
        };
        push(&mut self.nodes, node)
    }

    pub(super) fn node(&self, index: usize) -> Option<&Node<'a>> {
        self.nodes.get(index)
    }

    pub(super) fn node_mut(&mut self, index: usize) -> Option<&mut Node<'a>> {
        self.nodes.get_mut(index)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) const fn trims(&self) -> bool {
        matches!(self.offsets, Offsets::Trim)
    }

    pub(super) fn below(&self, index: usize) -> Range<usize> {
        self.nodes.get(index).map_or(0..0, |node| node.below.clone())
    }

    /// Cuts the children of a node to what it reaches of them, if that is one range.
    pub(super) fn cut_children(&mut self, index: usize) {
        let Some(Node { array, window, format, extent, below, .. }) = self.nodes.get(index) else { return };
        let Window { start, length } = *window;
        let reached = match (format, extent) {
            (Format::Struct | Format::SparseUnion(_), _) => *window,
            (Format::FixedSizeList(size), _) => {
                let size = *size as usize;
                Window { start: start.saturating_mul(size), length: length.saturating_mul(size) }
            }
            (Format::List | Format::LargeList | Format::Map, Extent::Range { first, last }) => {
                Window { start: *first, length: last.saturating_sub(*first) }
            }
            _ if length == 0 => Window::default(),
            _ => return,
        };
        for child in below.clone().take(array.n_children()) {
            if let Some(child) = self.nodes.get_mut(child) {
                child.window = Window {
                    start: child.array.offset().saturating_add(reached.start),
                    length: reached.length,
                };
            }
        }
    }

    /// The error of a number in a node's buffers.
    #[cold]
    pub(super) fn invalid(&self, mut index: usize, fault: Fault) -> Invalid {
        let mut way = Vec::new();
        while let Some((parent, link)) = self.nodes.get(index).and_then(|node| node.parent) {
            way.extend(self.nodes.get(parent).map(|node| (node.schema, link)));
            index = parent;
        }
        match self.nodes.first() {
            Some(root) => Invalid::from(fault).at(path(root.schema, way.into_iter().rev())),
            None => fault.into(),
        }
    }

    /// How large the block has to be.
    pub(crate) const fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// How many bytes the transfers have together.
    pub(crate) const fn bytes_to_copy(&self) -> usize {
        self.bytes_to_copy
    }

    /// Calls `f` with the description of the copy in the block at `base`.
    pub(crate) fn with_node<R, E>(
        &self,
        base: *const u8,
        f: impl FnOnce(&ArrayNode<'_>) -> R,
    ) -> Result<R, CopyError<E>> {
        let mut pointers = Vec::new();
        for buffer in &self.buffers {
            let pointer = buffer.place.map_or(ptr::null(), |place| base.wrapping_add(place));
            push(&mut pointers, pointer.cast::<c_void>())?;
        }
        // A node borrows the slice of what is below it: each slice stands in a cell of its own, filled from the back,
        // where the leaves are.
        let mut cells = Vec::new();
        for _ in &self.nodes {
            push(&mut cells, OnceCell::new())?;
        }
        let describe = |index: usize| {
            let node = self.nodes.get(index)?;
            let below: &[ArrayNode<'_>] = cells.get(index).and_then(OnceCell::get).map_or(&[], Vec::as_slice);
            let (children, dictionary) = below.split_at_checked(node.array.n_children()).unwrap_or_default();
            Some(ArrayNode {
                length: i64::try_from(node.window.length).unwrap_or(i64::MAX),
                null_count: node.null_count,
                offset: i64::try_from(node.offset).unwrap_or(i64::MAX),
                buffers: pointers.get(node.buffers.clone()).unwrap_or_default(),
                children,
                dictionary: dictionary.first(),
            })
        };
        for (node, cell) in self.nodes.iter().zip(&cells).rev() {
            let mut below = Vec::new();
            for index in node.below.clone() {
                push(&mut below, describe(index).unwrap_or_default())?;
            }
            // Each is filled once.
            let _ = cell.set(below);
        }
        Ok(f(&describe(0).unwrap_or_default()))
    }

    /// The sizes of the buffers, of a plan that keeps offsets.
    pub(super) fn sizes<E>(&self) -> Result<BufferSizes, CopyError<E>> {
        let (mut sizes, mut counts) = (Vec::new(), Vec::new());
        for buffer in &self.buffers {
            push(&mut sizes, buffer.bytes)?;
        }
        for node in &self.nodes {
            push(&mut counts, node.buffers.len())?;
        }
        Ok(BufferSizes { sizes, counts })
    }
}
