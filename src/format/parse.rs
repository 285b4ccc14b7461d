//! Reading format strings.

use core::str::FromStr;

use super::{DecimalBits, Format, FormatError, TimeUnit, UnionIds};

impl<'a> Format<'a> {
    /// Reads a format string.
    ///
    /// # Errors
    ///
    /// [`FormatError`], which quotes it, if it is not known or its numbers are not allowed.
    pub fn parse(format: &'a str) -> Result<Self, FormatError<'a>> {
        let wrong = |problem| FormatError { format, problem };
        let unknown = || wrong(UNKNOWN);
        Ok(match format.as_bytes() {
            b"n" => Self::Null,
            b"b" => Self::Boolean,
            b"c" => Self::Int8,
            b"C" => Self::UInt8,
            b"s" => Self::Int16,
            b"S" => Self::UInt16,
            b"i" => Self::Int32,
            b"I" => Self::UInt32,
            b"l" => Self::Int64,
            b"L" => Self::UInt64,
            b"e" => Self::Float16,
            b"f" => Self::Float32,
            b"g" => Self::Float64,
            b"z" => Self::Binary,
            b"Z" => Self::LargeBinary,
            b"vz" => Self::BinaryView,
            b"u" => Self::Utf8,
            b"U" => Self::LargeUtf8,
            b"vu" => Self::Utf8View,
            b"tdD" => Self::Date32,
            b"tdm" => Self::Date64,
            b"tiM" => Self::IntervalMonths,
            b"tiD" => Self::IntervalDayTime,
            b"tin" => Self::IntervalMonthDayNano,
            b"+l" => Self::List,
            b"+L" => Self::LargeList,
            b"+vl" => Self::ListView,
            b"+vL" => Self::LargeListView,
            b"+s" => Self::Struct,
            b"+m" => Self::Map,
            b"+r" => Self::RunEndEncoded,
            &[b't', b't', letter] => Self::Time(unit(letter).ok_or_else(unknown)?),
            &[b't', b'D', letter] => Self::Duration(unit(letter).ok_or_else(unknown)?),
            &[b't', b's', letter, b':', ..] => Self::Timestamp(
                unit(letter).ok_or_else(unknown)?,
                // The four bytes before the zone are ASCII.
                format.get(4..).ok_or_else(unknown)?,
            ),
            _ => match format.split_once(':').ok_or_else(unknown)? {
                ("w", width) => Self::FixedSizeBinary(
                    size(width).ok_or_else(|| wrong("the width has to be a number from 0 to 2147483647"))?,
                ),
                ("+w", length) => Self::FixedSizeList(
                    size(length).ok_or_else(|| wrong("the size has to be a number from 0 to 2147483647"))?,
                ),
                ("d", numbers) => decimal(numbers).map_err(wrong)?,
                ("+ud", ids) => Self::DenseUnion(UnionIds::parse(ids).ok_or_else(|| wrong(UNION_IDS))?),
                ("+us", ids) => Self::SparseUnion(UnionIds::parse(ids).ok_or_else(|| wrong(UNION_IDS))?),
                _ => return Err(unknown()),
            },
        })
    }
}

pub(super) const UNKNOWN: &str = "unknown";

pub(super) const UNION_IDS: &str = "union ids have to be different numbers from 0 to 127";

pub(super) const PRECISION: &str =
    "the precision has to be a number from 1 to as many digits as the width holds";

fn unit(letter: u8) -> Option<TimeUnit> {
    TimeUnit::ALL.iter().find_map(|&(l, unit)| (l == letter).then_some(unit))
}

/// A number as it would be printed: no sign but `-`, no zeros in front.
pub(super) fn number<T: FromStr>(digits: &str) -> Option<T> {
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let plain = unsigned.starts_with(|first: char| first.is_ascii_digit())
        && (digits == "0" || !unsigned.starts_with('0'));
    plain.then(|| digits.parse().ok()).flatten()
}

/// A size that fits `int32_t`, which is what others store it in.
fn size(digits: &str) -> Option<u32> {
    number::<i32>(digits).and_then(|size| u32::try_from(size).ok())
}

fn decimal(numbers: &str) -> Result<Format<'_>, &'static str> {
    let (precision, rest) = numbers.split_once(',').ok_or("a decimal has a precision and a scale")?;
    let (scale, bits) = match rest.split_once(',') {
        None => (rest, DecimalBits::Bits128),
        Some((scale, "32")) => (scale, DecimalBits::Bits32),
        Some((scale, "64")) => (scale, DecimalBits::Bits64),
        Some((scale, "128")) => (scale, DecimalBits::Bits128),
        Some((scale, "256")) => (scale, DecimalBits::Bits256),
        Some(_) => return Err("the width has to be 32, 64, 128 or 256 bits"),
    };
    let precision = number(precision).ok_or(PRECISION)?;
    let scale = number(scale).ok_or("the scale has to be a number from -128 to 127")?;
    Format::decimal(precision, scale, bits).map_err(|error| error.problem)
}
