"""Arrays and streams of other libraries through the module and on to others, each by the methods that it has.

    python peers.py libarrow_cpp_streams.so

Prints a line `peer: ROUTE: WHAT` for each way in and each way out. Exits with 1 at the first difference. With `--spoil`
one thing is done wrong, and must be found.
"""

import argparse
import ctypes
import functools
import gc
from importlib.metadata import version

import arro3.core
import arrow_device_example as ade
import duckdb
import nanoarrow
import polars
import pyarrow as pa
from nanoarrow.device import c_device_array

ARRAY, STREAM = "__arrow_c_array__", "__arrow_c_stream__"
DEVICE_ARRAY, DEVICE_STREAM = "__arrow_c_device_array__", "__arrow_c_device_stream__"

ROWS = [
    {"number": 1, "real": 0.5, "text": "one", "list": [1, 2]},
    {"number": None, "real": -2.0, "text": None, "list": []},
    {"number": -(2**63), "real": 1e300, "text": "drei, \u4e09", "list": None},
]


def batch():
    return pa.RecordBatch.from_pylist(ROWS)


def table():
    """Two batches."""
    return pa.Table.from_batches([batch(), batch()])


# ---- who asks whom for what


@functools.cache
def spy_class(names):
    """A class a set of methods, and not one a thing: polars keeps the last classes that it saw."""

    def method(name):
        def call(self, *arguments, **keywords):
            if name != "__arrow_c_schema__":
                self.calls.append(name)
            return getattr(self.thing, name)(*arguments, **keywords)

        return call

    return type("Spied", (), {name: method(name) for name in names})


def spied(thing):
    """The same thing, with a record of which of its methods gave data."""
    spy = spy_class(tuple(name for name in dir(thing) if name.startswith("__arrow_c_")))()
    spy.thing, spy.calls = thing, []
    return spy, spy.calls


PEERS = {
    "pyarrow": f"pyarrow {version('pyarrow')}",
    "nanoarrow": f"nanoarrow {version('nanoarrow')}",
    "polars": f"polars {version('polars')}",
    "duckdb": f"duckdb {version('duckdb')}",
    "arro3": f"arro3 {version('arro3-core')}",
    "cpp": f"Arrow C++ {pa.cpp_version}",
}

# What each library has to give, and by which method this module asks for it.
ARRAYS_IN = [
    ("pyarrow", DEVICE_ARRAY, batch),
    ("nanoarrow", DEVICE_ARRAY, lambda: c_device_array(batch())),
    ("nanoarrow", ARRAY, lambda: nanoarrow.c_array(batch())),
    ("arro3", ARRAY, lambda: arro3.core.RecordBatch.from_arrow(batch())),
]
STREAMS_IN = [
    ("pyarrow", STREAM, table),
    ("pyarrow", STREAM, lambda: pa.RecordBatchReader.from_batches(batch().schema, from_python())),
    ("nanoarrow", STREAM, lambda: nanoarrow.c_array_stream(table())),
    ("polars", STREAM, lambda: polars.DataFrame(table())),
    ("duckdb", STREAM, lambda: in_duckdb(table())),
    ("arro3", STREAM, lambda: arro3.core.Table.from_arrow(table())),
]
# How each library takes something, by which method it asks, and the rows that it has then.
ARRAYS_OUT = [
    ("pyarrow", DEVICE_ARRAY, lambda thing: pa.record_batch(thing).to_pylist()),
    ("nanoarrow", DEVICE_ARRAY, lambda thing: pa.record_batch(c_device_array(thing)).to_pylist()),
    ("nanoarrow", ARRAY, lambda thing: pa.record_batch(nanoarrow.c_array(thing)).to_pylist()),
    ("polars", ARRAY, lambda thing: polars.DataFrame(thing).to_dicts()),
    ("arro3", ARRAY, lambda thing: pa.record_batch(arro3.core.RecordBatch.from_arrow(thing)).to_pylist()),
]
STREAMS_OUT = [
    ("pyarrow", STREAM, lambda thing: pa.table(thing).to_pylist()),
    ("nanoarrow", STREAM, lambda thing: pa.table(nanoarrow.c_array_stream(thing)).to_pylist()),
    ("polars", STREAM, lambda thing: polars.DataFrame(thing).to_dicts()),
    ("duckdb", STREAM, lambda thing: pa.table(in_duckdb(thing)).to_pylist()),
    ("arro3", STREAM, lambda thing: pa.table(arro3.core.Table.from_arrow(thing)).to_pylist()),
]


def from_python():
    """A generator needs the GIL for each batch."""
    yield batch()
    yield batch()


def in_duckdb(thing):
    # A connection has one result at a time.
    return duckdb.connect().from_arrow(thing)


class Cpp:
    """Arrow C++, which has no methods in Python for its device streams: through the functions of arrow_cpp.cc."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for function in (self.library.read_device_stream, self.library.make_device_stream):
            function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_void_p]
        api = ctypes.pythonapi
        self.pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", api)
        )
        self.capsule = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        )(("PyCapsule_New", api))

    def take(self, thing):
        """Imports the device stream as a C++ reader, whose rows Python gets by an ordinary stream."""
        capsule = thing.__arrow_c_device_stream__()
        host = ctypes.create_string_buffer(64)
        source = self.pointer(capsule, b"arrow_device_array_stream")
        error = self.library.read_device_stream(source, ctypes.addressof(host))
        if error:
            raise ValueError(error.decode())
        return pa.RecordBatchReader._import_from_c(ctypes.addressof(host)).read_all().to_pylist()

    def give(self):
        """A device stream of a C++ reader."""
        host = ctypes.create_string_buffer(64)
        table().to_reader()._export_to_c(ctypes.addressof(host))
        struct = ctypes.create_string_buffer(64)
        error = self.library.make_device_stream(ctypes.addressof(host), ctypes.addressof(struct))
        if error:
            raise ValueError(error.decode())
        capsule = self.capsule(ctypes.addressof(struct), b"arrow_device_array_stream", None)
        # The capsule does not own its struct: it has to live as long.
        methods = {DEVICE_STREAM: lambda self, requested_schema=None, **kwargs: (struct, capsule)[1]}
        return type("Given", (), methods)()


# ---- the exchange


class Difference(Exception):
    pass


def same(found, expected, what):
    if found != expected:
        raise Difference(f"{what}: {found}, not {expected}")


class Exchange:
    def __init__(self, spoil):
        self.spoil = spoil
        self.kept = []

    def asked(self, calls, method, who):
        """Whoever asks a library asks for the best that it has, and once."""
        same(calls, [method if self.spoil != "method" else ARRAY], f"what {who} was asked")

    def pass_on(self, take, kind, ways_in, ways_out, rows):
        rows = rows if self.spoil != "values" else rows[:-1]
        for giver, in_by, give in ways_in:
            for taker, out_by, read in ways_out:
                thing, calls = spied(give())
                ours = take(thing)
                self.asked(calls, in_by, giver)
                if kind == "array":
                    same((ours.device, ours.event), ("CPU", None), f"the device of {giver}'s array")
                    same(ours.structure.splitlines()[0], "+s: 3 rows, 1 buffers", f"{giver}'s array")
                else:
                    same((ours.device_type, ours.structure.split()[0]), ("CPU", "+s"), f"{giver}'s stream")
                thing, calls = spied(ours)
                same(read(thing), rows, f"rows of {giver} with {taker}")
                same(calls, [out_by], f"what {taker} asked for")
                if self.spoil == "leak":
                    self.kept.append(take(give()))
            print(f"peer: {PEERS[giver]} to Rust: {kind}s by {in_by}")
        for taker, out_by, _ in ways_out:
            print(f"peer: Rust to {PEERS[taker]}: {kind}s by {out_by}")

    def errors(self):
        """What a producer in Python raises reaches whoever reads the stream through Rust."""

        def failing():
            yield batch()
            raise ValueError("no more rows")

        def stream():
            return ade.stream(pa.RecordBatchReader.from_batches(batch().schema, failing()))

        try:
            list(stream())
        except ValueError as error:
            same("no more rows" in str(error), True, f"the error in {error}")
        else:
            raise Difference("no error")
        try:
            pa.table(stream())
        except pa.ArrowInvalid as error:
            same("no more rows" in str(error), True, f"the error in {error}")
        else:
            raise Difference("no error")
        # A schema that the data cannot have; one that it has is as good as none.
        other = pa.schema([("number", pa.int64())])
        try:
            ade.array(batch()).__arrow_c_device_array__(other.__arrow_c_schema__())
        except ValueError:
            pass
        else:
            raise Difference("no error")
        given = ade.array(batch()).__arrow_c_device_array__(batch().schema.__arrow_c_schema__())
        same(len(given), 2, "capsules")

    def schemas(self):
        """Schemas come from all who have a class for them."""
        expected = ade.schema(batch().schema)
        same(expected.splitlines()[1], '  l "number"', "a schema")
        for other in (nanoarrow.c_schema(batch().schema), arro3.core.Schema.from_arrow(batch().schema)):
            same(ade.schema(other), expected, f"the schema of {type(other)}")
        same(pa.schema(ade.array(batch())), batch().schema, "the schema of an array")
        same(ade.schema(polars.DataFrame(table()).schema).splitlines()[1], '  l "number"', "polars's schema")

    def run(self, cpp):
        self.schemas()
        self.errors()
        self.pass_on(ade.array, "array", ARRAYS_IN, ARRAYS_OUT, ROWS)
        ways_in = [*STREAMS_IN, ("cpp", DEVICE_STREAM, cpp.give)]
        ways_out = [*STREAMS_OUT, ("cpp", DEVICE_STREAM, cpp.take)]
        self.pass_on(ade.stream, "stream", ways_in, ways_out, ROWS + ROWS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cpp")
    parser.add_argument("--spoil", choices=["values", "method", "leak"])
    options = parser.parse_args()
    cpp = Cpp(options.cpp)
    gc.collect()
    before = pa.total_allocated_bytes()
    exchange = Exchange(options.spoil)
    exchange.run(cpp)
    gc.collect()
    same(pa.total_allocated_bytes(), before, "bytes of Arrow's that are held")


main()
