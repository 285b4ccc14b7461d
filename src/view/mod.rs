//! Reading a struct without touching device memory, and without panics: what a foreign struct gets wrong is an error
//! with its own words.

mod array;
mod metadata;
mod schema;

use core::alloc::Layout;
use core::fmt;

pub(crate) use array::null_count_is_possible;
pub use array::{ArrayView, BinaryViewBuffers};
pub use metadata::{Metadata, MetadataBuf, MetadataPairs};
pub use schema::SchemaView;

use crate::owned::{Owned, Release, TakeError};
use crate::raw::{ArrowArray, ArrowSchema};

/// What is wrong with a struct, or with a question about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewError {
    /// The struct is released or was moved away: nothing else in it may be read (B1).
    Released,
    /// A count, length or offset is negative.
    Negative {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// A count, length or offset is more than this platform can address.
    TooLarge {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// A pointer is null that must not be.
    Null {
        /// Name of the field.
        field: &'static str,
    },
    /// `null_count` is less than −1, more than the length, or more than 0 in an array without a validity bitmap.
    NullCount {
        /// Its value.
        value: i64,
    },
    /// A text is not UTF-8.
    NotUtf8 {
        /// Name of the field.
        field: &'static str,
    },
    /// The metadata does not follow the encoding of the interface (B9).
    Metadata {
        /// Offset in bytes of the number that is wrong.
        at: usize,
        /// The number.
        value: i32,
    },
    /// There is no child or buffer with this index.
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The index asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A buffer's address is no multiple of the alignment of the type asked for, which the interface allows
    /// producers.
    Misaligned {
        /// The buffer's index.
        buffer: usize,
        /// Alignment of the type in bytes.
        alignment: usize,
    },
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Released => f.write_str("the struct is released or was moved away"),
            Self::Negative { field, value } => write!(f, "{field} is negative: {value}"),
            Self::TooLarge { field, value } => {
                write!(f, "{field} is more than this platform can address: {value}")
            }
            Self::Null { field } => write!(f, "{field} is null"),
            Self::NullCount { value: value @ ..-1 } => {
                write!(f, "null_count is neither a count nor -1: {value}")
            }
            Self::NullCount { value } => {
                write!(f, "null_count is {value}, more than the elements or without a validity bitmap")
            }
            Self::NotUtf8 { field } => write!(f, "{field} is not UTF-8"),
            Self::Metadata { at, value } => {
                write!(f, "metadata is malformed: the count or length at byte {at} is {value}")
            }
            Self::OutOfRange { field, index, count } => {
                write!(f, "{field} has no index {index}: there are {count}")
            }
            Self::Misaligned { buffer, alignment } => {
                write!(f, "buffer {buffer} is not aligned to {alignment} bytes")
            }
        }
    }
}

impl core::error::Error for ViewError {}

/// A count of the C structs as an index type.
fn count(field: &'static str, value: i64) -> Result<usize, ViewError> {
    usize::try_from(value).map_err(|_| {
        if value < 0 { ViewError::Negative { field, value } } else { ViewError::TooLarge { field, value } }
    })
}

/// The slice of `count` pointers of type `P` at `items`. With a count of 0 the pointer is not looked at: it may be null or
/// dangling.
///
/// # Safety
///
/// - If `count` is not 0 and `items` not null, `items` is valid for reads of `count` pointers for `'a`.
unsafe fn pointers<'a, P>(field: &'static str, items: *const P, count: usize) -> Result<&'a [P], ViewError> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(ViewError::Null { field });
    }
    // No slice may be longer, so a count that is cannot be true.
    if Layout::array::<P>(count).is_err() {
        return Err(ViewError::TooLarge { field, value: i64::try_from(count).unwrap_or(i64::MAX) });
    }
    // SAFETY: not null, valid for `count` pointers as the caller promises, and not too many of them.
    Ok(unsafe { core::slice::from_raw_parts(items, count) })
}

/// Moves a child or dictionary out of its parent (B5).
///
/// # Safety
///
/// - `node` is null, or a node of a live tree that the caller owns alone.
unsafe fn take_node<T: Release>(field: &'static str, node: *mut T) -> Result<Owned<T>, ViewError> {
    // SAFETY: as the caller promises; moving a node out makes the caller its only owner, and its parent's release
    // skips it.
    unsafe { Owned::take(node) }.map_err(|error| match error {
        TakeError::Null => ViewError::Null { field },
        TakeError::Released => ViewError::Released,
    })
}

/// The item at `index`, or the error that says how many there are.
fn at<T: Copy>(field: &'static str, items: &[T], index: usize) -> Result<T, ViewError> {
    items.get(index).copied().ok_or(ViewError::OutOfRange { field, index, count: items.len() })
}

/// Arrays and schemas are trees of the same shape: children by pointer, and perhaps a dictionary.
macro_rules! tree {
    ($view:ident, $raw:ident) => {
        impl<'a> $view<'a> {
            /// The struct itself.
            #[must_use]
            pub const fn as_raw(&self) -> &'a $raw {
                self.raw
            }

            /// Number of children.
            #[must_use]
            pub const fn n_children(&self) -> usize {
                self.children.len()
            }

            fn child_ptr(&self, index: usize) -> Result<*mut $raw, ViewError> {
                at("children", self.children, index)
            }

            /// One child.
            ///
            /// # Errors
            ///
            /// [`ViewError::OutOfRange`]; [`ViewError::Null`] if its pointer is null; else what is wrong with the
            /// child, [`ViewError::Released`] if it was moved out.
            pub fn child(&self, index: usize) -> Result<Self, ViewError> {
                // SAFETY: null or a child of a live struct, as `from_raw` was promised.
                let child = unsafe { self.child_ptr(index)?.as_ref() };
                // SAFETY: the promise to `from_raw` includes the children.
                unsafe { Self::from_raw(child.ok_or(ViewError::Null { field: "child" })?) }
            }

            /// All children in order; each can fail as [`child`](Self::child) does.
            pub fn children(&self) -> impl ExactSizeIterator<Item = Result<Self, ViewError>> + use<'a> {
                let this = *self;
                (0..this.n_children()).map(move |index| this.child(index))
            }

            /// The dictionary, or `None` if there is no dictionary encoding.
            ///
            /// # Errors
            ///
            /// What is wrong with the dictionary's struct.
            pub fn dictionary(&self) -> Result<Option<Self>, ViewError> {
                // SAFETY: null or the dictionary of a live struct, as `from_raw` was promised.
                let dictionary = unsafe { self.raw.dictionary.as_ref() };
                // SAFETY: the promise to `from_raw` includes the dictionary.
                dictionary.map(|dictionary| unsafe { Self::from_raw(dictionary) }).transpose()
            }

            /// Moves a child out (B5).
            ///
            /// # Safety
            ///
            /// - The caller owns the tree, and nothing else uses the child.
            pub(crate) unsafe fn take_child(&self, index: usize) -> Result<Owned<$raw>, ViewError> {
                let child = self.child_ptr(index)?;
                // SAFETY: a child of a live struct, which is the caller's alone.
                unsafe { take_node("child", child) }
            }

            /// Moves the dictionary out (B5), if there is one.
            ///
            /// # Safety
            ///
            /// - The caller owns the tree, and nothing else uses the dictionary.
            pub(crate) unsafe fn take_dictionary(&self) -> Result<Option<Owned<$raw>>, ViewError> {
                let dictionary = self.raw.dictionary;
                if dictionary.is_null() {
                    return Ok(None);
                }
                // SAFETY: the dictionary of a live struct, which is the caller's alone.
                unsafe { take_node("dictionary", dictionary) }.map(Some)
            }
        }

        impl Owned<$raw> {
            /// The struct, to read.
            ///
            /// # Errors
            ///
            #[doc = concat!("As [`", stringify!($view), "::from_raw`].")]
            pub fn view(&self) -> Result<$view<'_>, ViewError> {
                // SAFETY: `take` was promised a struct that obeys the interface; changing or releasing it needs
                // `self` unborrowed.
                unsafe { $view::from_raw(self.as_raw()) }
            }

            /// Moves a child out (B5): it stands on its own afterwards, and `self` can be dropped before it.
            ///
            /// # Errors
            ///
            #[doc = concat!("As [`", stringify!($view), "::child`]; nothing was moved then.")]
            /// A child can be moved out once.
            pub fn take_child(&mut self, index: usize) -> Result<Self, ViewError> {
                let view = self.view()?;
                // SAFETY: `self` owns the tree, and `&mut` means that nothing else uses it.
                unsafe { view.take_child(index) }
            }

            /// Moves the dictionary out (B5), or gives `None` if there is no dictionary encoding.
            ///
            /// # Errors
            ///
            /// [`ViewError::Released`] if `self` is, or if the dictionary was moved out before.
            pub fn take_dictionary(&mut self) -> Result<Option<Self>, ViewError> {
                let view = self.view()?;
                // SAFETY: `self` owns the tree, and `&mut` means that nothing else uses it.
                unsafe { view.take_dictionary() }
            }
        }
    };
}
tree!(SchemaView, ArrowSchema);
tree!(ArrayView, ArrowArray);
