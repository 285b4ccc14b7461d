"""What the batches of Rust's own data hold: every layout of the format, values by rule, as `made/mod.rs` has them."""

from decimal import Context, Decimal

import nanoarrow as na
import pyarrow as pa

ROWS = 10

ITEM = pa.field("item", pa.int32())
ALTERNATIVES = [pa.field("number", pa.int32()), pa.field("text", pa.string())]
WORDS = pa.field("words", pa.list_(pa.field("item", pa.string_view())))

SCHEMA = pa.schema(
    [
        pa.field("null", pa.null()),
        pa.field("boolean", pa.bool_()),
        pa.field("int8", pa.int8()),
        pa.field("uint8", pa.uint8()),
        pa.field("int16", pa.int16()),
        pa.field("uint16", pa.uint16()),
        pa.field(
            "int32",
            pa.int32(),
            metadata={"unit": "µm", "": "value of the empty key", "odd": "zero\0inside"},
        ),
        pa.field("uint32", pa.uint32()),
        pa.field("int64", pa.int64()),
        pa.field("uint64", pa.uint64()),
        pa.field("half float", pa.float16()),
        pa.field("float", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("decimal32", pa.decimal32(7, 2)),
        pa.field("decimal64", pa.decimal64(15, 3)),
        pa.field("decimal128", pa.decimal128(30, 4)),
        pa.field("decimal256", pa.decimal256(60, 1)),
        pa.field("date32", pa.date32()),
        pa.field("date64", pa.date64()),
        pa.field("time32 s", pa.time32("s")),
        pa.field("time32 ms", pa.time32("ms")),
        pa.field("time64 us", pa.time64("us")),
        pa.field("time64 ns", pa.time64("ns")),
        pa.field("timestamp", pa.timestamp("s")),
        pa.field("timestamp of a zone", pa.timestamp("ns", "Europe/Copenhagen")),
        pa.field("duration s", pa.duration("s")),
        pa.field("duration ns", pa.duration("ns")),
        pa.field(na.interval_months()).with_name("months"),
        pa.field(na.interval_day_time()).with_name("days and ms"),
        pa.field("months, days and ns", pa.month_day_nano_interval()),
        pa.field("three bytes", pa.binary(3)),
        pa.field("binary", pa.binary()),
        pa.field("large binary", pa.large_binary()),
        pa.field("string ø", pa.string()),
        pa.field("large string", pa.large_string()),
        pa.field("binary view", pa.binary_view()),
        pa.field("string view", pa.string_view()),
        pa.field("list", pa.list_(ITEM)),
        pa.field("large list", pa.large_list(ITEM)),
        pa.field("list view", pa.list_view(ITEM)),
        pa.field("large list view", pa.large_list_view(ITEM)),
        pa.field("fixed-size list", pa.list_(ITEM, 2)),
        pa.field(
            "struct", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string(), nullable=False)])
        ),
        pa.field("struct without fields", pa.struct([])),
        pa.field("map", pa.map_(pa.string(), pa.int32())),
        pa.field("map, sorted", pa.map_(pa.int32(), pa.string(), keys_sorted=True)),
        pa.field("sparse union", pa.sparse_union(ALTERNATIVES, [4, 9])),
        pa.field("dense union", pa.dense_union(ALTERNATIVES, [4, 9])),
        pa.field("dictionary", pa.dictionary(pa.int8(), pa.string())),
        pa.field("ordered", pa.dictionary(pa.uint32(), pa.int64(), ordered=True)),
        pa.field("runs", pa.run_end_encoded(pa.int32(), pa.string())),
        pa.field("runs, short ends", pa.run_end_encoded(pa.int16(), pa.float64())),
        pa.field(
            "lists of structs of lists",
            pa.list_(pa.field("item", pa.struct([WORDS, pa.field("n", pa.int64(), nullable=False)]))),
        ),
        pa.field("uuid", pa.uuid()),
        pa.field("not null", pa.int64(), nullable=False),
    ],
    metadata={"origin": "Rust"},
)

# pyarrow knows these types, and has no Python class for their arrays.
NO_PYTHON_CLASS = {"months", "days and ms"}

# nanoarrow's Python knows three buffers a column, and crashes over a view's fourth, pyarrow's too.
NANOARROW_CRASHES = {"binary view", "string view", "lists of structs of lists"}
# What else it does not list as the Python objects that pyarrow makes: it has no iterator for some, takes negative
# decimals for positive, and gives a uuid's storage. pyarrow has no objects for nanoseconds.
NANOARROW_LISTS_NOT = (NO_PYTHON_CLASS | NANOARROW_CRASHES) | {
    "decimal32",
    "decimal64",
    "decimal128",
    "decimal256",
    "time64 ns",
    "timestamp of a zone",
    "duration ns",
    "list view",
    "large list view",
    "struct without fields",
    "map",
    "map, sorted",
    "runs",
    "runs, short ends",
    "uuid",
}
# Of these it lists a slice from the start of the buffers, as it does pyarrow's.
NANOARROW_IGNORES_OFFSET = {"half float", "months, days and ns", "three bytes", "sparse union"}


def before(row):
    """Elements of all lists before this row's."""
    return sum(i % 4 for i in range(row))


class Rule:
    def __init__(self, is_null):
        self.is_null = is_null

    def column(self, field, rows):
        type = field.type
        if pa.types.is_dictionary(type):
            indices = [None if self.null(field, row) else row % 3 for row in range(rows)]
            words = self.column(pa.field("", type.value_type, nullable=False), min(rows, 3))
            return pa.DictionaryArray.from_arrays(
                pa.array(indices, type.index_type), words, ordered=type.ordered
            )
        if pa.types.is_run_end_encoded(type):
            ends = [min(row + 2, rows) for row in range(0, rows, 2)]
            values = self.column(pa.field("", type.value_type), len(ends))
            return pa.RunEndEncodedArray.from_arrays(pa.array(ends, type.run_end_type), values)
        if pa.types.is_union(type):
            codes = pa.array([type.type_codes[row % 2] for row in range(rows)], pa.int8())
            names, codes_ = [child.name for child in type], type.type_codes
            if type.mode == "sparse":
                children = [self.column(child, rows) for child in type]
                return pa.UnionArray.from_sparse(codes, children, names, codes_)
            children = [self.column(child, (rows + 1 - i) // 2) for i, child in enumerate(type)]
            offsets = pa.array([row // 2 for row in range(rows)], pa.int32())
            return pa.UnionArray.from_dense(codes, offsets, children, names, codes_)
        if isinstance(type, pa.BaseExtensionType):
            storage = self.column(pa.field("", type.storage_type, field.nullable), rows)
            return pa.ExtensionArray.from_storage(type, storage)
        values = [self.value_or_none(field, row) for row in range(rows)]
        if pa.types.is_temporal(type) and not pa.types.is_interval(type):
            return pa.array(values, pa.int32() if type.bit_width == 32 else pa.int64()).view(type)
        return pa.array(values, type)

    def null(self, field, row):
        return field.nullable and self.is_null(row)

    def value_or_none(self, field, row):
        return None if self.null(field, row) else self.value(field.type, row)

    def list(self, field, start, count):
        return [self.value_or_none(field, start + i) for i in range(count)]

    def value(self, type, row):
        is_ = pa.types
        number, decimal = 11 * row - 50, 1111 * row - 5000
        text = ["", f"ø{row}", f"row {row}, told at some length"][row % 3]
        if is_.is_null(type):
            return None
        if is_.is_boolean(type):
            return row % 3 == 0
        if type == pa.uint64():
            return 2**63 + 11 * row
        if is_.is_unsigned_integer(type) or is_.is_date32(type) or is_.is_time(type):
            return 11 * row
        if is_.is_date64(type):
            return 86_400_000 * row
        if type == pa.int64() or is_.is_timestamp(type) or is_.is_duration(type):
            return 1_000_000_007 * number
        if is_.is_signed_integer(type):
            return number
        if is_.is_floating(type):
            return row / 2 - 2
        if is_.is_decimal(type):
            wide = decimal if type.bit_width < 128 else decimal * 10**12
            return Decimal(wide).scaleb(-type.scale, Context(prec=76))
        if is_.is_interval(type):
            return pa.MonthDayNano([row, number, 1_000_000_007 * row])
        if is_.is_fixed_size_binary(type):
            return f"{row:0{type.byte_width}}".encode()
        if is_.is_binary(type) or is_.is_large_binary(type) or is_.is_binary_view(type):
            return text.encode()
        if is_.is_string(type) or is_.is_large_string(type) or is_.is_string_view(type):
            return text
        if is_.is_list(type) or is_.is_large_list(type):
            return self.list(type.value_field, before(row), row % 4)
        if is_.is_list_view(type) or is_.is_large_list_view(type):
            return self.list(type.value_field, ROWS - row, row % 4)
        if is_.is_fixed_size_list(type):
            return self.list(type.value_field, 2 * row, 2)
        if is_.is_map(type):
            keys = self.list(type.key_field, before(row), row % 4)
            return list(zip(keys, self.list(type.item_field, before(row), row % 4)))
        if is_.is_struct(type):
            return {field.name: self.value_or_none(field, row) for field in type}
        raise TypeError(type)


def batches():
    """With nulls, with none, all null, a slice, nothing; of columns that Python can make."""
    schema = pa.schema([field for field in SCHEMA if field.name not in NO_PYTHON_CLASS], SCHEMA.metadata)

    def batch(rows, is_null):
        return pa.record_batch([Rule(is_null).column(field, rows) for field in schema], schema=schema)

    def some(row):
        return row % 4 == 1

    whole = batch(ROWS, some)
    return [
        whole,
        batch(ROWS, lambda row: False),
        batch(ROWS, lambda row: True),
        whole.slice(3, 6),
        batch(0, some),
    ]
