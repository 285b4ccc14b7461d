//! What is wrong with a struct, and where.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::device::Device;
use crate::format::Children;
use crate::view::ViewError;

/// A struct is not what its schema says, or a schema is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(Box<At>);

/// A box, because the results that carry it are moved for every node, and hardly ever carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct At {
    path: String,
    fault: Fault,
}

impl Invalid {
    /// The way to the node: the root's name, then for each child its name and index, such as
    /// `root.items[2].dictionary`. A root without a name is called `root`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What is wrong there.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    pub(crate) fn at(mut self, path: String) -> Self {
        self.0.path = path;
        self
    }
}

impl From<Fault> for Invalid {
    #[cold]
    fn from(fault: Fault) -> Self {
        Self(Box::new(At { path: String::new(), fault }))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            "" => self.fault().fmt(f),
            path => write!(f, "{path}: {}", self.fault()),
        }
    }
}

impl core::error::Error for Invalid {}

/// What is wrong with a node.
///
/// Elements are counted from the array's offset, bytes and buffers from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The schema's struct shows it by itself.
    Schema(ViewError),
    /// The array's struct shows it by itself.
    Array(ViewError),
    /// The format string is unknown, or says what its type does not allow.
    Format {
        /// The format string.
        format: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The schema has not as many children as its type.
    SchemaChildren {
        /// How many it has.
        found: usize,
        /// How many its type has.
        wanted: Children,
    },
    /// A child or index is of a type that its place does not allow.
    Type {
        /// Its format string.
        found: String,
        /// What it has to be.
        wanted: &'static str,
    },
    /// The tree is deeper than the caller allows, or points to itself.
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// The tree has more nodes than the caller allows, or shares them.
    TooManyNodes {
        /// How many it may have.
        limit: usize,
    },
    /// The array has not as many children as the schema.
    Children {
        /// How many it has.
        found: usize,
        /// How many the schema has.
        wanted: usize,
    },
    /// Only one of schema and array has a dictionary.
    Dictionary {
        /// Whether it is the array.
        found: bool,
    },
    /// The array has not as many buffers as its type.
    Buffers {
        /// How many it has.
        found: usize,
        /// How many its type has; of a view type, at least.
        wanted: usize,
    },
    /// A buffer would be larger than memory can be.
    TooLarge {
        /// Its index.
        buffer: usize,
    },
    /// A buffer is null though it cannot be empty (B7).
    NullBuffer {
        /// Its index.
        buffer: usize,
        /// How many bytes it has to have.
        wanted: usize,
    },
    /// The array is shorter than its parent needs it.
    Length {
        /// Its length.
        found: usize,
        /// What its parent reaches for.
        wanted: usize,
    },
    /// The null count is not that of the bitmap; or there are nulls where there can be none: in unions, run-end
    /// encoded arrays, run ends, and the entries and keys of maps.
    NullCount {
        /// As the array says, or as its bitmap does where that is unknown.
        found: usize,
        /// As the bitmap says, or 0.
        wanted: usize,
    },
    /// A number in a buffer is out of range.
    Value {
        /// What it is.
        what: &'static str,
        /// Which element's; for the size of a data buffer, which one's.
        element: usize,
        /// The number.
        found: i128,
        /// The least that it can be.
        least: i128,
        /// The most that it can be.
        most: i128,
    },
    /// A type id is none of the union's.
    TypeId {
        /// Which element's.
        element: usize,
        /// The id.
        found: i8,
    },
    /// A text is not UTF-8.
    Utf8 {
        /// Which element.
        element: usize,
    },
    /// The first bytes of a value are not those that its view repeats.
    Prefix {
        /// Which element's.
        element: usize,
    },
    /// A view is not filled up with zeros behind a short value.
    Padding {
        /// Which element's.
        element: usize,
    },
    /// The contents are not for the host to read: other memory, or only a queue has waited for them.
    NotHostReady {
        /// Where they are.
        device: Device,
    },
    /// Memory could not be allocated, for a tree deeper than 16 nodes.
    OutOfMemory,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(error) => write!(f, "schema: {error}"),
            Self::Array(error) => write!(f, "array: {error}"),
            Self::Format { format, problem } => write!(f, "format {format:?}: {problem}"),
            Self::SchemaChildren { found, wanted: Children::Exactly(wanted) } => {
                write!(f, "the schema has {found} children, its type {wanted}")
            }
            Self::SchemaChildren { found, wanted: Children::Any } => {
                write!(f, "the schema has {found} children")
            }
            Self::Type { found, wanted } => write!(f, "found format {found:?}, wanted {wanted}"),
            Self::TooDeep { limit } => write!(f, "more than {limit} nodes deep"),
            Self::TooManyNodes { limit } => write!(f, "more than {limit} nodes"),
            Self::Children { found, wanted } => write!(f, "found {found} children, wanted {wanted}"),
            Self::Dictionary { found: true } => f.write_str("found a dictionary, wanted none"),
            Self::Dictionary { found: false } => f.write_str("found no dictionary, wanted one"),
            Self::Buffers { found, wanted } => write!(f, "found {found} buffers, wanted {wanted}"),
            Self::TooLarge { buffer } => write!(f, "buffer {buffer} is larger than memory can be"),
            Self::NullBuffer { buffer, wanted } => {
                write!(f, "buffer {buffer} is null, wanted {wanted} bytes")
            }
            Self::Length { found, wanted } => write!(f, "length is {found}, its parent needs {wanted}"),
            Self::NullCount { found, wanted } => write!(f, "null_count is {found}, wanted {wanted}"),
            Self::Value { what, element, found, least, most } if least > most => {
                write!(f, "{what} of element {element} is {found}, and none can be right")
            }
            Self::Value { what, element, found, least, most } => {
                write!(f, "{what} of element {element} is {found}, wanted {least} to {most}")
            }
            Self::TypeId { element, found } => {
                write!(f, "type id of element {element} is {found}, which the union has not")
            }
            Self::Utf8 { element } => write!(f, "element {element} is not UTF-8"),
            Self::Prefix { element } => {
                write!(f, "the view of element {element} begins otherwise than its data")
            }
            Self::Padding { element } => {
                write!(f, "the view of element {element} is not filled up with zeros")
            }
            Self::NotHostReady { device } => {
                write!(f, "the contents on {device} are not for the host to read, or not yet")
            }
            Self::OutOfMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for Fault {}
