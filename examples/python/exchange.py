"""Record batches of a real data file go through Rust by the Arrow C device interface, and come back equal.

    cargo build --example python_exchange
    pip install -r examples/python/requirements.txt --no-deps
    python examples/python/exchange.py target/debug/examples/libpython_exchange.so

pyarrow and nanoarrow each take their turn as the producer and as the consumer. Rust adds up every column meanwhile, and
pyarrow's own kernels have to find the same. Exits with 1 at the first difference.
"""

import argparse
import ctypes
import gc
import math
import sys
from importlib.metadata import distribution, version

import nanoarrow as na
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from nanoarrow.c_array import c_array_from_buffers
from nanoarrow.device import c_device_array

# The measurements of 344 penguins that the package `palmerpenguins` ships, public domain (CC0), Horst, Hill and Gorman.
PACKAGE, FILE = "palmerpenguins", "palmerpenguins/data/penguins-raw.csv"
ROWS_PER_BATCH = 100


# ---- the C structs, to be looked at: Rust, pyarrow and nanoarrow have their own idea of them


class ArrowSchema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


class Column(ctypes.Structure):
    """As in python_exchange.rs."""

    _fields_ = [
        ("nulls", ctypes.c_int64),
        ("integers", ctypes.c_int64),
        ("floats", ctypes.c_double),
        ("text", ctypes.c_int64),
        ("kind", ctypes.c_char),
    ]

    def total(self):
        return {b"i": self.integers, b"f": self.floats, b"t": self.text}[self.kind]


def load(path):
    rust = ctypes.CDLL(path)
    schema, array = ctypes.POINTER(ArrowSchema), ctypes.POINTER(ArrowDeviceArray)
    for name, result, *arguments in [
        ("exchange_last_error", ctypes.c_char_p),
        ("exchange_held", ctypes.c_int64),
        ("exchange_take", ctypes.c_void_p, schema, array),
        ("exchange_rows", ctypes.c_int64, ctypes.c_void_p),
        ("exchange_columns", ctypes.c_int64, ctypes.c_void_p),
        ("exchange_column", ctypes.c_bool, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Column)),
        ("exchange_give_back", ctypes.c_bool, ctypes.c_void_p, schema, array),
        ("exchange_drop", None, ctypes.c_void_p),
        ("exchange_release_schema", None, schema),
        ("exchange_release_array", None, array),
    ]:
        function = getattr(rust, name)
        function.restype, function.argtypes = result, arguments
    return rust


# ---- capsules


def python_api(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


capsule_new = python_api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
capsule_pointer = python_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
# A destructor gets a capsule that is already dying, which must not become a Python reference again.
dying_capsule_pointer = python_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)

SCHEMA_NAME, ARRAY_NAME = b"arrow_schema", b"arrow_device_array"


class Capsules:
    """Makes capsules around structs; they release what nobody took (P3)."""

    def __init__(self, rust):
        self.structs = {}  # by address: keeps alive what the capsules point to
        destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
        self.destroy = {
            SCHEMA_NAME: destructor(
                lambda capsule: self.release(capsule, SCHEMA_NAME, rust.exchange_release_schema)
            ),
            ARRAY_NAME: destructor(
                lambda capsule: self.release(capsule, ARRAY_NAME, rust.exchange_release_array)
            ),
        }

    def new(self, struct, name):
        address = ctypes.addressof(struct)
        self.structs[address] = struct
        return capsule_new(address, name, ctypes.cast(self.destroy[name], ctypes.c_void_p))

    def release(self, capsule, name, release):
        struct = self.structs.pop(dying_capsule_pointer(capsule, name))
        release(ctypes.byref(struct))


def struct_in(capsule, kind, name):
    return kind.from_address(capsule_pointer(capsule, name))


# ---- Rust's hold on a batch


class Difference(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Difference(what)


class RustBatch:
    """A batch that Rust has taken. Exports itself once, by moving: afterwards Rust has nothing any more."""

    rust = None
    capsules = None
    spoil = None

    def __init__(self, schema, array):
        if self.spoil == "row":
            array.length -= 1
        self.handle = self.rust.exchange_take(ctypes.byref(schema), ctypes.byref(array))
        # Refused or not, both are marked as moved.
        check(
            schema.release is None and array.release is None,
            "taken, and the source is not marked released (D13)",
        )
        if not self.handle:
            raise ValueError(self.rust.exchange_last_error().decode())

    @classmethod
    def of(cls, producer):
        """Takes whatever has the device method of the Arrow PyCapsule interface."""
        schema, array = producer.__arrow_c_device_array__()
        return cls(
            struct_in(schema, ArrowSchema, SCHEMA_NAME), struct_in(array, ArrowDeviceArray, ARRAY_NAME)
        )

    @classmethod
    def of_pointers(cls, batch):
        schema, array = ArrowSchema(), ArrowDeviceArray()
        batch._export_to_c_device(ctypes.addressof(array), ctypes.addressof(schema))
        check(array.device_type == 1 and array.device_id == -1 and not array.sync_event, "pyarrow's device")
        return cls(schema, array)

    def rows(self):
        return self.rust.exchange_rows(self.handle)

    def columns(self):
        columns = [Column() for _ in range(self.rust.exchange_columns(self.handle))]
        for index, column in enumerate(columns):
            check(self.rust.exchange_column(self.handle, index, ctypes.byref(column)), "a column is missing")
        return columns

    def give_back(self):
        check(self.handle, "given back before")
        # Out-structs may hold anything, also what looks like live structs (C5).
        schema, array = ArrowSchema(), ArrowDeviceArray()
        ctypes.memset(ctypes.byref(schema), 0x5A, ctypes.sizeof(schema))
        ctypes.memset(ctypes.byref(array), 0x5A, ctypes.sizeof(array))
        handle, self.handle = self.handle, None
        if not self.rust.exchange_give_back(handle, ctypes.byref(schema), ctypes.byref(array)):
            raise ValueError(self.rust.exchange_last_error().decode())
        return schema, array

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        unknown = [name for name, value in kwargs.items() if value is not None]
        if unknown:
            raise NotImplementedError(f"unknown arguments: {unknown}")
        if requested_schema is not None:
            raise ValueError("batches are given back as they came")
        schema, array = self.give_back()
        return self.capsules.new(schema, SCHEMA_NAME), self.capsules.new(array, ARRAY_NAME)

    def __del__(self):
        if getattr(self, "handle", None) and self.spoil != "leak":
            self.rust.exchange_drop(self.handle)


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
    check(seen.equals(batch, check_metadata=True), f"not equal:\n{seen}\n{batch}")


# ---- producers and consumers


def from_pyarrow(batch):
    return RustBatch.of(batch)


def from_nanoarrow(batch):
    """nanoarrow holds pyarrow's memory, and exports structs of its own that share it."""
    return RustBatch.of(c_device_array(batch))


def to_pyarrow(rust_batch, batch):
    check_equal(pa.record_batch(rust_batch), batch)


def to_pyarrow_by_pointers(rust_batch, batch):
    schema, array = rust_batch.give_back()
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
    RustBatch.rust, RustBatch.capsules = rust, capsules
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
        with books:
            for batch in batches:
                rust_batch = take(batch)
                check_figures(rust_batch, batch)
                give(rust_batch, batch)
        print(
            f"peer: {peers[producer]} -> Rust -> {peers[consumer]}: {how}, {what}: equal, figures as pyarrow computes them"
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
        f"peer: {peers['nanoarrow']} -> Rust -> both: {plain.num_columns} columns built by nanoarrow in its own memory: equal"
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
    print(
        f"peer: {peers['pyarrow']} -> Rust: dropped by Rust, by a capsule that nobody took, refused to a second taker: "
        "each released once"
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("library", help="the cdylib that `cargo build --example python_exchange` makes")
    arguments.add_argument(
        "--spoil", choices=["row", "leak"], help="do this wrong, to see that the script finds it"
    )
    given = arguments.parse_args()
    RustBatch.spoil = given.spoil
    try:
        run(load(given.library))
    except Difference as difference:
        sys.exit(f"exchange.py: {difference}")


if __name__ == "__main__":
    main()
