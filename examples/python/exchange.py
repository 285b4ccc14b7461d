"""Record batches of a real data file go through Rust by the Arrow C device interface, and come back equal.

    cargo build --example python_exchange
    pip install -r examples/python/requirements.txt --no-deps
    python examples/python/exchange.py target/debug/examples/libpython_exchange.so

pyarrow and nanoarrow each take their turn as the producer and as the consumer. Rust adds up every column meanwhile, and
pyarrow's own kernels have to find the same. What Rust gives back is what came, or made anew around the same buffers.
Then Rust produces data of its own, in every layout of the format. Exits with 1 at the first difference.
"""

import argparse
import ctypes
import gc
import math
import sys
from importlib.metadata import distribution, version

import layouts
import nanoarrow as na
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from nanoarrow.c_array import c_array_from_buffers
from nanoarrow.device import c_device_array
from rust import (
    ARRAY_NAME,
    SCHEMA_NAME,
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
    Capsules,
    Column,
    Difference,
    FromRust,
    MadeBatch,
    MadeStream,
    RustBatch,
    check,
    load,
    struct_in,
)

# The measurements of 344 penguins that the package `palmerpenguins` ships, public domain (CC0), Horst, Hill and Gorman.
PACKAGE, FILE = "palmerpenguins", "palmerpenguins/data/penguins-raw.csv"
ROWS_PER_BATCH = 100


# ---- what is compared


def check_figures(rust_batch, batch):
    """Rows, nulls and sums as pyarrow's kernels find them."""
    check(rust_batch.rows() == batch.num_rows, f"rows: {rust_batch.rows()}, not {batch.num_rows}")
    columns = rust_batch.columns()
    check(len(columns) == batch.num_columns, "columns")
    for name, found, column in zip(batch.schema.names, columns, batch.columns):
        check(found.nulls == column.null_count, f"nulls of {name}: {found.nulls}, not {column.null_count}")
        expected = total(column)
        same = math.isclose(found.total(), expected, rel_tol=1e-12)
        check(same, f"total of {name}: {found.total()}, not {expected}")
    return columns


def total(column):
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        column = pc.binary_length(column)
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return pc.sum(column).as_py() or 0


def check_equal(seen, batch):
    seen.validate(full=True)
    check(seen.schema.equals(batch.schema, check_metadata=True), f"schema:\n{seen.schema}\n{batch.schema}")
    for name in batch.schema.names:
        check(seen[name].equals(batch[name]), f"not equal: {name}:\n{seen[name]}\n{batch[name]}")
    check(seen.equals(batch, check_metadata=True), "not equal")


# ---- producers and consumers


def from_pyarrow(batch):
    return RustBatch.of(batch)


def from_nanoarrow(batch):
    """nanoarrow holds pyarrow's memory, and exports structs of its own that share it."""
    return RustBatch.of(c_device_array(batch))


def to_pyarrow(rust_batch, batch):
    check_equal(pa.record_batch(rust_batch), batch)


def to_pyarrow_by_pointers(rust_batch, batch):
    schema, array = rust_batch.structs()
    seen = pa.RecordBatch._import_from_c_device(ctypes.addressof(array), ctypes.addressof(schema))
    check(schema.release is None and array.release is None, "pyarrow did not mark what it imported")
    check_equal(seen, batch)


def to_nanoarrow(rust_batch, batch):
    """nanoarrow reads every value by itself, and what it exports in turn is equal too."""
    seen = c_device_array(rust_batch)
    check(seen.device_type_id == 1 and seen.device_id == -1, "the device as nanoarrow sees it")
    check(na.Array(seen.array).to_pylist() == batch.to_pylist(), "nanoarrow reads other values")
    check_equal(pa.record_batch(seen), batch)


def built_by_nanoarrow(batch):
    """The same columns as `batch`, built value by value in memory of nanoarrow's own."""
    types = {pa.int64(): na.int64(), pa.float64(): na.float64(), pa.string(): na.string()}
    fields = {field.name: types[field.type] for field in batch.schema}
    children = [na.c_array(batch[name].to_pylist(), kind) for name, kind in fields.items()]
    return c_device_array(c_array_from_buffers(na.struct(fields), batch.num_rows, [None], children=children))


class Books:
    """Nothing may be left behind by what happens inside a `with`."""

    def __init__(self, rust, capsules):
        self.rust, self.capsules = rust, capsules

    def __enter__(self):
        gc.collect()
        self.before = pa.total_allocated_bytes()

    def __exit__(self, kind, *_):
        if kind is None:
            gc.collect()
            left = pa.total_allocated_bytes() - self.before
            check(left == 0, f"pyarrow has {left} bytes more than before: not everything was released")
            check(self.rust.exchange_held() == 0, "Rust holds batches still")
            check(not self.capsules.structs, "capsules are left")


def read():
    options = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    table = pyarrow.csv.read_csv(distribution(PACKAGE).locate_file(FILE), convert_options=options)
    place = table.schema.get_field_index("Island")
    table = table.set_column(place, "Island", table["Island"].dictionary_encode())
    return table.replace_schema_metadata({"file": FILE})


def run(rust):
    capsules = Capsules(rust)
    FromRust.rust, FromRust.capsules = rust, capsules
    books = Books(rust, capsules)
    table = read()
    batches = table.to_batches(max_chunksize=ROWS_PER_BATCH)
    check(len(batches) == math.ceil(table.num_rows / ROWS_PER_BATCH), "batches")
    check(batches[1].column(0).offset == ROWS_PER_BATCH, "the batches are slices, with offsets")
    peers = {"pyarrow": f"pyarrow {pa.__version__}", "nanoarrow": f"nanoarrow {version('nanoarrow')}"}
    source = f"{FILE} of {PACKAGE} {version(PACKAGE)}"
    what = f"{len(batches)} batches, {table.num_rows} rows, {table.num_columns} columns"

    totals = [Column() for _ in table.schema]
    for batch in batches:
        for sum_, column in zip(totals, check_figures(from_pyarrow(batch), batch)):
            for name, _ in Column._fields_[:-1]:
                setattr(sum_, name, getattr(sum_, name) + getattr(column, name))
            sum_.kind = column.kind
    units = {b"i": "sum", b"f": "sum", b"t": "bytes of text"}
    print(f"{source}: {what}")
    for field, column, whole in zip(table.schema, totals, table.columns):
        check(column.nulls == whole.null_count, f"nulls of {field.name}")
        print(
            f"  {field.name:22} {str(field.type):52} {column.nulls:4} nulls, {units[column.kind]} {column.total():.10g}"
        )

    routes = [
        ("pyarrow", RustBatch.of_pointers, "pyarrow", to_pyarrow_by_pointers, "by pointers"),
        ("pyarrow", from_pyarrow, "pyarrow", to_pyarrow, "by capsules"),
        ("pyarrow", from_pyarrow, "nanoarrow", to_nanoarrow, "by capsules"),
        ("nanoarrow", from_nanoarrow, "pyarrow", to_pyarrow, "by capsules"),
        ("nanoarrow", from_nanoarrow, "nanoarrow", to_nanoarrow, "by capsules"),
    ]
    for producer, take, consumer, give, how in routes:
        for anew in False, True:
            with books:
                for batch in batches:
                    rust_batch = take(batch)
                    check_figures(rust_batch, batch)
                    rust_batch.anew = anew
                    give(rust_batch, batch)
        print(
            f"peer: {peers[producer]} -> Rust -> {peers[consumer]}, {how}: as they came and anew, {what}: equal, figures as pyarrow computes them"
        )

    with books:
        for batch in batches:
            plain = batch.select(
                [field.name for field in batch.schema if str(field.type) in ("int64", "double", "string")]
            )
            plain = plain.replace_schema_metadata(None)
            for give in to_pyarrow, to_nanoarrow:
                rust_batch = RustBatch.of(built_by_nanoarrow(plain))
                check_figures(rust_batch, plain)
                give(rust_batch, plain)
    print(
        f"peer: {peers['nanoarrow']} -> Rust -> {peers['pyarrow']}, {peers['nanoarrow']}: {plain.num_columns} columns built by nanoarrow in its own memory: equal"
    )

    with books:
        for take in RustBatch.of_pointers, from_pyarrow, from_nanoarrow:
            take(batches[0])
        # Rust took it from the capsule: a second taker finds nothing, and so does the capsule's destructor.
        pair = batches[1].__arrow_c_device_array__()
        schema = struct_in(pair[0], ArrowSchema, SCHEMA_NAME)
        array = struct_in(pair[1], ArrowDeviceArray, ARRAY_NAME)
        RustBatch(schema, array)
        try:
            RustBatch(schema, array)
        except ValueError as error:
            check("released" in str(error), f"an unclear refusal: {error}")
        else:
            raise Difference("a capsule was consumed twice (P4)")
        # A capsule that nobody takes releases the batch (P3).
        from_pyarrow(batches[2]).__arrow_c_device_array__()
        # Taken by pyarrow, the batch lives on without Rust and without the capsules.
        kept = pa.record_batch(from_pyarrow(batches[3]))
        check(rust.exchange_held() == 0 and not capsules.structs, "something is left after the move")
        check_equal(kept, batches[3])
        del kept, pair, schema, array
        # Made anew, it keeps the structs that came, and a single column is enough to hold it.
        rust_batch = from_pyarrow(batches[0])
        rust_batch.anew = True
        column = pa.record_batch(rust_batch)["Species"]
        check(rust.exchange_held() == 1 and not capsules.structs, "what came is not kept")
        check(column.equals(batches[0]["Species"]), "the column that is left")
        del column, rust_batch
        # A capsule that nobody takes releases what Rust made (P3).
        MadeBatch(0).__arrow_c_device_array__()
        MadeStream().__arrow_c_stream__()
    print(
        f"peer: {peers['pyarrow']} -> Rust: dropped by Rust, by a capsule that nobody took, refused to a second taker: "
        "each released once"
    )
    run_made(rust, peers)


def run_made(rust, peers):
    """Rust as the producer: every layout, made by rule."""
    books = Books(rust, FromRust.capsules)
    expected = layouts.batches()
    for variant, batch in enumerate(expected):
        for take in made_by_pointers, pa.record_batch:
            with books:
                seen = take(MadeBatch(variant))
                check(rust.exchange_held() == 1, "the memory is not kept")
                check_made(seen, batch)
                kept = seen["string view"]
                del seen
                check(kept.equals(batch["string view"]), "the column that is left")
                del kept
        for name in batch.schema.names:
            with books:
                column = moved_out(MadeBatch(variant), name)
                check(column.equals(batch[name]), f"moved out: {name}: {column}")
                del column
    with books:
        seen = pa.array(MadeBatch(3))
        seen.validate(full=True)
        check(len(seen) == len(expected[3]) and seen.type.num_fields == len(layouts.SCHEMA), "as an array")
        del seen
    with books:
        reader = pa.RecordBatchReader.from_stream(MadeStream())
        check(reader.schema.equals(layouts.SCHEMA, check_metadata=True), "the schema of a stream")
        for seen, batch in zip(reader, expected, strict=True):
            check_made(seen, batch)
        del reader, seen
    with books:
        stream = MadeStream(fails=True).structs()
        reader = pa.RecordBatchReader._import_from_c(ctypes.addressof(stream))
        kept = [reader.read_next_batch() for _ in expected]
        for _ in range(2):
            try:
                reader.read_next_batch()
            except pa.ArrowInvalid as error:  # EINVAL
                check("the well of Rust is dry: ø" in str(error), f"another text: {error}")
            else:
                raise Difference("no error at the end of a stream that fails")
        del reader
        check_made(kept[0], expected[0])
        del kept
    only_valid = ", ".join(sorted(layouts.NO_PYTHON_CLASS))
    print(
        f"peer: Rust -> {peers['pyarrow']}: {len(layouts.SCHEMA)} columns made in Rust, with nulls, without, all null, sliced and empty, "
        f"by pointers, capsules and as a stream: valid, and equal to the same values in Python (without values: {only_valid}); "
        "columns that were moved out; an error of the stream"
    )

    listed, handed_on = set(), set()
    for variant, batch in enumerate(expected):
        with books:
            seen = c_device_array(MadeBatch(variant))
            check(seen.device_type_id == 1 and seen.device_id == -1, "the device as nanoarrow sees it")
            for index, name in enumerate(layouts.SCHEMA.names):
                column = seen.array.child(index)
                if name not in layouts.NO_PYTHON_CLASS | layouts.NANOARROW_CRASHES:
                    check(pa.array(column).equals(batch[name]), f"by nanoarrow to pyarrow: {name}")
                    handed_on.add(name)
                misread = name in layouts.NANOARROW_IGNORES_OFFSET and column.offset
                if name not in layouts.NANOARROW_LISTS_NOT and not misread:
                    values = na.Array(column).to_pylist()
                    check(
                        values == batch[name].to_pylist(), f"nanoarrow reads other values: {name}: {values}"
                    )
                    listed.add(name)
            del seen, column
    print(
        f"peer: Rust -> {peers['nanoarrow']}: the same batches, {len(listed)} columns listed by nanoarrow, {len(handed_on)} handed on to pyarrow: equal"
    )


def made_by_pointers(made):
    schema, array = made.structs()
    check(array.device_type == 1 and array.device_id == -1 and not array.sync_event, "Rust's device")
    check(not any(array.reserved), "reserved is not zero (D10)")
    seen = pa.RecordBatch._import_from_c_device(ctypes.addressof(array), ctypes.addressof(schema))
    check(schema.release is None and array.release is None, "pyarrow did not mark what it imported")
    return seen


def moved_out(made, name):
    """A column as C takes it out of its batch, which it releases then (B5)."""
    schema, array = made.structs()
    index = layouts.SCHEMA.get_field_index(name)
    place = array.children[index].contents
    column = ArrowArray.from_buffer_copy(place)
    place.release = None
    made.rust.exchange_release_array(ctypes.byref(array))
    made.rust.exchange_release_schema(ctypes.byref(schema))
    check(made.rust.exchange_held() == 1, "the memory is not kept for a column that was moved out")
    return pa.Array._import_from_c(ctypes.addressof(column), layouts.SCHEMA.field(index).type)


def check_made(seen, batch):
    seen.validate(full=True)
    check(
        seen.schema.equals(layouts.SCHEMA, check_metadata=True), f"schema:\n{seen.schema}\n{layouts.SCHEMA}"
    )
    check_equal(seen.select(batch.schema.names), batch)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("library", help="the cdylib that `cargo build --example python_exchange` makes")
    arguments.add_argument("--spoil", help="do this wrong (see rust.py), to see that the script finds it")
    given = arguments.parse_args()
    FromRust.spoil = given.spoil
    try:
        run(load(given.library))
    except (Difference, pa.ArrowInvalid) as difference:
        sys.exit(f"exchange.py: {difference}")


if __name__ == "__main__":
    main()
