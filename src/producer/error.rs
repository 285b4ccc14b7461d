//! What can be wrong with what is to be exported.

use core::fmt;

use crate::raw::ArrowDeviceType;
use crate::view::ViewError;

/// Exporting failed, and nothing was made of it. Here is the keep-alive back.
pub struct ExportError<K> {
    /// What was to keep the buffers alive.
    pub keep: K,
    /// What failed.
    pub kind: ExportErrorKind,
}

/// What is wrong with the description of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportErrorKind {
    /// A length or offset is negative, or their sum is more than an `int64_t` holds.
    Length {
        /// The length.
        length: i64,
        /// The offset.
        offset: i64,
    },
    /// The null count is less than −1, more than the length, or more than 0 with a first buffer that is null.
    NullCount {
        /// The null count.
        null_count: i64,
    },
    /// A format or name holds a NUL byte, where C would see its end.
    Nul {
        /// Which of them.
        field: &'static str,
    },
    /// The format is empty, or its type has no such numbers.
    Format(&'static str),
    /// A node has not as many buffers as its type.
    Buffers {
        /// How many it has.
        found: usize,
    },
    /// A node has not as many children as its type, or none or one dictionary too many.
    Children {
        /// How many it has.
        found: usize,
    },
    /// More than the interface can count or the platform can address.
    TooLarge,
    /// Memory could not be allocated.
    OutOfMemory,
    /// The event is not of a kind that arrays of this device type wait for, or is a null handle.
    Event(ArrowDeviceType),
    /// The schema to copy is itself malformed.
    View(ViewError),
}

impl<K> fmt::Debug for ExportError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<K> fmt::Display for ExportError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for ExportErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { length, offset } => {
                write!(f, "length {length} and offset {offset} are negative or too large")
            }
            Self::NullCount { null_count } => {
                write!(
                    f,
                    "null_count {null_count} is not -1, or more than there are elements or validity bits"
                )
            }
            Self::Nul { field } => write!(f, "{field} holds a NUL byte"),
            Self::Format(problem) => f.write_str(problem),
            Self::Buffers { found } => write!(f, "arrays of this type have not {found} buffers"),
            Self::Children { found } => write!(f, "this type has not {found} children"),
            Self::TooLarge => f.write_str("the tree is too large"),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Event(device_type) => {
                write!(f, "an array on device type {device_type} cannot wait for this event")
            }
            Self::View(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ExportErrorKind {}
impl<K> core::error::Error for ExportError<K> {}
