//! [`SchemaView`].

use core::ffi::{CStr, c_char};

use super::{Metadata, ViewError, count, pointers};
use crate::raw::{
    ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_MAP_KEYS_SORTED, ARROW_FLAG_NULLABLE, ArrowSchema,
};

/// A live schema, to read: format, name, metadata, flags, children, dictionary.
#[derive(Debug, Clone, Copy)]
pub struct SchemaView<'a> {
    pub(super) raw: &'a ArrowSchema,
    format: &'a CStr,
    pub(super) children: &'a [*mut ArrowSchema],
}

impl<'a> SchemaView<'a> {
    /// Reads `raw` and checks its counts and pointers.
    ///
    /// # Errors
    ///
    /// A [`ViewError`] if the struct is released, its format is null, or the number of children is negative or they
    /// are missing.
    ///
    /// # Safety
    ///
    /// - If `raw` is live, it obeys the C Data Interface (its texts end in NUL, its metadata is as long as it says,
    ///   there are as many children as it says, and they and the dictionary do likewise), and nobody changes or
    ///   releases any of it during `'a`.
    pub unsafe fn from_raw(raw: &'a ArrowSchema) -> Result<Self, ViewError> {
        if raw.is_released() {
            return Err(ViewError::Released);
        }
        // SAFETY: `raw` is live, so its format is null (which it must not be) or ends in NUL.
        let format = unsafe { text(raw.format) }.ok_or(ViewError::Null { field: "format" })?;
        // SAFETY: `raw` is live, so it has as many children as it says.
        let children =
            unsafe { pointers("children", raw.children.cast_const(), count("n_children", raw.n_children)?) }?;
        Ok(Self { raw, format, children })
    }

    /// The format string, such as `i` or `+s`.
    ///
    /// # Errors
    ///
    /// [`ViewError::NotUtf8`]; the bytes are in [`format_bytes`](Self::format_bytes).
    pub const fn format(&self) -> Result<&'a str, ViewError> {
        match self.format.to_str() {
            Ok(format) => Ok(format),
            Err(_) => Err(ViewError::NotUtf8 { field: "format" }),
        }
    }

    /// The bytes of the format string, without the NUL.
    #[must_use]
    pub const fn format_bytes(&self) -> &'a [u8] {
        self.format.to_bytes()
    }

    /// The field's name; `None` if the pointer is null, which means the same as an empty name.
    ///
    /// # Errors
    ///
    /// [`ViewError::NotUtf8`]; the bytes are in [`name_bytes`](Self::name_bytes).
    pub fn name(&self) -> Result<Option<&'a str>, ViewError> {
        self.name_bytes()
            .map(|name| core::str::from_utf8(name).map_err(|_| ViewError::NotUtf8 { field: "name" }))
            .transpose()
    }

    /// The bytes of the field's name, without the NUL; `None` if the pointer is null.
    #[must_use]
    pub fn name_bytes(&self) -> Option<&'a [u8]> {
        // SAFETY: `raw` is live, so its name is null or ends in NUL.
        unsafe { text(self.raw.name) }.map(CStr::to_bytes)
    }

    /// The key-value pairs; none if the pointer is null.
    ///
    /// # Errors
    ///
    /// [`ViewError::Metadata`] if a count or length in it is negative.
    pub fn metadata(&self) -> Result<Metadata<'a>, ViewError> {
        // SAFETY: `raw` is live, so its metadata is null or as long as it says.
        unsafe { Metadata::from_ptr(self.raw.metadata) }
    }

    /// All bits of `flags`, known or not (C30).
    #[must_use]
    pub const fn flags(&self) -> i64 {
        self.raw.flags
    }

    /// Whether the order of the dictionary's values means something.
    #[must_use]
    pub const fn is_dictionary_ordered(&self) -> bool {
        self.raw.flags & ARROW_FLAG_DICTIONARY_ORDERED != 0
    }

    /// Whether the field may hold nulls.
    #[must_use]
    pub const fn is_nullable(&self) -> bool {
        self.raw.flags & ARROW_FLAG_NULLABLE != 0
    }

    /// Whether the keys within each map value are sorted.
    #[must_use]
    pub const fn is_map_keys_sorted(&self) -> bool {
        self.raw.flags & ARROW_FLAG_MAP_KEYS_SORTED != 0
    }
}

/// A C text, or `None` if the pointer is null.
///
/// # Safety
///
/// - `text` is null, or ends in NUL and stays as it is for `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: not null, so it ends in NUL as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
