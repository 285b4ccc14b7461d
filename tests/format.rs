//! Format strings: read, written, refused, and what each type's arrays are made of.

#[path = "export/cases.rs"]
mod cases;

use std::error::Error;

use arrow_device_abi::format::{BufferKind, Children, DecimalBits, Format, FormatError, TimeUnit, UnionIds};
use proptest::prelude::*;

use BufferKind::{
    Bits, Data, Fixed, Offsets32, Offsets64, Sizes32, Sizes64, Starts32, Starts64, TypeIds, Validity, Views,
};
use Children::{Any, Exactly};
use DecimalBits::{Bits32, Bits64, Bits128, Bits256};
use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};

fn ids(ids: &[u8]) -> UnionIds<'_> {
    UnionIds::new(ids).unwrap()
}

const fn decimal(precision: u8, scale: i8, bits: DecimalBits) -> Format<'static> {
    Format::Decimal { precision, scale, bits }
}

/// The format strings of the C data interface, the buffers of the columnar format, and the children.
fn types() -> Vec<(&'static str, Format<'static>, &'static [BufferKind], Children)> {
    const NO: Children = Exactly(0);
    const ONE: Children = Exactly(1);
    vec![
        ("n", Format::Null, &[], NO),
        ("b", Format::Boolean, &[Validity, Bits], NO),
        ("c", Format::Int8, &[Validity, Fixed(1)], NO),
        ("C", Format::UInt8, &[Validity, Fixed(1)], NO),
        ("s", Format::Int16, &[Validity, Fixed(2)], NO),
        ("S", Format::UInt16, &[Validity, Fixed(2)], NO),
        ("i", Format::Int32, &[Validity, Fixed(4)], NO),
        ("I", Format::UInt32, &[Validity, Fixed(4)], NO),
        ("l", Format::Int64, &[Validity, Fixed(8)], NO),
        ("L", Format::UInt64, &[Validity, Fixed(8)], NO),
        ("e", Format::Float16, &[Validity, Fixed(2)], NO),
        ("f", Format::Float32, &[Validity, Fixed(4)], NO),
        ("g", Format::Float64, &[Validity, Fixed(8)], NO),
        ("z", Format::Binary, &[Validity, Offsets32, Data], NO),
        ("Z", Format::LargeBinary, &[Validity, Offsets64, Data], NO),
        ("vz", Format::BinaryView, &[Validity, Views], NO),
        ("u", Format::Utf8, &[Validity, Offsets32, Data], NO),
        ("U", Format::LargeUtf8, &[Validity, Offsets64, Data], NO),
        ("vu", Format::Utf8View, &[Validity, Views], NO),
        ("d:9,2,32", decimal(9, 2, Bits32), &[Validity, Fixed(4)], NO),
        ("d:18,-3,64", decimal(18, -3, Bits64), &[Validity, Fixed(8)], NO),
        ("d:38,10", decimal(38, 10, Bits128), &[Validity, Fixed(16)], NO),
        ("d:76,127,256", decimal(76, 127, Bits256), &[Validity, Fixed(32)], NO),
        ("d:1,-128", decimal(1, -128, Bits128), &[Validity, Fixed(16)], NO),
        ("w:0", Format::FixedSizeBinary(0), &[Validity, Fixed(0)], NO),
        ("w:42", Format::FixedSizeBinary(42), &[Validity, Fixed(42)], NO),
        ("w:2147483647", Format::FixedSizeBinary(0x7FFF_FFFF), &[Validity, Fixed(0x7FFF_FFFF)], NO),
        ("tdD", Format::Date32, &[Validity, Fixed(4)], NO),
        ("tdm", Format::Date64, &[Validity, Fixed(8)], NO),
        ("tts", Format::Time(Second), &[Validity, Fixed(4)], NO),
        ("ttm", Format::Time(Millisecond), &[Validity, Fixed(4)], NO),
        ("ttu", Format::Time(Microsecond), &[Validity, Fixed(8)], NO),
        ("ttn", Format::Time(Nanosecond), &[Validity, Fixed(8)], NO),
        ("tss:", Format::Timestamp(Second, ""), &[Validity, Fixed(8)], NO),
        ("tsm:Europe/Paris", Format::Timestamp(Millisecond, "Europe/Paris"), &[Validity, Fixed(8)], NO),
        ("tsu:+01:00", Format::Timestamp(Microsecond, "+01:00"), &[Validity, Fixed(8)], NO),
        ("tsn:Zürich/時:", Format::Timestamp(Nanosecond, "Zürich/時:"), &[Validity, Fixed(8)], NO),
        ("tDs", Format::Duration(Second), &[Validity, Fixed(8)], NO),
        ("tDm", Format::Duration(Millisecond), &[Validity, Fixed(8)], NO),
        ("tDu", Format::Duration(Microsecond), &[Validity, Fixed(8)], NO),
        ("tDn", Format::Duration(Nanosecond), &[Validity, Fixed(8)], NO),
        ("tiM", Format::IntervalMonths, &[Validity, Fixed(4)], NO),
        ("tiD", Format::IntervalDayTime, &[Validity, Fixed(8)], NO),
        ("tin", Format::IntervalMonthDayNano, &[Validity, Fixed(16)], NO),
        ("+l", Format::List, &[Validity, Offsets32], ONE),
        ("+L", Format::LargeList, &[Validity, Offsets64], ONE),
        ("+vl", Format::ListView, &[Validity, Starts32, Sizes32], ONE),
        ("+vL", Format::LargeListView, &[Validity, Starts64, Sizes64], ONE),
        ("+w:0", Format::FixedSizeList(0), &[Validity], ONE),
        ("+w:3", Format::FixedSizeList(3), &[Validity], ONE),
        ("+s", Format::Struct, &[Validity], Any),
        ("+m", Format::Map, &[Validity, Offsets32], ONE),
        ("+ud:", Format::DenseUnion(ids(&[])), &[TypeIds, Starts32], NO),
        ("+ud:0", Format::DenseUnion(ids(&[0])), &[TypeIds, Starts32], ONE),
        ("+ud:5,127,0", Format::DenseUnion(ids(&[5, 127, 0])), &[TypeIds, Starts32], Exactly(3)),
        ("+us:", Format::SparseUnion(ids(&[])), &[TypeIds], NO),
        ("+us:7,3", Format::SparseUnion(ids(&[7, 3])), &[TypeIds], Exactly(2)),
        ("+r", Format::RunEndEncoded, &[], Exactly(2)),
    ]
}

/// D15: every format, both ways.
#[test]
fn read_and_written() {
    for (text, format, ..) in types() {
        assert_eq!(Format::parse(text), Ok(format), "{text}");
        assert_eq!(format.to_string(), text);
    }
    // The one that is not written as it may be read.
    assert_eq!(Format::parse("d:5,2,128"), Ok(decimal(5, 2, Bits128)));
    assert_eq!(decimal(5, 2, Bits128).to_string(), "d:5,2");
}

/// D15: no two formats of the table are one.
#[test]
fn formats_are_different() {
    let types = types();
    for (index, (text, format, ..)) in types.iter().enumerate() {
        for (other_text, other, ..) in &types[..index] {
            assert!(format != other, "{text} {other_text}");
        }
    }
}

/// B7, D15: what arrays of each type are made of.
#[test]
fn buffers_and_children() {
    for (text, format, kinds, children) in types() {
        let buffers = format.buffers();
        assert_eq!(buffers.kinds(), kinds, "{text}");
        assert_eq!(format.children(), children, "{text}");
        // C25: a view array has its data buffers' sizes last, so three buffers at least.
        let variadic = text.starts_with('v');
        assert_eq!(buffers.is_variadic(), variadic);
        for n in 0..9 {
            let allowed = if variadic { n >= 3 } else { n == kinds.len() };
            assert_eq!(buffers.allows(n), allowed, "{n} buffers of {text}");
            assert_eq!(format.children().allows(n), children == Any || children == Exactly(n), "{text}");
        }
    }
}

/// B7: bytes of each kind of buffer, and none that memory cannot have.
#[test]
fn bytes_of_buffers() {
    let bytes = |kind: BufferKind| [0, 1, 9].map(|elements| kind.bytes(elements).unwrap());
    assert_eq!([Validity, Bits].map(bytes), [[0, 1, 2]; 2]);
    assert_eq!([Data, TypeIds].map(bytes), [[0, 1, 9]; 2]);
    assert_eq!([Fixed(0), Fixed(3), Views].map(bytes), [[0, 0, 0], [0, 3, 27], [0, 16, 144]]);
    assert_eq!([Offsets32, Offsets64].map(bytes), [[4, 8, 40], [8, 16, 80]]);
    assert_eq!([Starts32, Sizes32].map(bytes), [[0, 4, 36]; 2]);
    assert_eq!([Starts64, Sizes64].map(bytes), [[0, 8, 72]; 2]);
    let most = isize::MAX as usize;
    assert_eq!(Data.bytes(most), Some(most));
    assert_eq!(Views.bytes(most / 16), Some(most / 16 * 16));
    for (kind, elements) in
        [(Data, most + 1), (Views, most / 16 + 1), (Offsets32, usize::MAX), (Fixed(2), most)]
    {
        assert_eq!(kind.bytes(elements), None, "{kind:?}");
    }
}

/// D15: the types that a dictionary's indices can have.
#[test]
fn integers() {
    for (text, format, ..) in types() {
        assert_eq!(
            format.is_integer(),
            matches!(text, "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L"),
            "{text}"
        );
    }
}

/// D15: what is not known: an extension of another library, or a typing error.
#[test]
fn unknown_formats() {
    for text in [
        "x",
        "N",
        "ii",
        " i",
        "i ",
        "É",
        "é",
        "v",
        "vv",
        "vi",
        "vuz",
        "t",
        "td",
        "tdd",
        "tt",
        "ttx",
        "ttss",
        "ts",
        "tss",
        "tsx:UTC",
        "tsUTC",
        "tssUTC",
        "ts:UTC",
        "tD",
        "tDx",
        "ti",
        "tim",
        "tid",
        "tiN",
        "+",
        "+i",
        "+v",
        "+vv",
        "+ll",
        "+u",
        "+ud",
        "+us",
        "+ux:1",
        "+w",
        "w",
        "d",
        "W:3",
        "D:3,4",
        "+W:3",
        "+vw:3",
        ":",
        ":3",
        "+:3",
        "w 3",
        "tsé:",
        "\0",
        "i\0",
        "quaternion",
        "arrow:x",
    ] {
        let error = Format::parse(text).unwrap_err();
        assert!(error.is_unknown(), "{text:?}: {error}");
        assert_eq!(error.format(), text);
        assert_eq!(error.to_string(), format!("format {text:?}: {}", error.problem()));
    }
    assert!(Format::parse("").is_err());
}

/// D15: a known type with numbers that it cannot have. The error quotes the format and says what is wrong with it.
#[test]
fn impossible_formats() {
    for (texts, part) in [
        (
            &["w:", "w:-1", "w:x", "w:2147483648", "w:99999999999999999999", "w:3,4", "w:1.0", "w:0x3"][..],
            "width",
        ),
        (&["+w:", "+w:-1", "+w:x", "+w:2147483648", "+w:3:4"], "size"),
        (&["w:+1", "w: 1", "w:1 ", "w:01", "w:00", "w:-0", "w:1_0", "w:１"], "width"),
        (&["d:", "d:5", "d:x"], "scale"),
        (
            &["d:0,0", "d:39,0", "d:39,0,128", "d:10,0,32", "d:19,0,64", "d:77,0,256", "d:256,0", "d:-1,0"],
            "precision",
        ),
        (&["d:,0", "d:05,0", "d:+5,0", "d: 5,0", "d:x,0", "d:5.0,0"], "precision"),
        (
            &["d:5,", "d:5,128", "d:5,-129", "d:5,x", "d:5,+1", "d:5,01", "d:5,-0", "d:5, 1", "d:5,--1"],
            "scale",
        ),
        (&["d:5,1,", "d:5,1,33", "d:5,1,16", "d:5,1,512", "d:5,1,032", "d:5,1,64,", "d:5,1,-32"], "width"),
        (
            &[
                "+ud:128",
                "+us:-1",
                "+ud:1,1",
                "+us:0,1,0",
                "+ud:,",
                "+us:1,",
                "+ud:,1",
                "+us:x",
                "+ud:01",
                "+us:1;2",
            ],
            "ids",
        ),
    ] {
        for text in texts {
            let error = Format::parse(text).unwrap_err();
            assert!(!error.is_unknown() && error.problem().contains(part), "{error}");
            assert_eq!(error.format(), *text);
            assert_eq!(error.to_string(), format!("format {text:?}: {}", error.problem()));
            let _: &dyn Error = &error;
        }
    }
}

/// D15: each width holds as many digits as its integer does.
#[test]
fn decimals() {
    for (bits, bytes, most) in [(Bits32, 4, 9), (Bits64, 8, 18), (Bits128, 16, 38), (Bits256, 32, 76)] {
        assert_eq!((bits.bytes(), bits.max_precision()), (bytes, most));
        // As many nines as fit a signed integer of this width.
        let digits = (f64::from(bytes * 8 - 1) * std::f64::consts::LOG10_2).floor();
        assert_eq!(f64::from(most), digits);
        for precision in 0..=u8::MAX {
            for scale in [i8::MIN, -1, 0, 1, i8::MAX] {
                let text = format!("d:{precision},{scale},{}", bytes * 8);
                let by_hand = Format::decimal(precision, scale, bits);
                if (1..=most).contains(&precision) {
                    assert_eq!(Format::parse(&text), Ok(decimal(precision, scale, bits)));
                    assert_eq!(by_hand, Ok(decimal(precision, scale, bits)));
                } else {
                    let error = by_hand.unwrap_err();
                    assert_eq!(error.problem(), Format::parse(&text).unwrap_err().problem());
                    assert_eq!((error.format(), error.to_string()), ("", error.problem().to_owned()));
                }
            }
        }
    }
}

/// D15: different numbers from 0 to 127, in the order of the children.
#[test]
fn union_ids() {
    let all: Vec<u8> = (0..=127).rev().collect();
    for good in [&[][..], &[0], &[127], &[3, 1, 2], &all] {
        let ids = UnionIds::new(good).unwrap();
        assert_eq!(ids.iter().collect::<Vec<_>>(), good);
        assert_eq!((ids.len(), ids.is_empty()), (good.len(), good.is_empty()));
        let text = good.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        assert_eq!((ids.to_string(), format!("{ids:?}")), (text, format!("{good:?}")));
        let format = Format::SparseUnion(ids);
        let text = format.to_string();
        let read = Format::parse(&text).unwrap();
        // Read or made by hand, they are the same.
        assert_eq!((read, read.children()), (format, Exactly(good.len())));
        let Format::SparseUnion(read) = read else {
            panic!("{read:?}");
        };
        assert_eq!(
            (read.iter().collect::<Vec<_>>(), read.len(), read.is_empty()),
            (good.to_vec(), good.len(), good.is_empty())
        );
        assert_eq!(format!("{read:?} {read}"), format!("{ids:?} {ids}"));
    }
    let too_many: Vec<u8> = (0..=128).collect();
    for bad in [&[128][..], &[255], &[1, 1], &[0, 5, 0], &too_many] {
        let error: FormatError<'static> = UnionIds::new(bad).unwrap_err();
        assert_eq!(error.problem(), Format::parse("+us:1,1").unwrap_err().problem());
        assert_eq!((error.format(), error.is_unknown()), ("", false));
    }
    assert!(ids(&[1, 2]) != ids(&[2, 1]) && ids(&[1]) != ids(&[1, 0]));
}

fn unit() -> impl Strategy<Value = TimeUnit> {
    prop::sample::select(vec![Second, Millisecond, Microsecond, Nanosecond])
}

fn distinct_ids() -> impl Strategy<Value = Vec<u8>> {
    let order = Just((0..=127).collect::<Vec<u8>>()).prop_shuffle();
    (order, 0..=128_usize).prop_map(|(order, n)| order[..n].to_vec())
}

proptest! {
    #![proptest_config(cases::cases(500))]

    /// Anything at all may come out of a foreign schema: no text makes it panic, and what is read is written the same.
    #[test]
    fn any_text(text in prop_oneof![any::<String>(), "[-+:,tsudwivnlLrmD0-9é]{0,12}", "(d|w|\\+w|\\+us|tsn):[-0-9,:]{0,9}"]) {
        match Format::parse(&text) {
            Ok(format) => {
                let written = format.to_string();
                prop_assert_eq!(Format::parse(&written), Ok(format));
                prop_assert!(written == text || written + ",128" == text);
            }
            Err(error) => {
                prop_assert_eq!(error.format(), &text);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    /// Every type with numbers or a text, with any of them.
    #[test]
    fn any_numbers(
        size in 0..=0x7FFF_FFFF_u32,
        unit in unit(),
        zone in any::<String>(),
        children in distinct_ids(),
        (precision, scale) in (1..=76_u8, any::<i8>()),
    ) {
        for format in [
            Format::FixedSizeBinary(size),
            Format::FixedSizeList(size),
            Format::Time(unit),
            Format::Duration(unit),
            Format::Timestamp(unit, &zone),
            Format::DenseUnion(ids(&children)),
            Format::SparseUnion(ids(&children)),
            decimal(precision, scale, Bits256),
            decimal(precision.min(38), scale, Bits128),
        ] {
            let text = format.to_string();
            prop_assert_eq!(Format::parse(&text), Ok(format));
        }
    }
}
