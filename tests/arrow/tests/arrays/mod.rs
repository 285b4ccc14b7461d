//! An array of every data type, four elements long, with nulls where there can be some.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, FixedSizeBinaryBuilder, FixedSizeListBuilder, Int32Builder, LargeListBuilder,
    ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder, StringViewBuilder,
};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, DurationNanosecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalYearMonthType, Time32SecondType, Time64NanosecondType,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, LargeBinaryArray, LargeListViewArray, LargeStringArray,
    ListViewArray, NullArray, PrimitiveArray, RecordBatchReader, RunArray, StringArray, StructArray,
    UnionArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, UnionFields};

/// arrow-rs's own reader of C streams, whose name differs between versions.
pub fn stream_reader(stream: FFI_ArrowArrayStream) -> impl RecordBatchReader {
    #[allow(deprecated, reason = "the name in the lowest version that is tested")]
    arrow_array::ffi_stream::ArrowArrayStreamReader::try_new(stream).unwrap()
}

fn primitive<T: ArrowPrimitiveType>(values: [T::Native; 4]) -> ArrayRef {
    primitive_of::<T>(T::DATA_TYPE, values)
}

fn primitive_of<T: ArrowPrimitiveType>(data_type: DataType, values: [T::Native; 4]) -> ArrayRef {
    let [a, _, c, d] = values;
    Arc::new(PrimitiveArray::<T>::from_iter([Some(a), None, Some(c), Some(d)]).with_data_type(data_type))
}

fn integers() -> ArrayRef {
    Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]))
}

fn fields() -> Fields {
    vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)].into()
}

fn strings() -> ArrayRef {
    Arc::new(StringArray::from(vec![Some("a"), Some(""), None, Some("a longer text")]))
}

pub fn all() -> Vec<ArrayRef> {
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(NullArray::new(4)),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
        primitive::<Int8Type>([1, 2, -3, i8::MAX]),
        primitive::<Int16Type>([1, 2, -3, i16::MAX]),
        primitive::<Int32Type>([1, 2, -3, i32::MAX]),
        primitive::<Int64Type>([1, 2, -3, i64::MAX]),
        primitive::<UInt8Type>([1, 2, 3, u8::MAX]),
        primitive::<UInt16Type>([1, 2, 3, u16::MAX]),
        primitive::<UInt32Type>([1, 2, 3, u32::MAX]),
        primitive::<UInt64Type>([1, 2, 3, u64::MAX]),
        primitive::<Float16Type>([Default::default(); 4]),
        primitive::<Float32Type>([1.5, 2.0, -0.0, f32::MAX]),
        primitive::<Float64Type>([1.5, 2.0, -0.0, f64::MAX]),
        primitive_of::<Decimal128Type>(DataType::Decimal128(20, 3), [1, 2, -3, 4]),
        primitive_of::<Decimal256Type>(DataType::Decimal256(50, -2), [1, 2, -3, 4].map(Into::into)),
        primitive::<Date32Type>([1, 2, 3, 4]),
        primitive::<Date64Type>([86_400_000, 0, 0, 0]),
        primitive::<Time32SecondType>([1, 2, 3, 4]),
        primitive::<Time64NanosecondType>([1, 2, 3, 4]),
        primitive::<TimestampMicrosecondType>([1, 2, 3, 4]),
        primitive_of::<TimestampMicrosecondType>(
            DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("Europe/Oslo".into())),
            [1, 2, 3, 4],
        ),
        primitive::<DurationNanosecondType>([1, 2, 3, 4]),
        primitive::<IntervalYearMonthType>([1, 2, 3, 4]),
        primitive::<IntervalDayTimeType>([arrow_buffer::IntervalDayTime::new(1, 2); 4]),
        primitive::<IntervalMonthDayNanoType>([arrow_buffer::IntervalMonthDayNano::new(1, 2, 3); 4]),
        Arc::new(BinaryArray::from_opt_vec(vec![Some(b"a"), None, Some(b""), Some(b"\xff\0")])),
        Arc::new(LargeBinaryArray::from_opt_vec(vec![Some(b"a"), None, Some(b""), Some(b"\xff\0")])),
        strings(),
        Arc::new(LargeStringArray::from(vec![Some("a"), None, Some(""), Some("b")])),
    ];
    arrays.extend(nested());
    arrays.extend(views());
    arrays
}

fn views() -> Vec<ArrayRef> {
    // Small blocks, so that there are several data buffers.
    let mut strings = StringViewBuilder::new().with_fixed_block_size(32);
    let mut bytes = BinaryViewBuilder::new().with_fixed_block_size(32);
    for value in [Some("inline"), None, Some("a text that is not inline"), Some("another that is not inline")]
    {
        strings.append_option(value);
        bytes.append_option(value);
    }
    vec![Arc::new(strings.finish()), Arc::new(bytes.finish())]
}

fn nested() -> Vec<ArrayRef> {
    let mut fixed_binary = FixedSizeBinaryBuilder::new(3);
    let mut list = ListBuilder::new(Int32Builder::new());
    let mut large_list = LargeListBuilder::new(Int32Builder::new());
    let mut fixed_list = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    let mut dictionary = StringDictionaryBuilder::<Int16Type>::new();
    for row in [Some(1), None, Some(3), Some(4)] {
        match row {
            Some(_) => fixed_binary.append_value(b"abc").unwrap(),
            None => fixed_binary.append_null(),
        }
        list.append_option(row.map(|n| (0..n).map(Some)));
        large_list.append_option(row.map(|n| (0..n).map(Some)));
        fixed_list.values().append_slice(&[row.unwrap_or(0), 7]);
        fixed_list.append(row.is_some());
        for key in 0..row.unwrap_or(0) {
            map.keys().append_value(format!("key {key}"));
            map.values().append_option(row);
        }
        map.append(row.is_some()).unwrap();
        dictionary.append_option(row.map(|n| if n % 2 == 0 { "even" } else { "odd" }));
    }
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let nulls = || Some(NullBuffer::from(vec![true, false, true, true]));
    let list_view = ListViewArray::new(
        Arc::clone(&item),
        ScalarBuffer::from(vec![2, 0, 0, 1]),
        ScalarBuffer::from(vec![2, 0, 4, 1]),
        integers(),
        nulls(),
    );
    let large_list_view = LargeListViewArray::new(
        item,
        ScalarBuffer::from(vec![2, 0, 0, 1]),
        ScalarBuffer::from(vec![2, 0, 4, 1]),
        integers(),
        nulls(),
    );
    let union_fields = || -> UnionFields { [3, 7].into_iter().zip(fields().iter().cloned()).collect() };
    let type_ids = ScalarBuffer::from(vec![3_i8, 7, 7, 3]);
    let sparse = UnionArray::try_new(union_fields(), type_ids.clone(), None, vec![integers(), strings()]);
    let offsets = ScalarBuffer::from(vec![0, 3, 1, 2]);
    let dense = UnionArray::try_new(union_fields(), type_ids, Some(offsets), vec![integers(), strings()]);
    let runs = RunArray::<Int32Type>::try_new(
        &Int32Array::from(vec![1, 3, 4]),
        &StringArray::from(vec![Some("a"), None, Some("b")]),
    );
    vec![
        Arc::new(fixed_binary.finish()),
        Arc::new(list.finish()),
        Arc::new(large_list.finish()),
        Arc::new(fixed_list.finish()),
        Arc::new(list_view),
        Arc::new(large_list_view),
        Arc::new(StructArray::new(fields(), vec![integers(), strings()], nulls())),
        Arc::new(map.finish()),
        Arc::new(dictionary.finish()),
        Arc::new(sparse.unwrap()),
        Arc::new(dense.unwrap()),
        Arc::new(runs.unwrap()),
    ]
}
