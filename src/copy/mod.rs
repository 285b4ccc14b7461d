//! How many bytes an array has, and copying it to where it is needed.
//!
//! It takes and gives, so it stands above both wings. What a copy is made of is a [`Plan`](plan::Plan), whatever the
//! direction: the nodes, where each of their buffers is and how long it is, and where in one block each goes.

mod block;
mod buffers;
mod memory;
pub(crate) mod plan;
mod reads;

use alloc::vec::Vec;
use core::fmt;

pub use memory::{DeviceMemory, HostMemory, NotForTheHost, Transfer};

use block::Block;
#[cfg_attr(
    not(feature = "cuda"),
    allow(unused_imports, reason = "CUDA's copies to the device follow it, too")
)]
pub(crate) use {block::ALIGNMENT, plan::Plan};

use crate::consumer::{Invalid, Limits, ReadyDeviceArray};
use crate::owned::OwnedArray;
use crate::producer::{ExportError, ExportErrorKind};
use crate::view::SchemaView;

/// What becomes of the offset of an array that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Offsets {
    /// Each node keeps its offset, and what stands before it is copied too: nothing but bytes is moved. It takes one
    /// look at the array's own offsets.
    #[default]
    Keep,
    /// Only what the array reaches is copied, and offsets are 0 afterwards: bitmaps are shifted, offsets of lists and
    /// binary values begin with 0, and children are cut to what their parent reaches of them. It takes a look for each
    /// level of lists.
    ///
    /// Copied as they are: children of list views and dense unions, which may be reached in any order, data buffers of
    /// views, dictionaries. A run-end encoded array keeps its offset, which counts elements and not runs.
    Trim,
}

/// How to copy.
#[derive(Default)]
#[non_exhaustive]
pub struct CopyOptions<'a> {
    /// What becomes of offsets.
    pub offsets: Offsets,
    /// How large a tree may be.
    pub limits: Limits,
    /// Is told how many bytes of how many are copied: at least once, at the end, and as often as the memory knows. Never
    /// less than before, never more than all.
    pub progress: Option<&'a mut dyn FnMut(usize, usize)>,
}

impl<'a> CopyOptions<'a> {
    /// The defaults: offsets are kept, [`Limits::DEFAULT`], nobody is told.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These with [`Offsets::Trim`].
    #[must_use]
    pub fn trimmed(self) -> Self {
        Self { offsets: Offsets::Trim, ..self }
    }

    /// These with other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// These with somebody to tell: `progress(done, total)`, in bytes.
    #[must_use]
    pub fn on_progress(self, progress: &'a mut dyn FnMut(usize, usize)) -> Self {
        Self { progress: Some(progress), ..self }
    }
}

impl fmt::Debug for CopyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offsets, limits, progress } = self;
        let mut debug = f.debug_struct("CopyOptions");
        debug
            .field("offsets", offsets)
            .field("limits", limits)
            .field("progress", &progress.is_some())
            .finish()
    }
}

/// Bytes of every buffer of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferSizes {
    sizes: Vec<usize>,
    /// How many of them each node has.
    counts: Vec<usize>,
}

impl BufferSizes {
    /// The sizes of each node's buffers. The root is first; each node is before its children, which stand side by side,
    /// the dictionary last (breadth first). A null pointer has 0 bytes.
    pub fn nodes(&self) -> impl Iterator<Item = &[usize]> {
        let mut rest = self.sizes.as_slice();
        self.counts.iter().map(move |count| {
            let (node, others) = rest.split_at_checked(*count).unwrap_or_default();
            rest = others;
            node
        })
    }

    /// Bytes of all of them together, without alignment and padding.
    #[must_use]
    pub fn total(&self) -> usize {
        // Each is the size of something in memory; several may be of the same thing.
        self.sizes.iter().fold(0, |total: usize, size| total.saturating_add(*size))
    }
}

impl ReadyDeviceArray {
    /// How many bytes each buffer has, from format, length and offset; where only an offset in a buffer tells, that is
    /// read through `memory`, all of them at once.
    ///
    /// # Errors
    ///
    /// [`CopyError::Invalid`] if the array is not what `schema` says; [`CopyError::Memory`] if `memory` cannot read it.
    ///
    /// # Safety
    ///
    /// - `schema` is the array's own (D15), the one that its producer gave for it: every buffer that is not null has as
    ///   many bytes as its types, lengths and offsets ask for, which nobody can see of a pointer.
    pub unsafe fn buffer_sizes<M: DeviceMemory + ?Sized>(
        &self,
        schema: SchemaView<'_>,
        memory: &M,
        limits: &Limits,
    ) -> Result<BufferSizes, CopyError<M::Error>> {
        // SAFETY: as the caller promises.
        unsafe { Plan::new(self, schema, memory, Offsets::Keep, limits) }?.sizes()
    }

    /// Copies the array into host memory, from whatever device it is on.
    ///
    /// The result is one tree with all buffers in one block: each at an address that is a multiple of 64, filled up with
    /// zeros to a multiple of 64 bytes. It owes nothing to `self`, which can be dropped. Buffers of no bytes are not
    /// null, and an array without elements has its one offset, which strict consumers ask for (C7); its own offset is 0.
    ///
    /// The structure is [checked](OwnedArray::validate) first, the contents are not: what was wrong in them is wrong in
    /// the copy.
    ///
    /// # Errors
    ///
    /// A [`CopyError`]; nothing is left behind then.
    ///
    /// # Safety
    ///
    /// - `schema` is the array's own (D15), the one that its producer gave for it: every buffer that is not null has as
    ///   many bytes as its types, lengths and offsets ask for, which nobody can see of a pointer.
    pub unsafe fn to_host<M: DeviceMemory + ?Sized>(
        &self,
        schema: SchemaView<'_>,
        memory: &M,
        options: CopyOptions<'_>,
    ) -> Result<OwnedArray, CopyError<M::Error>> {
        let CopyOptions { offsets, limits, mut progress } = options;
        // SAFETY: as the caller promises.
        let mut plan = unsafe { Plan::new(self, schema, memory, offsets, &limits) }?;
        let mut block = Block::zeroed(plan.block_bytes()).ok_or(CopyError::OutOfMemory)?;
        let transfers = plan.transfers(block.as_mut_ptr())?;
        let total = plan.bytes_to_copy();
        let mut done = 0_usize;
        let mut tell = |done| {
            if let Some(progress) = &mut progress {
                progress(done, total);
            }
        };
        let mut finished = |bytes: usize| {
            done = done.saturating_add(bytes).min(total);
            tell(done);
        };
        // SAFETY: the plan has the array's own buffers, with as many bytes as its own types ask for, and a place in the
        // block for each; `Plan::new` has asked whether `memory` takes arrays on this device that are ready like this.
        unsafe { memory.copy_to_host(&transfers, &mut finished) }.map_err(CopyError::Memory)?;
        if done < total || total == 0 {
            tell(total);
        }
        plan.finish(block.bytes_mut());
        let base = block.as_mut_ptr().cast_const();
        let exported = plan.with_node(base, |node| {
            // SAFETY: the node is one of the array's own type; its buffers are in the block, which is kept, and were
            // written.
            unsafe { node.export(block) }
        });
        exported?.map_err(|ExportError { kind, .. }| match kind {
            ExportErrorKind::OutOfMemory => CopyError::OutOfMemory,
            kind => CopyError::Export(kind),
        })
    }
}

/// Why an array could not be copied, or its size not be found out. Nothing was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyError<E> {
    /// The array is not what its schema says, or an offset in its buffers is none.
    Invalid(Invalid),
    /// The device's memory could not be read.
    Memory(E),
    /// Host memory could not be allocated, or is too small to hold it.
    OutOfMemory,
    /// The copy could not be exported.
    Export(ExportErrorKind),
}

impl<E> From<Invalid> for CopyError<E> {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl<E: fmt::Display> fmt::Display for CopyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Memory(error) => write!(f, "reading the device's memory failed: {error}"),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Export(kind) => kind.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for CopyError<E> {}

/// Adds an item, if there is memory for it.
fn push<T, E>(items: &mut Vec<T>, item: T) -> Result<(), CopyError<E>> {
    items.try_reserve(1).map_err(|_| CopyError::OutOfMemory)?;
    items.push(item);
    Ok(())
}
