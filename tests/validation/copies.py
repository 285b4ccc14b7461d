"""pyarrow compares what Rust's `to_host` gives back with what it was given: every layout
that Python can make, sliced, offsets kept and trimmed.

    copies.py libvalidate_peer.so
"""

import ctypes
import pathlib
import sys

import pyarrow as pa

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "examples" / "python"))

import layouts  # noqa: E402
import rust  # noqa: E402


def slices(batch):
    """The batch, and parts of it that begin and end within a byte of a bitmap, and at its edges."""
    rows = batch.num_rows
    for start, stop in [(0, rows), (1, rows), (3, rows - 1), (rows, rows)]:
        yield batch.slice(start, max(stop - start, 0))


def copied(library, batch, trim):
    array, schema = rust.ArrowDeviceArray(), rust.ArrowSchema()
    batch._export_to_c_device(ctypes.addressof(array), ctypes.addressof(schema))
    out = rust.ArrowDeviceArray()
    code = library.validation_copy(*map(ctypes.byref, (schema, array, out)), trim)
    rust.check(code == 0, f"to_host of {batch.schema}")
    return pa.RecordBatch._import_from_c_device(ctypes.addressof(out), batch.schema)


def main():
    library = ctypes.CDLL(sys.argv[1])
    count = 0
    for batch in layouts.batches():
        for part in slices(batch):
            for trim in (0, 1):
                seen = copied(library, part, trim)
                if part.num_rows:
                    seen.validate(full=True)
                for name, one, other in zip(part.schema.names, seen.columns, part.columns, strict=True):
                    rust.check(one.equals(other), f"column {name}, rows {part.num_rows}, trimmed {trim}")
                count += 1
    pyarrow = f"pyarrow {pa.__version__}"
    print(f"peer: {pyarrow} -> to_host -> {pyarrow}: {count} batches of every layout, kept and trimmed: equal")


if __name__ == "__main__":
    main()
