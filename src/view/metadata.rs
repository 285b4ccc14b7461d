//! [`Metadata`]: the binary encoding of key-value pairs in a schema.

use alloc::boxed::Box;
use alloc::string::String;
use core::ffi::c_char;
use core::fmt;
use core::iter::FusedIterator;

use super::ViewError;

/// The key-value pairs of a schema: raw bytes, in the order of the producer (B9).
///
/// Keys and values are UTF-8 by convention only (C29), and a key may stand there twice. No metadata and metadata with
/// no pairs are equal.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Metadata<'a> {
    count: usize,
    /// What follows the count. `from_ptr` walked it: it holds `count` whole pairs and no more.
    pairs: &'a [u8],
}

/// Bytes of each number in the encoding.
const NUMBER: usize = size_of::<i32>();

impl<'a> Metadata<'a> {
    /// Walks the metadata at `ptr` and checks every length; a null pointer has no pairs.
    ///
    /// # Errors
    ///
    /// [`ViewError::Metadata`] if a count or length is negative or too large for this platform.
    ///
    /// # Safety
    ///
    /// - `ptr` is null, or points to metadata in the encoding of the C Data Interface, at any alignment, that stays
    ///   as it is for `'a`: an `int32_t` count, and for each pair twice an `int32_t` length and as many bytes.
    pub unsafe fn from_ptr(ptr: *const c_char) -> Result<Self, ViewError> {
        if ptr.is_null() {
            return Ok(Self::default());
        }
        // The number `at` bytes after the count, and where it ends.
        let number = |at: usize| {
            let place = ptr.cast::<i32>().wrapping_byte_add(NUMBER).wrapping_byte_add(at);
            // SAFETY: the encoding has a number after the count and after each text, at any alignment, and `at` is
            // one of these places.
            let value = unsafe { place.read_unaligned() };
            let malformed = ViewError::Metadata { at: at.saturating_add(NUMBER), value };
            let length = usize::try_from(value).map_err(|_| malformed)?;
            Ok((length, at.checked_add(NUMBER).ok_or(malformed)?, malformed))
        };
        // SAFETY: the encoding starts with the count, at any alignment.
        let value = unsafe { ptr.cast::<i32>().read_unaligned() };
        let count = usize::try_from(value).map_err(|_| ViewError::Metadata { at: 0, value })?;
        let mut end = 0;
        for _ in 0..count {
            for _key_then_value in 0..2 {
                let (length, text, malformed) = number(end)?;
                end = text.checked_add(length).ok_or(malformed)?;
            }
        }
        // SAFETY: the walk found `end` bytes after the count, and they are valid and unchanged for `'a`.
        let pairs = unsafe { core::slice::from_raw_parts(ptr.cast::<u8>().wrapping_add(NUMBER), end) };
        Ok(Self { count, pairs })
    }

    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no pairs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The value of the first pair with this key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.iter().find_map(|(k, value)| (k == key).then_some(value))
    }

    /// The pairs, key and value.
    #[must_use]
    pub const fn iter(&self) -> MetadataPairs<'a> {
        MetadataPairs { remaining: self.count, rest: self.pairs }
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        f.debug_map().entries(self.iter().map(|(key, value)| (text(key), text(value)))).finish()
    }
}

impl<'a> IntoIterator for Metadata<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = MetadataPairs<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &Metadata<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = MetadataPairs<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The pairs of a [`Metadata`].
#[derive(Debug, Clone)]
pub struct MetadataPairs<'a> {
    remaining: usize,
    rest: &'a [u8],
}

impl<'a> MetadataPairs<'a> {
    fn text(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.rest.split_first_chunk::<NUMBER>()?;
        let length = usize::try_from(i32::from_ne_bytes(*length)).ok()?;
        let (text, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }
}

impl<'a> Iterator for MetadataPairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        Some((self.text()?, self.text()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for MetadataPairs<'_> {}
impl FusedIterator for MetadataPairs<'_> {}

/// Key-value pairs in a place of their own: a copy of somebody's [`Metadata`], in the interface's encoding.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MetadataBuf {
    /// The encoding; nothing at all for no pairs.
    encoded: Box<[u8]>,
    count: usize,
}

impl MetadataBuf {
    /// The pairs.
    #[must_use]
    pub fn as_metadata(&self) -> Metadata<'_> {
        Metadata { count: self.count, pairs: self.encoded.get(NUMBER..).unwrap_or_default() }
    }

    /// The encoding, or null for no pairs; valid as long as `self` is not dropped.
    #[cfg(feature = "async")]
    pub(crate) fn as_ptr(&self) -> *const c_char {
        if self.encoded.is_empty() { core::ptr::null() } else { self.encoded.as_ptr().cast() }
    }
}

impl From<Metadata<'_>> for MetadataBuf {
    fn from(metadata: Metadata<'_>) -> Self {
        let Ok(count @ 1..) = i32::try_from(metadata.count) else {
            return Self::default();
        };
        let encoded = [&count.to_ne_bytes(), metadata.pairs].concat();
        Self { encoded: encoded.into(), count: metadata.count }
    }
}

impl fmt::Debug for MetadataBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_metadata().fmt(f)
    }
}
