//! What the buffers of one node hold.

use super::structure::end;
use super::{Fault, views};
use crate::bits::{Number, Validity};
use crate::format::{BufferKind, Format, UnionIds};
use crate::view::{ArrayView, SchemaView};

/// Checks the contents of one node, whose structure was checked.
///
/// # Safety
///
/// - The buffers are in memory that the host can read, have the bytes that type, offset and length ask for unless they
///   are null, and nothing writes to them any more.
/// - None is null or larger than memory where the structure forbids it.
pub(super) unsafe fn check(
    schema: SchemaView<'_>,
    array: ArrayView<'_>,
    format: &Format<'_>,
    no_nulls: bool,
    run_ends: Option<usize>,
) -> Result<(), Fault> {
    // SAFETY: as the caller promises.
    let node = unsafe { Contents::new(array) };
    if *format == Format::Null {
        return node.all_null(no_nulls);
    }
    if array.length() == 0 {
        return Ok(());
    }
    let kinds = format.buffers();
    let validity = match kinds.kinds() {
        [BufferKind::Validity, ..] => node.validity(no_nulls)?,
        _ => Validity::new(None, 0),
    };
    match *format {
        Format::Binary => node.variable::<i32>(None),
        Format::LargeBinary => node.variable::<i64>(None),
        Format::Utf8 => node.variable::<i32>(Some(validity)),
        Format::LargeUtf8 => node.variable::<i64>(Some(validity)),
        Format::BinaryView => views::check(node, validity, false),
        Format::Utf8View => views::check(node, validity, true),
        Format::List | Format::Map => node.list::<i32>(),
        Format::LargeList => node.list::<i64>(),
        Format::ListView => node.list_view::<i32>(),
        Format::LargeListView => node.list_view::<i64>(),
        Format::SparseUnion(ids) => node.union_ids(ids, None),
        Format::DenseUnion(ids) => node.union_ids(ids, Some(node.part::<i32>(1)?)),
        _ => match (run_ends, schema.as_raw().dictionary.is_null()) {
            (Some(end), _) => node.run_ends(format, end),
            (None, false) => node.indices(format, validity),
            (None, true) => Ok(()),
        },
    }
}

/// A node whose buffers can be read.
#[derive(Clone, Copy)]
pub(super) struct Contents<'a> {
    pub(super) array: ArrayView<'a>,
}

impl<'a> Contents<'a> {
    /// # Safety
    ///
    /// - As for [`check`], whose checks know how many bytes to ask for.
    const unsafe fn new(array: ArrayView<'a>) -> Self {
        Self { array }
    }

    /// The first bytes of a buffer, as many as type, offset and length ask for.
    pub(super) fn bytes(self, buffer: usize, bytes: usize) -> Result<&'a [u8], Fault> {
        if bytes > isize::MAX as usize {
            return Err(Fault::TooLarge { buffer });
        }
        // SAFETY: `new` was promised that the buffer can be read and has as many bytes; no bytes are not valid.
        let found = unsafe { self.array.buffer_as::<u8>(buffer, bytes) };
        found.map_err(|_| Fault::NullBuffer { buffer, wanted: bytes })
    }

    /// The numbers of a buffer that belong to the array, and `more` behind them.
    fn window<T: Number>(self, buffer: usize, more: usize) -> Result<&'a [u8], Fault> {
        let (offset, width) = (self.array.offset(), size_of::<T>());
        let end = end(self.array).saturating_add(more);
        let bytes = self.bytes(buffer, end.saturating_mul(width))?;
        Ok(bytes.get(offset.saturating_mul(width)..).unwrap_or_default())
    }

    fn part<T: Number>(self, buffer: usize) -> Result<&'a [u8], Fault> {
        self.window::<T>(buffer, 0)
    }

    fn child_length(self, index: usize) -> Result<usize, Fault> {
        Ok(self.array.child(index).map_err(Fault::Array)?.length())
    }

    /// An array of nulls has a count that says so, or none; where there may be no nulls it has no elements.
    fn all_null(self, no_nulls: bool) -> Result<(), Fault> {
        let wanted = self.array.length();
        match self.array.null_count() {
            Some(found) if found != wanted => Err(Fault::NullCount { found, wanted }),
            _ if no_nulls && wanted > 0 => Err(Fault::NullCount { found: wanted, wanted: 0 }),
            _ => Ok(()),
        }
    }

    /// The bitmap, which is in buffer 0, checked against the null count.
    fn validity(self, no_nulls: bool) -> Result<Validity<'a>, Fault> {
        let (length, offset) = (self.array.length(), self.array.offset());
        let is_missing = self.array.buffer(0).map_err(Fault::Array)?.is_null();
        let bits = if is_missing { None } else { Some(self.bytes(0, end(self.array).div_ceil(8))?) };
        let validity = Validity::new(bits, offset);
        if bits.is_none() {
            return Ok(validity);
        }
        let nulls = validity.nulls(length);
        match self.array.null_count() {
            Some(found) if found != nulls => Err(Fault::NullCount { found, wanted: nulls }),
            _ if no_nulls && nulls > 0 => Err(Fault::NullCount { found: nulls, wanted: 0 }),
            _ => Ok(validity),
        }
    }

    /// Offsets that ascend from 0 or more; gives the first and the last.
    fn offsets<T: Number + Ord>(self, most: i128) -> Result<(usize, usize), Fault> {
        let mut all = T::all(self.window::<T>(1, 1)?);
        let first = all.next().unwrap_or(T::ZERO);
        let wrong = |element, found: T, least: i128| Fault::Value {
            what: "offset",
            element,
            found: found.into(),
            least,
            most,
        };
        if first < T::ZERO {
            return Err(wrong(0, first, 0));
        }
        let mut last = first;
        for (element, offset) in (1_usize..).zip(all) {
            if offset < last {
                return Err(wrong(element, offset, last.into()));
            }
            last = offset;
        }
        // Both are within `most`, so they are sizes.
        let size = |offset: T| usize::try_from(offset.into()).unwrap_or(usize::MAX);
        if last.into() > most {
            return Err(wrong(self.array.length(), last, first.into()));
        }
        Ok((size(first), size(last)))
    }

    /// Strings, with their validity, or binary values.
    fn variable<T: Number + Ord>(self, text: Option<Validity<'a>>) -> Result<(), Fault> {
        let (first, last) = self.offsets::<T>(isize::MAX as i128)?;
        let data = self.bytes(2, last)?;
        let Some(validity) = text else {
            return Ok(());
        };
        // Mostly it is all of it one long text, and no element begins inside a character.
        let whole = data.get(first..last).and_then(|data| core::str::from_utf8(data).ok());
        let mut start = first;
        for (element, end) in T::all(self.window::<T>(1, 1)?).skip(1).enumerate() {
            let end = usize::try_from(end.into()).unwrap_or(usize::MAX);
            let is_cut =
                |at: usize| whole.is_none_or(|text| !text.is_char_boundary(at.saturating_sub(first)));
            let is_text = || data.get(start..end).is_some_and(|text| core::str::from_utf8(text).is_ok());
            if (is_cut(start) || is_cut(end)) && validity.is_valid(element) && !is_text() {
                return Err(Fault::Utf8 { element });
            }
            start = end;
        }
        Ok(())
    }

    fn list<T: Number + Ord>(self) -> Result<(), Fault> {
        self.offsets::<T>(self.child_length(0)? as i128).map(drop)
    }

    fn list_view<T: Number>(self) -> Result<(), Fault> {
        let most = self.child_length(0)? as i128;
        let pairs = T::all(self.part::<T>(1)?).zip(T::all(self.part::<T>(2)?));
        for (element, (start, size)) in pairs.enumerate() {
            let start = start.into();
            between("offset", element, start, 0, most)?;
            between("size", element, size.into(), 0, most.saturating_sub(start))?;
        }
        Ok(())
    }

    /// Type ids that the union has, and for a dense one offsets that do not go back and are inside the child.
    fn union_ids(self, ids: UnionIds<'_>, offsets: Option<&[u8]>) -> Result<(), Fault> {
        /// What is known of a child by its type id.
        #[derive(Clone, Copy)]
        struct Child {
            length: i128,
            least: i128,
        }
        let mut children = [None; 128];
        for (index, id) in ids.iter().enumerate() {
            if let Some(child) = children.get_mut(usize::from(id)) {
                *child = Some(Child { length: self.child_length(index)? as i128, least: 0 });
            }
        }
        let mut offsets = offsets.map(i32::all);
        for (element, found) in i8::all(self.part::<i8>(0)?).enumerate() {
            let child = usize::try_from(found).ok().and_then(|id| children.get_mut(id)?.as_mut());
            let child = child.ok_or(Fault::TypeId { element, found })?;
            if let Some(offset) = offsets.as_mut().and_then(Iterator::next) {
                let offset = i128::from(offset);
                between("offset", element, offset, child.least, child.length.saturating_sub(1))?;
                child.least = offset;
            }
        }
        Ok(())
    }

    /// Run ends that ascend from 1 or more, the last of them behind the parent's last element.
    fn run_ends(self, format: &Format<'_>, end: usize) -> Result<(), Fault> {
        match format {
            Format::Int16 => self.ascending::<i16>(end),
            Format::Int32 => self.ascending::<i32>(end),
            _ => self.ascending::<i64>(end),
        }
    }

    fn ascending<T: Number>(self, end: usize) -> Result<(), Fault> {
        let bytes = self.part::<T>(1)?;
        // The most that the type holds.
        let most = (1_i128 << (size_of::<T>().saturating_mul(8).saturating_sub(1))).saturating_sub(1);
        let mut last = 0_i128;
        for (element, run_end) in T::all(bytes).enumerate() {
            between("run end", element, run_end.into(), last.saturating_add(1), most)?;
            last = run_end.into();
        }
        between("run end", self.array.length().saturating_sub(1), last, end as i128, most)
    }

    /// Indices of values that are there, but for nulls.
    fn indices(self, format: &Format<'_>, validity: Validity<'_>) -> Result<(), Fault> {
        match format {
            Format::Int8 => self.in_range::<i8>(validity),
            Format::UInt8 => self.in_range::<u8>(validity),
            Format::Int16 => self.in_range::<i16>(validity),
            Format::UInt16 => self.in_range::<u16>(validity),
            Format::Int32 => self.in_range::<i32>(validity),
            Format::UInt32 => self.in_range::<u32>(validity),
            Format::Int64 => self.in_range::<i64>(validity),
            _ => self.in_range::<u64>(validity),
        }
    }

    fn in_range<T: Number>(self, validity: Validity<'_>) -> Result<(), Fault> {
        let values = self.array.dictionary().map_err(Fault::Array)?.map_or(0, |values| values.length());
        let most = (values as i128).saturating_sub(1);
        for (element, index) in T::all(self.part::<T>(1)?).enumerate() {
            if !(0..=most).contains(&index.into()) && validity.is_valid(element) {
                return between("dictionary index", element, index.into(), 0, most);
            }
        }
        Ok(())
    }
}

pub(super) fn between(
    what: &'static str,
    element: usize,
    found: i128,
    least: i128,
    most: i128,
) -> Result<(), Fault> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(Fault::Value { what, element, found, least, most })
    }
}
