//! What each type's buffers and children are.

use super::{Format, TimeUnit};

/// What a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BufferKind {
    /// One bit an element, 0 for null. May be missing if there are no nulls.
    Validity,
    /// One bit an element.
    Bits,
    /// This many bytes an element.
    Fixed(u32),
    /// An `int32_t` an element and one more.
    Offsets32,
    /// An `int64_t` an element and one more.
    Offsets64,
    /// An `int32_t` an element, no more: offsets of a list view or a dense union.
    Starts32,
    /// An `int64_t` an element, no more: offsets of a list view.
    Starts64,
    /// An `int32_t` an element: sizes of a list view.
    Sizes32,
    /// An `int64_t` an element: sizes of a list view.
    Sizes64,
    /// 16 bytes an element. Any number of data buffers follow, and last their sizes as `int64_t`.
    Views,
    /// Bytes, as many as the last offset says.
    Data,
    /// An `int8_t` an element.
    TypeIds,
}

impl BufferKind {
    /// Bytes of a buffer for as many elements: offset and length of its array together, and for [`Data`](Self::Data)
    /// the last offset. `None` if memory cannot have as many.
    ///
    /// What follows [`Views`](Self::Views) is as long as its array says.
    #[must_use]
    pub const fn bytes(self, elements: usize) -> Option<usize> {
        let (elements, width) = match self {
            Self::Validity | Self::Bits => (elements.div_ceil(8), 1),
            Self::Fixed(width) => (elements, width),
            Self::Offsets32 => (elements.saturating_add(1), 4),
            Self::Offsets64 => (elements.saturating_add(1), 8),
            Self::Starts32 | Self::Sizes32 => (elements, 4),
            Self::Starts64 | Self::Sizes64 => (elements, 8),
            Self::Views => (elements, 16),
            Self::Data | Self::TypeIds => (elements, 1),
        };
        // `usize` is 32 bits at least wherever this crate compiles.
        match elements.checked_mul(width as usize) {
            // No allocation is larger.
            Some(bytes) if bytes <= isize::MAX as usize => Some(bytes),
            _ => None,
        }
    }
}

/// How many children a type has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Children {
    /// This many.
    Exactly(usize),
    /// Any number: a struct.
    Any,
}

impl Children {
    /// Whether a type may have `n` children.
    #[must_use]
    pub const fn allows(self, n: usize) -> bool {
        match self {
            Self::Exactly(count) => n == count,
            Self::Any => true,
        }
    }
}

/// The buffers of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    kinds: [BufferKind; 3],
    len: usize,
}

impl Buffers {
    fn new(kinds: &[BufferKind]) -> Self {
        let mut this = Self { kinds: [BufferKind::Data; 3], len: 0 };
        for (to, from) in this.kinds.iter_mut().zip(kinds) {
            *to = *from;
            this.len = this.len.saturating_add(1);
        }
        this
    }

    /// What they hold, without the data buffers and sizes that follow [`BufferKind::Views`].
    #[must_use]
    pub fn kinds(&self) -> &[BufferKind] {
        self.kinds.get(..self.len).unwrap_or_default()
    }

    /// Whether any number of data buffers follow, and last their sizes.
    #[must_use]
    pub fn is_variadic(&self) -> bool {
        self.kinds().last() == Some(&BufferKind::Views)
    }

    /// Whether an array of this type may have `n` buffers.
    #[must_use]
    pub fn allows(&self, n: usize) -> bool {
        if self.is_variadic() { n > self.len } else { n == self.len }
    }
}

impl Format<'_> {
    /// What each buffer holds, in order. After [`BufferKind::Views`] the data buffers and their sizes follow.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        use BufferKind::{
            Bits, Data, Fixed, Offsets32, Offsets64, Sizes32, Sizes64, Starts32, Starts64, TypeIds, Validity,
            Views,
        };
        match *self {
            Self::Null | Self::RunEndEncoded => Buffers::new(&[]),
            Self::Boolean => Buffers::new(&[Validity, Bits]),
            Self::Int8 | Self::UInt8 => Buffers::new(&[Validity, Fixed(1)]),
            Self::Int16 | Self::UInt16 | Self::Float16 => Buffers::new(&[Validity, Fixed(2)]),
            Self::Int32
            | Self::UInt32
            | Self::Float32
            | Self::Date32
            | Self::IntervalMonths
            | Self::Time(TimeUnit::Second | TimeUnit::Millisecond) => Buffers::new(&[Validity, Fixed(4)]),
            Self::Int64
            | Self::UInt64
            | Self::Float64
            | Self::Date64
            | Self::Time(TimeUnit::Microsecond | TimeUnit::Nanosecond)
            | Self::Timestamp(..)
            | Self::Duration(_)
            | Self::IntervalDayTime => Buffers::new(&[Validity, Fixed(8)]),
            Self::IntervalMonthDayNano => Buffers::new(&[Validity, Fixed(16)]),
            Self::Decimal { bits, .. } => Buffers::new(&[Validity, Fixed(bits.bytes())]),
            Self::FixedSizeBinary(width) => Buffers::new(&[Validity, Fixed(width)]),
            Self::Binary | Self::Utf8 => Buffers::new(&[Validity, Offsets32, Data]),
            Self::LargeBinary | Self::LargeUtf8 => Buffers::new(&[Validity, Offsets64, Data]),
            Self::BinaryView | Self::Utf8View => Buffers::new(&[Validity, Views]),
            Self::List | Self::Map => Buffers::new(&[Validity, Offsets32]),
            Self::LargeList => Buffers::new(&[Validity, Offsets64]),
            Self::ListView => Buffers::new(&[Validity, Starts32, Sizes32]),
            Self::LargeListView => Buffers::new(&[Validity, Starts64, Sizes64]),
            Self::FixedSizeList(_) | Self::Struct => Buffers::new(&[Validity]),
            Self::DenseUnion(_) => Buffers::new(&[TypeIds, Starts32]),
            Self::SparseUnion(_) => Buffers::new(&[TypeIds]),
        }
    }

    /// Whether dictionary indices can be of this type: an integer.
    #[must_use]
    pub const fn is_integer(&self) -> bool {
        matches!(
            self,
            Self::Int8
                | Self::UInt8
                | Self::Int16
                | Self::UInt16
                | Self::Int32
                | Self::UInt32
                | Self::Int64
                | Self::UInt64
        )
    }

    /// How many children an array or schema of this type has.
    #[must_use]
    pub fn children(&self) -> Children {
        match self {
            Self::Struct => Children::Any,
            Self::List
            | Self::LargeList
            | Self::ListView
            | Self::LargeListView
            | Self::FixedSizeList(_)
            | Self::Map => Children::Exactly(1),
            Self::RunEndEncoded => Children::Exactly(2),
            Self::DenseUnion(ids) | Self::SparseUnion(ids) => Children::Exactly(ids.len()),
            _ => Children::Exactly(0),
        }
    }
}
