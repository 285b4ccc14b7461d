"""The Rust library by ctypes: the C structs, capsules around them, and what Rust gives."""

import ctypes

# ---- the C structs, to be looked at: Rust, pyarrow and nanoarrow have their own idea of them


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class ArrowDeviceArray(ctypes.Structure):
    _anonymous_ = ["array"]
    _fields_ = [
        ("array", ArrowArray),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


class ArrowArrayStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
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
    stream = ctypes.POINTER(ArrowArrayStream)
    for name, result, *arguments in [
        ("exchange_last_error", ctypes.c_char_p),
        ("exchange_held", ctypes.c_int64),
        ("exchange_take", ctypes.c_void_p, schema, array),
        ("exchange_rows", ctypes.c_int64, ctypes.c_void_p),
        ("exchange_columns", ctypes.c_int64, ctypes.c_void_p),
        ("exchange_column", ctypes.c_bool, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Column)),
        ("exchange_give_back", ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, schema, array),
        ("exchange_drop", None, ctypes.c_void_p),
        ("exchange_make", ctypes.c_bool, ctypes.c_size_t, schema, array),
        ("exchange_make_stream", ctypes.c_bool, ctypes.c_bool, stream),
        ("exchange_release_schema", None, schema),
        ("exchange_release_array", None, array),
        ("exchange_release_stream", None, stream),
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

SCHEMA_NAME, ARRAY_NAME, STREAM_NAME = b"arrow_schema", b"arrow_device_array", b"arrow_array_stream"


class Capsules:
    """Makes capsules around structs; they release what nobody took (P3)."""

    def __init__(self, rust):
        self.structs = {}  # by address: keeps alive what the capsules point to
        self.destroy = {
            SCHEMA_NAME: self.destructor(SCHEMA_NAME, rust.exchange_release_schema),
            ARRAY_NAME: self.destructor(ARRAY_NAME, rust.exchange_release_array),
            STREAM_NAME: self.destructor(STREAM_NAME, rust.exchange_release_stream),
        }

    def new(self, struct, name):
        address = ctypes.addressof(struct)
        self.structs[address] = struct
        return capsule_new(address, name, ctypes.cast(self.destroy[name], ctypes.c_void_p))

    def destructor(self, name, release):
        def destroy(capsule):
            release(ctypes.byref(self.structs.pop(dying_capsule_pointer(capsule, name))))

        return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(destroy)


def struct_in(capsule, kind, name):
    return kind.from_address(capsule_pointer(capsule, name))


# ---- what Rust holds and gives


class Difference(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Difference(what)


def out(kind):
    """An out-struct may hold anything, also what looks like a live struct (C5)."""
    struct = kind()
    ctypes.memset(ctypes.byref(struct), 0x5A, ctypes.sizeof(struct))
    return struct


class FromRust:
    """Something that Rust can give: `structs` gives it."""

    rust = None
    capsules = None
    spoil = None

    def succeed(self, good):
        if not good:
            raise ValueError(self.rust.exchange_last_error().decode())

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        unknown = [name for name, value in kwargs.items() if value is not None]
        if unknown:
            raise NotImplementedError(f"unknown arguments: {unknown}")
        if requested_schema is not None:
            raise ValueError("batches are given as they are")
        schema, array = self.structs()
        return self.capsules.new(schema, SCHEMA_NAME), self.capsules.new(array, ARRAY_NAME)


class RustBatch(FromRust):
    """A batch that Rust has taken. Gives itself once: afterwards Rust has nothing that could be asked."""

    def __init__(self, schema, array):
        self.anew = False
        if self.spoil == "row":
            array.length -= 1
        self.handle = self.rust.exchange_take(ctypes.byref(schema), ctypes.byref(array))
        # Refused or not, both are marked as moved.
        check(
            schema.release is None and array.release is None,
            "taken, and the source is not marked released (D13)",
        )
        self.succeed(self.handle)

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

    def structs(self):
        """The structs as they came, or with `anew` new ones that Rust made around the same buffers."""
        check(self.handle, "given back before")
        schema, array = out(ArrowSchema), out(ArrowDeviceArray)
        handle, self.handle = self.handle, None
        self.succeed(
            self.rust.exchange_give_back(handle, self.anew, ctypes.byref(schema), ctypes.byref(array))
        )
        return schema, array

    def __del__(self):
        if getattr(self, "handle", None) and self.spoil != "leak":
            self.rust.exchange_drop(self.handle)


class MadeBatch(FromRust):
    """A batch of Rust's own data, one of those that `layouts.py` expects. Gives itself as often as asked."""

    def __init__(self, variant):
        self.variant = variant

    def structs(self):
        schema, array = out(ArrowSchema), out(ArrowDeviceArray)
        self.succeed(self.rust.exchange_make(self.variant, ctypes.byref(schema), ctypes.byref(array)))
        self.tamper(schema, array)
        return schema, array

    def tamper(self, schema, array):
        """Does what a wrong producer would do."""
        names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
        column = {name: array.children[i].contents for i, name in enumerate(names)}
        if array.length == 0:
            return
        if self.spoil == "buffer":
            column["int64"].buffers[1] += 8
        elif self.spoil == "offset":
            column["int64"].offset = 0
        elif self.spoil == "nulls":
            column["int64"].null_count = 0
        elif self.spoil == "children":
            column["struct"].n_children -= 1
        elif self.spoil == "order":
            children = column["sparse union"].children
            children[0], children[1] = children[1], children[0]
        elif self.spoil == "dictionary":
            column["dictionary"].dictionary = None
        elif self.spoil == "flags":
            schema.children[0].contents.flags = 0
        elif self.spoil == "metadata":
            schema.metadata = None


class MadeStream(FromRust):
    """A stream of all of them; `fails` puts an error at its end."""

    def __init__(self, fails=False):
        self.fails = fails

    def structs(self):
        stream = out(ArrowArrayStream)
        self.succeed(self.rust.exchange_make_stream(self.fails, ctypes.byref(stream)))
        return stream

    def __arrow_c_stream__(self, requested_schema=None):
        if requested_schema is not None:
            raise ValueError("streams are given as they are")
        return self.capsules.new(self.structs(), STREAM_NAME)
