//! Format strings as a typed description: the one place that knows what each type's buffers and children are.

mod layout;
mod parse;
mod union_ids;

use core::fmt;

pub use layout::{BufferKind, Buffers, Children};
pub use union_ids::UnionIds;

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
