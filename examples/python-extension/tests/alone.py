"""The module by itself: its own arrays, and one on a GPU that is not there. Needs nothing but Python."""

import ctypes
import gc
import sys
import threading
from pathlib import Path

import arrow_device_example as ade

# The C structs for ctypes are in the other example.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from rust import ARRAY_NAME, ArrowDeviceArray, capsule_new  # noqa: E402


class FakeCuda:
    """Three numbers on GPU 5, and an event to wait for."""

    def __init__(self):
        self.released = 0
        self.release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.count)
        self.buffers = (ctypes.c_void_p * 2)(None, 0xDEAD0000)
        self.event = ctypes.c_void_p(0xBEEF)

    def count(self, address):
        self.released += 1
        ArrowDeviceArray.from_address(address).array.release = None

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        schema, _ = ade.Range(0).__arrow_c_device_array__()
        self.struct = ArrowDeviceArray()
        self.struct.array.length, self.struct.array.n_buffers, self.struct.array.null_count = 3, 2, -1
        self.struct.array.buffers = self.buffers
        self.struct.array.release = ctypes.cast(self.release, ctypes.c_void_p)
        self.struct.device_type, self.struct.device_id = 2, 5
        self.struct.sync_event = ctypes.addressof(self.event)
        return schema, capsule_new(ctypes.addressof(self.struct), ARRAY_NAME, None)


def raises(kind, text, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def arrays():
    numbers = ade.Range(4)
    array = ade.array(numbers)
    assert type(array) is ade.HostArray and isinstance(array, ade.DeviceArray)
    assert (array.device, array.event) == ("CPU", None)
    assert array.structure == 'l "range": 4 rows, 2 buffers\n', array.structure
    assert ade.schema(array) == 'l "range"\n'
    # On it goes, through as many hands as like; the memory stays where it is.
    again = ade.array(ade.array(array))
    assert again.structure == 'l "range": 4 rows, 2 buffers\n'
    assert numbers.exports == 1
    raises(ValueError, "can be used only once", ade.array, array)
    del again
    assert numbers.exports == 0
    # A capsule that nobody takes releases what it holds.
    capsules = numbers.__arrow_c_device_array__()
    assert numbers.exports == 1
    del capsules
    assert numbers.exports == 0


def streams():
    numbers = ade.Range(3)
    stream = ade.stream(ade.stream(numbers))
    assert type(stream) is ade.HostStream and stream.device_type == "CPU"
    assert stream.structure == 'l "range"\n'
    assert [array.structure for array in stream] == ['l "range": 3 rows, 2 buffers\n'] * 2
    assert next(stream, None) is None
    half_read = ade.stream(numbers)
    next(half_read)
    rest = ade.stream(half_read)
    raises(ValueError, "released", next, half_read)
    assert len(list(rest)) == 1
    host = ade.stream(numbers).__arrow_c_stream__()
    del stream, half_read, rest
    assert numbers.exports == 2
    del host
    assert numbers.exports == 0


def a_gpu():
    fake = FakeCuda()
    array = ade.array(fake)
    # Not in host memory: the device method only.
    assert type(array) is ade.DeviceArray and not hasattr(array, "__arrow_c_array__")
    assert array.device == "CUDA:5"
    assert array.event == f"Cuda({ctypes.addressof(fake.event):#x})", array.event
    assert array.structure == 'l "range": 3 rows, nulls not counted, 2 buffers\n', array.structure
    again = ade.array(array)
    assert (again.device, fake.released) == ("CUDA:5", 0)
    del again
    assert fake.released == 1


def errors():
    numbers = ade.Range(1)
    method = numbers.__arrow_c_device_array__
    method(None, later=None)
    raises(NotImplementedError, "later", method, later=1)
    raises(TypeError, "arrow_schema", method, 5)
    raises(ValueError, "arrow_device_array", method, method()[1])
    schema = numbers.__arrow_c_schema__()
    method(schema)
    raises(ValueError, "only once", method, schema)
    raises(TypeError, "__arrow_c_device_array__ or __arrow_c_array__", ade.array, object())
    raises(TypeError, "__arrow_c_device_stream__ or __arrow_c_stream__", ade.stream, numbers.exports)
    raises(TypeError, "__arrow_c_schema__", ade.schema, None)


def threads():
    numbers = ade.Range(2)
    for _ in range(200):
        array, taken = ade.array(numbers), []

        def take():
            try:
                taken.append(ade.array(array))
            except (ValueError, RuntimeError):  # RuntimeError: another thread is in the object's method
                pass

        all_threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
        assert len(taken) == 1, taken
    del array, taken, take
    gc.collect()
    assert numbers.exports == 0, numbers.exports


# Not released before the interpreter itself ends, which must go well too.
at_exit = [ade.Range(1).__arrow_c_device_stream__(), ade.stream(ade.Range(1)), ade.array(ade.Range(1))]

for test in (arrays, streams, a_gpu, errors, threads):
    test()
free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
print(f"note: Python {sys.version.split()[0]}{' without GIL' if free_threaded else ''}")
