//! [`ArrayView`].

use core::ffi::c_void;

use super::{ViewError, at, count, pointers};
use crate::raw::ArrowArray;

/// A live array, to read: counts, buffer pointers, children, dictionary.
///
/// Making one checks what the struct alone can show; it reads no buffer. What the numbers mean for a format, and
/// whether buffers are long enough, only the schema can tell.
#[derive(Debug, Clone, Copy)]
pub struct ArrayView<'a> {
    pub(super) raw: &'a ArrowArray,
    length: usize,
    offset: usize,
    null_count: Option<usize>,
    buffers: &'a [*const c_void],
    pub(super) children: &'a [*mut ArrowArray],
}

/// The buffers of a binary or string view array (`vz`, `vu`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BinaryViewBuffers<'a> {
    /// The validity bitmap, or null.
    pub validity: *const c_void,
    /// The views, 16 bytes an element.
    pub views: *const c_void,
    /// The variadic data buffers, possibly none.
    pub data: &'a [*const c_void],
    /// Their sizes in bytes, as `int64_t`, one for each of [`data`](Self::data); on the same device as they.
    pub sizes: *const c_void,
}

impl<'a> ArrayView<'a> {
    /// Reads the counts of `raw` and checks them.
    ///
    /// # Errors
    ///
    /// A [`ViewError`] if the struct is released, a number is negative or too large, `null_count` cannot be right
    /// ([C23, C24](ViewError::NullCount)), or an array of pointers is missing.
    ///
    /// # Safety
    ///
    /// - If `raw` is live, it obeys the C Data Interface (its pointer arrays have the lengths that it says, its
    ///   children and dictionary do likewise), and nobody changes or releases any of it during `'a`.
    pub unsafe fn from_raw(raw: &'a ArrowArray) -> Result<Self, ViewError> {
        if raw.is_released() {
            return Err(ViewError::Released);
        }
        let length = count("length", raw.length)?;
        let offset = count("offset", raw.offset)?;
        let end = "offset + length";
        let too_large = ViewError::TooLarge { field: end, value: i64::MAX };
        count(end, raw.offset.checked_add(raw.length).ok_or(too_large)?)?;
        // SAFETY: `raw` is live, so its pointer arrays have the lengths that it says.
        let buffers =
            unsafe { pointers("buffers", raw.buffers.cast_const(), count("n_buffers", raw.n_buffers)?) }?;
        // SAFETY: as above.
        let children =
            unsafe { pointers("children", raw.children.cast_const(), count("n_children", raw.n_children)?) }?;
        let null_count = match raw.null_count {
            -1 => None,
            nulls if !null_count_is_possible(nulls, raw.length, buffers, children.is_empty()) => {
                return Err(ViewError::NullCount { value: nulls });
            }
            nulls => Some(count("null_count", nulls)?),
        };
        Ok(Self { raw, length, offset, null_count, buffers, children })
    }

    /// Number of elements.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Number of elements to skip at the start of the buffers, and of a struct's children.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Number of nulls, or `None` if the producer did not count them (B8).
    ///
    /// `None` is possible without a validity bitmap too: there are no nulls then (C24).
    #[must_use]
    pub const fn null_count(&self) -> Option<usize> {
        self.null_count
    }

    /// The buffer pointers, in the order of the format. Each may be null if it has no bytes, the validity bitmap
    /// also if there are no nulls (B7).
    #[must_use]
    pub const fn buffers(&self) -> &'a [*const c_void] {
        self.buffers
    }

    /// One buffer pointer.
    ///
    /// # Errors
    ///
    /// [`ViewError::OutOfRange`].
    pub fn buffer(&self, index: usize) -> Result<*const c_void, ViewError> {
        at("buffers", self.buffers, index)
    }

    /// Buffer `index` as `count` values of type `T`, counted from the start of the buffer, so without the offset.
    ///
    /// With a count of 0 the slice is empty, whatever the pointer: it may be null or dangling (B7).
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](ViewError::OutOfRange); [`Null`](ViewError::Null) if there are values but no buffer;
    /// [`Misaligned`](ViewError::Misaligned) if `T` cannot be read at this address, which producers are free to do
    /// (C27): read the bytes as `T = u8` then.
    ///
    /// # Safety
    ///
    /// - The buffer is in memory that the host can read, and nothing writes to it any more.
    /// - It has at least `count * size_of::<T>()` bytes, and each is part of a valid `T`.
    pub unsafe fn buffer_as<T: Copy>(&self, index: usize, count: usize) -> Result<&'a [T], ViewError> {
        let buffer: *const T = self.buffer(index)?.cast();
        if count == 0 {
            return Ok(&[]);
        }
        if buffer.is_null() {
            return Err(ViewError::Null { field: "buffer" });
        }
        if !buffer.is_aligned() {
            return Err(ViewError::Misaligned { buffer: index, alignment: align_of::<T>() });
        }
        // SAFETY: not null, aligned, and readable for `count` valid values as the caller promises; the producer does
        // not write to exported data (D14).
        Ok(unsafe { core::slice::from_raw_parts(buffer, count) })
    }

    /// The buffers of a binary or string view array by their roles: validity, views, any number of data buffers, and
    /// last the sizes of these (C25).
    ///
    /// # Errors
    ///
    /// [`ViewError::OutOfRange`] if there are less than three.
    pub fn binary_view_buffers(&self) -> Result<BinaryViewBuffers<'a>, ViewError> {
        match self.buffers {
            &[validity, views, ref data @ .., sizes] => {
                Ok(BinaryViewBuffers { validity, views, data, sizes })
            }
            fewer => Err(ViewError::OutOfRange { field: "buffers", index: 2, count: fewer.len() }),
        }
    }
}

/// Whether an array of some type can have this null count.
///
/// No type has nulls and a bitmap that is missing. Where the first buffer is not a bitmap, as in a union, there are no
/// nulls; where there need not be one, as in an array of type `n`, some producers have one that is null.
pub(crate) fn null_count_is_possible(
    null_count: i64,
    length: i64,
    buffers: &[*const c_void],
    no_children: bool,
) -> bool {
    let no_bitmap = buffers.first().is_some_and(|validity| validity.is_null());
    let all_null = buffers.len() == 1 && no_children && null_count == length;
    match null_count {
        -1 | 0 => true,
        nulls => (0..=length).contains(&nulls) && (!no_bitmap || all_null),
    }
}
