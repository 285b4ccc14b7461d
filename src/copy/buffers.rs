//! The buffers of a plan: how long each is, where in the block it goes, and what is left to do there.

use alloc::vec::Vec;
use core::ffi::c_void;
use core::ops::Range;

use super::block::ALIGNMENT;
use super::plan::Plan;
use super::reads::Extent;
use super::{CopyError, Transfer, push};
use crate::bits::{Number, count_ones};
use crate::consumer::Fault;
use crate::format::{BufferKind, Format};

/// A buffer of the array, and its place in the block.
pub(super) struct Buffer {
    from: *const u8,
    pub(super) bytes: usize,
    /// `None` if it is null in the copy too.
    pub(super) place: Option<usize>,
    change: Change,
}

impl Buffer {
    /// A validity bitmap that there is not.
    const NULL: Self = Self { from: core::ptr::null(), bytes: 0, place: None, change: Change::None };
}

/// What is copied of a buffer.
struct Part {
    pointer: *const c_void,
    /// Bytes before it.
    skip: usize,
    bytes: usize,
}

/// What is done to the bytes when they are in host memory.
#[derive(Clone, Copy)]
enum Change {
    None,
    /// So many bits are moved down by less than a byte, and what follows them is cleared.
    Bits {
        shift: usize,
        count: usize,
    },
    /// The first offset is taken from all.
    Offsets {
        kind: BufferKind,
        first: usize,
    },
}

impl Plan<'_> {
    /// Gives each buffer of a node its place.
    pub(super) fn place<E>(&mut self, index: usize) -> Result<(), CopyError<E>> {
        let trims = self.trims();
        let start = self.buffers.len();
        let Some(node) = self.nodes.get_mut(index) else { return Ok(()) };
        let (array, window, format) = (node.array, node.window, node.format);
        let extent = core::mem::take(&mut node.extent);
        node.buffers = start..start;
        // Without elements nothing is copied, and nothing has to be skipped.
        let is_empty = window.length == 0;
        let skip = if is_empty || trims { window.start } else { 0 };
        let count = if is_empty { 0 } else { window.end().saturating_sub(skip) };
        let kinds = format.buffers();
        let (known, others) = array.buffers().split_at_checked(kinds.kinds().len()).unwrap_or_default();
        for (kind, pointer) in kinds.kinds().iter().zip(known) {
            let bytes = |elements: usize| kind.bytes(elements).ok_or(CopyError::OutOfMemory);
            match *kind {
                BufferKind::Validity if pointer.is_null() => {
                    push(&mut self.buffers, Buffer::NULL)?;
                }
                BufferKind::Validity | BufferKind::Bits => {
                    let shift = if is_empty { 0 } else { skip % 8 };
                    let bytes = bytes(if is_empty { 0 } else { shift.saturating_add(count) })?;
                    let change = Change::Bits { shift, count };
                    self.add_buffer(index, Part { pointer: *pointer, skip: skip / 8, bytes }, bytes, change)?;
                }
                BufferKind::Offsets32 | BufferKind::Offsets64 => {
                    let room = bytes(count)?;
                    let skip = skip.saturating_mul(if *kind == BufferKind::Offsets32 { 4 } else { 8 });
                    let part = Part { pointer: *pointer, skip, bytes: if is_empty { 0 } else { room } };
                    let change = match extent {
                        Extent::Range { first, .. } if trims => Change::Offsets { kind: *kind, first },
                        _ => Change::None,
                    };
                    self.add_buffer(index, part, room, change)?;
                }
                BufferKind::Data => {
                    let Range { start, end } = match extent {
                        Extent::Range { first, last } if trims => first..last,
                        Extent::Range { last, .. } => 0..last,
                        _ => 0..0,
                    };
                    let bytes = end.saturating_sub(start);
                    let part = Part { pointer: *pointer, skip: start, bytes };
                    self.add_buffer(index, part, bytes, Change::None)?;
                }
                _ => {
                    let (skip, bytes) = (bytes(skip)?, bytes(count)?);
                    let part = Part { pointer: *pointer, skip, bytes };
                    self.add_buffer(index, part, bytes, Change::None)?;
                }
            }
        }
        if let (Some((sizes, data)), true) = (others.split_last(), kinds.is_variadic()) {
            let known = if let Extent::Sizes(known) = &extent { known.as_slice() } else { &[] };
            for (buffer, pointer) in data.iter().enumerate() {
                let bytes = known.get(buffer).copied().unwrap_or_default();
                let part = Part { pointer: *pointer, skip: 0, bytes };
                self.add_buffer(index, part, bytes, Change::None)?;
            }
            let room = data.len().saturating_mul(size_of::<i64>());
            let part = Part { pointer: *sizes, skip: 0, bytes: if is_empty { 0 } else { room } };
            self.add_buffer(index, part, room, Change::None)?;
        }
        let end = self.buffers.len();
        let has_bitmap = known.first().is_some_and(|first| !first.is_null())
            && kinds.kinds().first() == Some(&BufferKind::Validity);
        if let Some(node) = self.nodes.get_mut(index) {
            node.buffers = start..end;
            let keeps_offset = !trims || format == Format::RunEndEncoded;
            node.offset = if is_empty || !keeps_offset { 0 } else { window.start };
            if window.length != array.length() {
                node.null_count = match format {
                    Format::Null => i64::try_from(window.length).unwrap_or(-1),
                    // To be counted.
                    _ if has_bitmap => -1,
                    _ => 0,
                };
            }
        }
        Ok(())
    }

    /// Adds a buffer of a node, with so many bytes of room in the block.
    fn add_buffer<E>(
        &mut self,
        node: usize,
        part: Part,
        room: usize,
        change: Change,
    ) -> Result<(), CopyError<E>> {
        let Part { pointer, skip, bytes } = part;
        if pointer.is_null() && bytes > 0 {
            let first = self.nodes.get(node).map_or(0, |node| node.buffers.start);
            let buffer = self.buffers.len().saturating_sub(first);
            return Err(self.invalid(node, Fault::NullBuffer { buffer, wanted: bytes }).into());
        }
        let place = self.block_bytes;
        let room = room.checked_next_multiple_of(ALIGNMENT).ok_or(CopyError::OutOfMemory)?;
        self.block_bytes = place.checked_add(room).ok_or(CopyError::OutOfMemory)?;
        self.bytes_to_copy = self.bytes_to_copy.saturating_add(bytes);
        let from = pointer.cast::<u8>().wrapping_add(skip);
        push(&mut self.buffers, Buffer { from, bytes, place: Some(place), change })
    }

    /// What has to be copied into the block at `base`.
    pub(crate) fn transfers<E>(&self, base: *mut u8) -> Result<Vec<Transfer>, CopyError<E>> {
        let mut transfers = Vec::new();
        for Buffer { from, bytes, place, .. } in &self.buffers {
            if let (Some(place), 1..) = (place, *bytes) {
                let to = base.wrapping_add(*place).cast::<c_void>();
                push(&mut transfers, Transfer::new(from.cast(), to, *bytes))?;
            }
        }
        Ok(transfers)
    }

    /// Does in the block what is left to do once all was copied.
    pub(crate) fn finish(&mut self, block: &mut [u8]) {
        for Buffer { bytes, place, change, .. } in &self.buffers {
            let Some(place) = *place else { continue };
            let Some(buffer) = block.get_mut(place..place.saturating_add(*bytes)) else { continue };
            match *change {
                Change::None => {}
                Change::Bits { shift, count } => shift_bits(buffer, shift, count),
                Change::Offsets { kind: BufferKind::Offsets32, first } => {
                    rebase(buffer, first, i32::wrapping_sub)
                }
                Change::Offsets { first, .. } => rebase(buffer, first, i64::wrapping_sub),
            }
        }
        for node in &mut self.nodes {
            let bitmap = self.buffers.get(node.buffers.start).and_then(|buffer| buffer.place);
            let is_cut = node.window.length != node.array.length();
            if let (-1, true, Some(place)) = (node.null_count, is_cut, bitmap) {
                let bits = block.get(place..).unwrap_or_default();
                let valid = count_ones(bits, node.offset, node.window.length);
                node.null_count = i64::try_from(node.window.length.saturating_sub(valid)).unwrap_or(-1);
            }
        }
    }
}

/// Takes the first offset, which no other of a valid array is below, from all.
fn rebase<T: Number + TryFrom<usize>>(bytes: &mut [u8], first: usize, minus: fn(T, T) -> T) {
    let first = T::try_from(first).unwrap_or(T::ZERO);
    for offset in bytes.chunks_exact_mut(size_of::<T>()) {
        minus(T::read(offset).unwrap_or(T::ZERO), first).write(offset);
    }
}

/// Moves `count` bits, which begin at bit `shift` of the first byte, to its bit 0, and clears what follows them.
fn shift_bits(bytes: &mut [u8], shift: usize, count: usize) {
    let mut rest = &mut *bytes;
    while let Some((byte, others)) = rest.split_first_mut() {
        let next = others.first().copied().unwrap_or_default();
        let [moved, _] = (u16::from_le_bytes([*byte, next]) >> shift).to_le_bytes();
        *byte = moved;
        rest = others;
    }
    let whole = count / 8;
    if let Some((last, rest)) = bytes.get_mut(whole..).and_then(<[u8]>::split_first_mut) {
        *last &= !(u8::MAX << (count % 8));
        rest.fill(0);
    }
}
