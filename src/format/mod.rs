//! Format strings as a typed description: the one place that knows what each type's buffers and children are.

mod parse;

use core::fmt;

/// A type of the C Data Interface, as its format string says it
/// ([format strings](https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings)).
///
/// [`parse`](Self::parse) reads a format string and `Display` writes it; neither allocates. A dictionary-encoded
/// field has the format of its indices; the type of the values is in the schema's dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format<'a> {
    /// `n`: no buffers, all null.
    Null,
    /// `b`: one bit a value.
    Boolean,
    /// `c`
    Int8,
    /// `C`
    UInt8,
    /// `s`
    Int16,
    /// `S`
    UInt16,
    /// `i`
    Int32,
    /// `I`
    UInt32,
    /// `l`
    Int64,
    /// `L`
    UInt64,
    /// `e`
    Float16,
    /// `f`
    Float32,
    /// `g`
    Float64,
    /// `z`: 32-bit offsets.
    Binary,
    /// `Z`: 64-bit offsets.
    LargeBinary,
    /// `vz`: 16-byte views into any number of data buffers.
    BinaryView,
    /// `u`: 32-bit offsets.
    Utf8,
    /// `U`: 64-bit offsets.
    LargeUtf8,
    /// `vu`: 16-byte views into any number of data buffers.
    Utf8View,
    /// `d:precision,scale` with 128 bits, `d:precision,scale,bits` else.
    Decimal {
        /// Number of significant digits, at least 1.
        precision: u8,
        /// Number of digits after the decimal point; may be negative.
        scale: i8,
        /// Width of the integer.
        bits: DecimalBits,
    },
    /// `w:width`: that many bytes a value.
    FixedSizeBinary(u32),
    /// `tdD`: days.
    Date32,
    /// `tdm`: milliseconds.
    Date64,
    /// `tts`, `ttm` (32-bit), `ttu`, `ttn` (64-bit): time of day.
    Time(TimeUnit),
    /// `tss:zone`, `tsm:zone`, `tsu:zone`, `tsn:zone`: 64-bit, with a zone that may be empty.
    Timestamp(TimeUnit, &'a str),
    /// `tDs`, `tDm`, `tDu`, `tDn`: 64-bit.
    Duration(TimeUnit),
    /// `tiM`: 32-bit months.
    IntervalMonths,
    /// `tiD`: days and milliseconds, 32-bit each.
    IntervalDayTime,
    /// `tin`: 32-bit months, 32-bit days, 64-bit nanoseconds.
    IntervalMonthDayNano,
    /// `+l`: 32-bit offsets.
    List,
    /// `+L`: 64-bit offsets.
    LargeList,
    /// `+vl`: 32-bit offsets and sizes.
    ListView,
    /// `+vL`: 64-bit offsets and sizes.
    LargeListView,
    /// `+w:size`: that many values an element.
    FixedSizeList(u32),
    /// `+s`
    Struct,
    /// `+m`: lists of entries, each a struct of key and value.
    Map,
    /// `+ud:ids`: type ids and 32-bit offsets.
    DenseUnion(UnionIds<'a>),
    /// `+us:ids`: type ids.
    SparseUnion(UnionIds<'a>),
    /// `+r`: two children, run ends and values.
    RunEndEncoded,
}

/// Width of a decimal's integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecimalBits {
    /// Up to 9 digits.
    Bits32,
    /// Up to 18 digits.
    Bits64,
    /// Up to 38 digits: what a format string without a width means.
    Bits128,
    /// Up to 76 digits.
    Bits256,
}

impl DecimalBits {
    /// Bytes of a value.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
            Self::Bits128 => 16,
            Self::Bits256 => 32,
        }
    }

    /// The most digits that fit.
    #[must_use]
    pub const fn max_precision(self) -> u8 {
        match self {
            Self::Bits32 => 9,
            Self::Bits64 => 18,
            Self::Bits128 => 38,
            Self::Bits256 => 76,
        }
    }
}

/// Unit of a time, timestamp or duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeUnit {
    /// `s`
    Second,
    /// `m`
    Millisecond,
    /// `u`
    Microsecond,
    /// `n`
    Nanosecond,
}

impl TimeUnit {
    const ALL: [(u8, Self); 4] = [
        (b's', Self::Second),
        (b'm', Self::Millisecond),
        (b'u', Self::Microsecond),
        (b'n', Self::Nanosecond),
    ];

    const fn letter(self) -> char {
        match self {
            Self::Second => 's',
            Self::Millisecond => 'm',
            Self::Microsecond => 'u',
            Self::Nanosecond => 'n',
        }
    }
}

/// The type ids of a union in the order of its children: different numbers from 0 to 127.
///
/// Borrowed from whoever gave them: the format string, or a slice.
#[derive(Clone, Copy)]
pub struct UnionIds<'a>(Ids<'a>);

#[derive(Clone, Copy)]
enum Ids<'a> {
    /// Numbers with commas between them.
    Text(&'a str),
    Numbers(&'a [u8]),
}

impl<'a> UnionIds<'a> {
    /// The ids of a union with as many children.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if an id is above 127 or stands there twice.
    pub fn new(ids: &'a [u8]) -> Result<Self, FormatError<'static>> {
        Self::checked(ids.iter().map(|id| Some(*id)), Ids::Numbers(ids))
            .ok_or(FormatError { format: "", problem: parse::UNION_IDS })
    }

    /// From the part of a format string behind the colon.
    fn parse(list: &'a str) -> Option<Self> {
        let ids = list.split(',').filter(|_| !list.is_empty()).map(parse::number);
        Self::checked(ids, Ids::Text(list))
    }

    fn checked(mut ids: impl Iterator<Item = Option<u8>>, from: Ids<'a>) -> Option<Self> {
        let mut seen = 0_u128;
        ids.try_for_each(|id| {
            let bit = 1_u128.checked_shl(u32::from(id?))?;
            let new = seen & bit == 0;
            seen |= bit;
            new.then_some(())
        })
        .map(|()| Self(from))
    }

    /// The ids.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<'a> {
        let (text, numbers) = match self.0 {
            Ids::Text(text) => (text, &[][..]),
            Ids::Numbers(numbers) => ("", numbers),
        };
        text.split(',').filter_map(parse::number).chain(numbers.iter().copied())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            Ids::Text("") => 0,
            Ids::Text(text) => text.split(',').count(),
            Ids::Numbers(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PartialEq for UnionIds<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for UnionIds<'_> {}

impl fmt::Debug for UnionIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for UnionIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        self.iter().try_for_each(|id| write!(f, "{}{id}", core::mem::replace(&mut separator, ",")))
    }
}

/// A format string that is unknown or says what its type does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatError<'a> {
    format: &'a str,
    problem: &'static str,
}

impl FormatError<'_> {
    /// What is wrong, without the format string.
    #[must_use]
    pub const fn problem(&self) -> &'static str {
        self.problem
    }

    /// Whether the type is not known at all, as opposed to known and impossible.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.problem == parse::UNKNOWN
    }

    /// The format string, or an empty text if there was none yet.
    #[must_use]
    pub const fn format(&self) -> &str {
        self.format
    }
}

impl fmt::Display for FormatError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.format.is_empty() {
            f.write_str(self.problem)
        } else {
            write!(f, "format {:?}: {}", self.format, self.problem)
        }
    }
}

impl core::error::Error for FormatError<'_> {}

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

impl<'a> Format<'a> {
    /// A decimal, checked.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the precision is 0 or does not fit the width.
    pub fn decimal(precision: u8, scale: i8, bits: DecimalBits) -> Result<Self, FormatError<'a>> {
        if precision == 0 || precision > bits.max_precision() {
            return Err(FormatError { format: "", problem: parse::PRECISION });
        }
        Ok(Self::Decimal { precision, scale, bits })
    }

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

impl fmt::Display for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "n",
            Self::Boolean => "b",
            Self::Int8 => "c",
            Self::UInt8 => "C",
            Self::Int16 => "s",
            Self::UInt16 => "S",
            Self::Int32 => "i",
            Self::UInt32 => "I",
            Self::Int64 => "l",
            Self::UInt64 => "L",
            Self::Float16 => "e",
            Self::Float32 => "f",
            Self::Float64 => "g",
            Self::Binary => "z",
            Self::LargeBinary => "Z",
            Self::BinaryView => "vz",
            Self::Utf8 => "u",
            Self::LargeUtf8 => "U",
            Self::Utf8View => "vu",
            Self::Date32 => "tdD",
            Self::Date64 => "tdm",
            Self::IntervalMonths => "tiM",
            Self::IntervalDayTime => "tiD",
            Self::IntervalMonthDayNano => "tin",
            Self::List => "+l",
            Self::LargeList => "+L",
            Self::ListView => "+vl",
            Self::LargeListView => "+vL",
            Self::Struct => "+s",
            Self::Map => "+m",
            Self::RunEndEncoded => "+r",
            Self::Time(unit) => return write!(f, "tt{}", unit.letter()),
            Self::Timestamp(unit, zone) => return write!(f, "ts{}:{zone}", unit.letter()),
            Self::Duration(unit) => return write!(f, "tD{}", unit.letter()),
            Self::FixedSizeBinary(width) => return write!(f, "w:{width}"),
            Self::FixedSizeList(size) => return write!(f, "+w:{size}"),
            Self::DenseUnion(ids) => return write!(f, "+ud:{ids}"),
            Self::SparseUnion(ids) => return write!(f, "+us:{ids}"),
            Self::Decimal { precision, scale, bits: DecimalBits::Bits128 } => {
                return write!(f, "d:{precision},{scale}");
            }
            Self::Decimal { precision, scale, bits } => {
                return write!(f, "d:{precision},{scale},{}", bits.bytes().saturating_mul(8));
            }
        })
    }
}
