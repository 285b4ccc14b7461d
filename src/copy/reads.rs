//! What only the buffers tell: where data begins and ends, and how large data buffers are.

use alloc::vec::Vec;
use core::ops::Range;

use super::plan::{Node, Plan, Window};
use super::{CopyError, DeviceMemory, Transfer, push};
use crate::bits::Number;
use crate::consumer::Fault;
use crate::format::BufferKind;

/// What was read of a node.
#[derive(Clone, Default)]
pub(super) enum Extent {
    /// Nothing, or not yet.
    #[default]
    None,
    /// The offsets of the first element and behind the last.
    Range { first: usize, last: usize },
    /// Bytes of the data buffers.
    Sizes(Vec<usize>),
}

/// One batch of reads: numbers of several nodes, 8 bytes of room each.
#[derive(Default)]
pub(super) struct Reads {
    /// Which node, and which of the numbers are its.
    of: Vec<(usize, Range<usize>)>,
    /// Where they are, and how wide.
    numbers: Vec<(*const u8, usize)>,
}

/// Bytes of room for a number.
const ROOM: usize = size_of::<i64>();

impl Reads {
    /// Reads what `plan` needs to know, and cuts the children of its nodes if it trims: a batch for each level of nodes
    /// that have to be read before their children are known.
    ///
    /// # Safety
    ///
    /// - `memory` has accepted the plan's array, whose structure was checked against its own schema.
    pub(super) unsafe fn run<M: DeviceMemory + ?Sized>(
        plan: &mut Plan<'_>,
        memory: &M,
    ) -> Result<(), CopyError<M::Error>> {
        // Nodes whose window is known. If nothing is cut, that is all of them.
        let mut known = Vec::new();
        for index in 0..(if plan.trims() { 1 } else { plan.len() }) {
            push(&mut known, index)?;
        }
        while !known.is_empty() {
            let mut reads = Self::default();
            while let Some(index) = known.pop() {
                let has_read = match plan.node(index) {
                    Some(node) => reads.add(index, node, plan.trims())?,
                    None => false,
                };
                if !has_read {
                    go_below(plan, index, &mut known)?;
                }
            }
            // SAFETY: as the caller promises, and the batch has the buffers of this array's nodes.
            let numbers = unsafe { reads.read(memory) }?;
            for (index, range) in reads.of {
                let numbers = numbers.get(range).unwrap_or_default();
                let mut sizes = Vec::new();
                sizes.try_reserve_exact(numbers.len()).map_err(|_| CopyError::OutOfMemory)?;
                let extent = plan.node(index).map_or(Ok(Extent::None), |node| extent(node, numbers, sizes));
                let extent = extent.map_err(|fault| plan.invalid(index, fault))?;
                if let Some(node) = plan.node_mut(index) {
                    node.extent = extent;
                }
                go_below(plan, index, &mut known)?;
            }
        }
        Ok(())
    }

    /// Adds what has to be read of a node; false if nothing.
    fn add<E>(&mut self, index: usize, node: &Node<'_>, trims: bool) -> Result<bool, CopyError<E>> {
        if node.window.length == 0 {
            return Ok(false);
        }
        let start = self.numbers.len();
        let kinds = node.format.buffers();
        let buffers = node.array.buffers();
        match *kinds.kinds() {
            [_, offsets @ (BufferKind::Offsets32 | BufferKind::Offsets64), BufferKind::Data] => {
                self.add_range(buffers, offsets, node)?;
            }
            [_, offsets @ (BufferKind::Offsets32 | BufferKind::Offsets64)] if trims => {
                self.add_range(buffers, offsets, node)?;
            }
            _ if kinds.is_variadic() => {
                let count = buffers.len().saturating_sub(kinds.kinds().len()).saturating_sub(1);
                let sizes = buffers.last().map_or(core::ptr::null(), |sizes| sizes.cast::<u8>());
                for size in 0..count {
                    push(&mut self.numbers, (sizes.wrapping_add(size.saturating_mul(ROOM)), ROOM))?;
                }
            }
            _ => {}
        }
        let range = start..self.numbers.len();
        let has_read = !range.is_empty();
        if has_read {
            push(&mut self.of, (index, range))?;
        }
        Ok(has_read)
    }

    /// The offsets of the first element and behind the last; and of an array that was cut, behind the last of all.
    fn add_range<E>(
        &mut self,
        buffers: &[*const core::ffi::c_void],
        kind: BufferKind,
        node: &Node<'_>,
    ) -> Result<(), CopyError<E>> {
        let width = if kind == BufferKind::Offsets32 { size_of::<i32>() } else { size_of::<i64>() };
        let offsets = buffers.get(1).map_or(core::ptr::null(), |offsets| offsets.cast::<u8>());
        let Window { start, .. } = node.window;
        let (end, all) = (node.window.end(), node.whole().end());
        for element in [start, end, all].into_iter().take(if end == all { 2 } else { 3 }) {
            push(&mut self.numbers, (offsets.wrapping_add(element.saturating_mul(width)), width))?;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// - The numbers are in buffers of an array that `memory` has accepted.
    unsafe fn read<M: DeviceMemory + ?Sized>(&self, memory: &M) -> Result<Vec<i64>, CopyError<M::Error>> {
        let mut bytes: Vec<[u8; ROOM]> = Vec::new();
        bytes.try_reserve_exact(self.numbers.len()).map_err(|_| CopyError::OutOfMemory)?;
        bytes.resize(self.numbers.len(), [0; ROOM]);
        let mut transfers = Vec::new();
        let base: *mut [u8; ROOM] = bytes.as_mut_ptr();
        for (index, (from, width)) in self.numbers.iter().enumerate() {
            let to = base.wrapping_add(index).cast();
            push(&mut transfers, Transfer::new(from.cast(), to, *width))?;
        }
        if !transfers.is_empty() {
            // SAFETY: the numbers are inside buffers of the array, as the caller promises, and each has room of its own.
            unsafe { memory.copy_to_host(&transfers, &mut |_| {}) }.map_err(CopyError::Memory)?;
        }
        let mut numbers = Vec::new();
        for (room, (_, width)) in bytes.iter().zip(&self.numbers) {
            let number = match room.get(..*width) {
                Some(bytes) if *width == size_of::<i32>() => i32::read(bytes).map(i64::from),
                Some(bytes) => i64::read(bytes),
                None => None,
            };
            push(&mut numbers, number.unwrap_or_default())?;
        }
        Ok(numbers)
    }
}

/// Goes on with what is below a node, if that has waited for it.
fn go_below<E>(plan: &mut Plan<'_>, index: usize, known: &mut Vec<usize>) -> Result<(), CopyError<E>> {
    if plan.trims() {
        plan.cut_children(index);
        for below in plan.below(index) {
            push(known, below)?;
        }
    }
    Ok(())
}

/// What the numbers of a node say. `sizes` has room for as many.
fn extent(node: &Node<'_>, numbers: &[i64], mut sizes: Vec<usize>) -> Result<Extent, Fault> {
    let size = |what, element, found: i64, least: usize, most: usize| match usize::try_from(found) {
        Ok(size) if (least..=most).contains(&size) => Ok(size),
        _ => {
            Err(Fault::Value { what, element, found: found.into(), least: least as i128, most: most as i128 })
        }
    };
    let memory = isize::MAX as usize;
    if node.format.buffers().is_variadic() {
        for (index, found) in numbers.iter().enumerate() {
            sizes.push(size("size of the data buffer", index, *found, 0, memory)?);
        }
        return Ok(Extent::Sizes(sizes));
    }
    let [first, last, all @ ..] = numbers else { return Ok(Extent::None) };
    let most = match node.array.child(0) {
        Ok(child) => child.length(),
        Err(_) => memory,
    };
    // How many bytes there are is what the last of all offsets says, whatever those before it do.
    let most = match all {
        [all] => size("offset", node.array.length(), *all, 0, most)?,
        _ => most,
    };
    let before = node.window.start.saturating_sub(node.array.offset());
    let first = size("offset", before, *first, 0, most)?;
    let last = size("offset", before.saturating_add(node.window.length), *last, first, most)?;
    Ok(Extent::Range { first, last })
}
