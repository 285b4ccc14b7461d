//! Objects with the methods: classes of Rust's own, and objects of any kind that are asked for what they have.
#![allow(unsafe_op_in_unsafe_fn, reason = "in what the macros of the lowest pyo3 make")]

#[path = "../../common/mod.rs"]
mod common;
mod python;

use std::sync::Arc;

use arrow_device_abi::interop::pyo3::{
    check_request, import_device_array, import_device_stream, import_schema, to_capsule, to_capsules,
};
use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceType};
use arrow_device_abi::{
    ArrayNode, ArrayView, Device, DeviceArrayStreamReader, ExportEvent, OwnedArrayStream, OwnedDeviceArray,
    OwnedDeviceArrayStream, OwnedSchema, SchemaNode, StreamFailure, errno,
};
use common::{Counter, Fail, Script, own, stream};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use python::{attach, builtin, is, none, object, run, tuple};

type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Ten numbers, on a device that is not there.
#[pyclass]
struct Numbers(Arc<Vec<i64>>);

const DEVICE: Device = Device::new(ArrowDeviceType::CUDA, 3);

impl Numbers {
    fn new() -> Self {
        Self(Arc::new((0..10).collect()))
    }

    fn schema() -> OwnedSchema {
        SchemaNode { format: "l", name: Some("numbers"), ..Default::default() }.export().unwrap()
    }

    fn array(&self) -> OwnedDeviceArray {
        let buffers = [std::ptr::null(), self.0.as_ptr().cast()];
        let node = ArrayNode { length: 10, buffers: &buffers, ..Default::default() };
        let event = ExportEvent::Handle(self.0.as_ptr().cast_mut().cast());
        // SAFETY: an int64 array of ten values, which the `Arc` keeps; nobody waits for the event.
        unsafe { node.export_on(DEVICE, event, Arc::clone(&self.0)) }.unwrap()
    }
}

#[pymethods]
impl Numbers {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_capsule(py, Self::schema())
    }

    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
        kwargs: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Pair<'py>> {
        let schema = Self::schema();
        // SAFETY: these tests pass capsules that keep to the protocol.
        unsafe { check_request(&schema, requested_schema.as_ref(), kwargs.as_ref()) }?;
        // SAFETY: the array is one of this schema.
        unsafe { to_capsules(py, schema, self.array()) }
    }

    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
        kwargs: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let schema = Self::schema();
        // SAFETY: as above.
        unsafe { check_request(&schema, requested_schema.as_ref(), kwargs.as_ref()) }?;
        let arrays = [self.array(), self.array()].map(Ok::<_, StreamFailure>);
        // SAFETY: the arrays are of this schema.
        to_capsule(py, unsafe { OwnedDeviceArrayStream::from_iter(DEVICE.device_type, schema, arrays) })
    }
}

fn numbers(py: Python<'_>) -> Bound<'_, PyAny> {
    Py::new(py, Numbers::new()).unwrap().into_bound(py).into_any()
}

fn import(object: &Bound<'_, PyAny>) -> PyResult<(OwnedSchema, OwnedDeviceArray)> {
    // SAFETY: the objects of these tests keep to the protocol.
    unsafe { import_device_array(object, None) }
}

fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<DeviceArrayStreamReader> {
    // SAFETY: as above.
    unsafe { import_device_stream(object, None) }.map(DeviceArrayStreamReader::new)
}

fn format_of(schema: &OwnedSchema) -> &str {
    schema.view().unwrap().format().unwrap()
}

/// P1, P5: what comes in is what went out: device, event, and the very buffers.
#[test]
fn a_class_of_rust_is_imported() {
    attach(|py| {
        let numbers = numbers(py);
        for _ in 0..2 {
            let (schema, array) = import(&numbers).unwrap();
            let values = numbers.extract::<PyRef<'_, Numbers>>().unwrap().0.as_ptr();
            assert_eq!((format_of(&schema), array.device()), ("l", DEVICE));
            assert!(array.sync_event().unwrap().is_some());
            // SAFETY: these tests know that the device is not there.
            let array = unsafe { array.assume_ready() };
            let view: ArrayView<'_> = array.view().unwrap();
            assert_eq!((view.length(), view.buffer(1).unwrap()), (10, values.cast()));
        }
        // SAFETY: as above.
        assert_eq!(format_of(&unsafe { import_schema(&numbers) }.unwrap()), "l");
        let stream = import_stream(&numbers).unwrap();
        assert_eq!(stream.device_type(), ArrowDeviceType::CUDA);
        assert_eq!(stream.map(|array| array.unwrap().as_raw().array.length).collect::<Vec<_>>(), [10, 10]);
    });
}

/// P2: a keyword nobody knows is an error, unless it is `None`.
#[test]
fn unknown_keywords() {
    attach(|py| {
        for method in ["__arrow_c_device_array__", "__arrow_c_device_stream__"] {
            let call = |keywords: &str| {
                let code = format!("def it(method): return method({keywords})");
                let method = numbers(py).getattr(method).unwrap();
                run(&code, "it", &none(py)).call1((method,))
            };
            for fine in ["", "None", "requested_schema=None", "later=None", "None, later=None, stream=None"] {
                call(fine).unwrap();
            }
            for (unknown, name) in [("later=1", "later"), ("first=None, stream=False", "stream")] {
                let error = call(unknown).unwrap_err();
                is(&error, "NotImplementedError", &format!("unknown keyword argument {name}"));
            }
        }
    });
}

/// P8: what is requested is best effort. Data of another shape is an error.
#[test]
fn requested_schemas() {
    let schema = |format, children: &[SchemaNode<'_>]| {
        SchemaNode { format, children, ..Default::default() }.export().unwrap()
    };
    let int = SchemaNode { format: "i", ..Default::default() };
    let text = SchemaNode { format: "u", ..Default::default() };
    let pair = SchemaNode { format: "+s", children: &[int, text], ..Default::default() };
    attach(|py| {
        let check = |have: &OwnedSchema, asked: OwnedSchema| {
            let asked = to_capsule(py, asked).unwrap();
            // SAFETY: made above.
            let checked = unsafe { check_request(have, Some(&asked), None) };
            // SAFETY: as above.
            let again = unsafe { check_request(have, Some(&asked), None) };
            is(&again.unwrap_err(), "ValueError", "can be used only once");
            checked
        };
        let number = schema("l", &[]);
        check(&number, schema("l", &[])).unwrap();
        check(&number, schema("g", &[])).unwrap();
        let batch = schema("+s", &[int, pair]);
        check(&batch, schema("+s", &[text, pair])).unwrap();
        for other in [
            schema("+s", &[int]),
            schema("+s", &[pair, int]),
            schema("+s", &[int, SchemaNode { children: &[int], ..pair }]),
            schema("l", &[]),
        ] {
            is(&check(&batch, other).unwrap_err(), "ValueError", "the requested schema is of other data");
        }
        is(
            &check(&number, schema("+s", &[])).unwrap_err(),
            "ValueError",
            "the requested schema is of other data",
        );
        // SAFETY: no capsule at all.
        let error = unsafe { check_request(&number, Some(&builtin(py, "dict")), None) }.unwrap_err();
        is(&error, "TypeError", "\"arrow_schema\"");
        // SAFETY: as above.
        unsafe { check_request(&number, Some(&none(py)), None) }.unwrap();
    });
}

/// P8: a request reaches the producer, of device data and of host data, and only if there is one.
#[test]
fn a_request_is_passed_on() {
    attach(|py| {
        let request = || SchemaNode { format: "+s", ..Default::default() }.export().unwrap();
        // SAFETY: `Numbers` keeps to the protocol.
        let error = unsafe { import_device_array(&numbers(py), Some(request())) }.unwrap_err();
        is(&error, "ValueError", "the requested schema is of other data");
        // SAFETY: as above.
        let error = unsafe { import_device_stream(&numbers(py), Some(request())) }.unwrap_err();
        is(&error, "ValueError", "the requested schema is of other data");
        for method in ["__arrow_c_array__", "__arrow_c_stream__"] {
            let code =
                format!("class Class:\n def {method}(self, *args): raise KeyError(args)\nit = Class()");
            let object = run(&code, "it", &none(py));
            let stream = method == "__arrow_c_stream__";
            for request in [None, Some(request())] {
                let given = usize::from(request.is_some());
                // SAFETY: the method raises.
                let error = unsafe {
                    if stream {
                        import_device_stream(&object, request).map(drop)
                    } else {
                        import_device_array(&object, request).map(drop)
                    }
                }
                .unwrap_err();
                let args = error.into_value(py).getattr(py, "args").unwrap();
                let args = args.bind(py).get_item(0).unwrap();
                assert_eq!(args.len().unwrap(), given);
                assert!(args.is_instance_of::<PyTuple>());
            }
        }
    });
}

fn host_pair(py: Python<'_>) -> Bound<'_, PyAny> {
    // SAFETY: an array of type null has no buffers.
    let array = unsafe { ArrayNode { length: 4, null_count: 4, ..Default::default() }.export(()) }.unwrap();
    let schema = SchemaNode { format: "n", ..Default::default() }.export().unwrap();
    // SAFETY: the array is one of this schema.
    let (schema, array) = unsafe { to_capsules(py, schema, array) }.unwrap();
    tuple(py, &[&schema, &array])
}

/// P6, P7: the device method goes first; who has none has host data.
#[test]
fn device_methods_go_first() {
    attach(|py| {
        let (schema, array) = import(&object("__arrow_c_array__", &host_pair(py))).unwrap();
        assert_eq!((format_of(&schema), array.device()), ("n", Device::CPU));
        assert_eq!((array.as_raw().array.length, array.sync_event().unwrap().is_none()), (4, true));

        let code = "class Class:
 def __arrow_c_array__(self): raise KeyError
 __arrow_c_stream__ = __arrow_c_array__
 def __arrow_c_device_array__(self): return given.__arrow_c_device_array__()
 def __arrow_c_device_stream__(self): return given.__arrow_c_device_stream__()
it = Class()";
        let both = run(code, "it", &numbers(py));
        assert_eq!(import(&both).unwrap().1.device(), DEVICE);
        assert_eq!(import_stream(&both).unwrap().device_type(), ArrowDeviceType::CUDA);
    });
}

/// P7: a host stream is one on the CPU, its errors included.
#[test]
fn a_host_stream_becomes_a_device_stream() {
    let schema = || SchemaNode { format: "n", ..Default::default() }.export().unwrap();
    attach(|py| {
        let released = Counter::new();
        let mut left = vec![
            // SAFETY: an array of type null has no buffers.
            Ok(unsafe { ArrayNode::default().export(released.clone()) }.unwrap()),
            Err(StreamFailure::new(errno::ENOMEM, "all of it")),
        ]
        .into_iter();
        // SAFETY: the arrays are of this schema.
        let stream =
            unsafe { OwnedArrayStream::from_iter(schema(), std::iter::from_fn(move || left.next())) };
        let capsule = to_capsule(py, stream).unwrap();
        let mut stream = import_stream(&object("__arrow_c_stream__", &capsule)).unwrap();
        assert_eq!(stream.device_type(), ArrowDeviceType::CPU);
        assert_eq!(format_of(&stream.schema().unwrap()), "n");
        assert_eq!(stream.next().unwrap().unwrap().device(), Device::CPU);
        let error = stream.next().unwrap().unwrap_err();
        assert_eq!(error.code(), Some(errno::ENOMEM));
        is(&error.into(), "MemoryError", "all of it");
    });
}

/// A stream without a schema is an error at once, with the errno that Python has a class for.
#[test]
fn a_host_stream_without_a_schema() {
    attach(|py| {
        for (code, class) in
            [(errno::EIO, "OSError"), (errno::EINVAL, "ValueError"), (2, "FileNotFoundError")]
        {
            let (mut script, _) = Script::<ArrowArrayStream>::new([]);
            script.schemas = [Err(Fail::new(code, Some(c"no such thing")))].into();
            let capsule = to_capsule(py, own(stream(script))).unwrap();
            let error = import_stream(&object("__arrow_c_stream__", &capsule)).unwrap_err();
            is(&error, class, "no such thing");
        }
    });
}

/// P6: an object without the methods is told what was looked for. What a method raises comes through.
#[test]
fn objects_without_the_methods() {
    attach(|py| {
        let nothing = builtin(py, "dict").call0().unwrap();
        let lacks = |error: PyErr, methods: &str| {
            let text = format!("an object with {methods} was expected, <class 'dict'> has none");
            is(&error, "TypeError", &text);
        };
        lacks(import(&nothing).unwrap_err(), "__arrow_c_device_array__ or __arrow_c_array__");
        lacks(import_stream(&nothing).unwrap_err(), "__arrow_c_device_stream__ or __arrow_c_stream__");
        // SAFETY: an object without the method.
        lacks(unsafe { import_schema(&nothing) }.unwrap_err(), "__arrow_c_schema__");

        for code in [
            "class Class:\n def __arrow_c_device_array__(self): raise KeyError('lost')\nit = Class()",
            "class Class:\n @property\n def __arrow_c_device_array__(self): raise KeyError('lost')\nit = Class()",
        ] {
            is(&import(&run(code, "it", &nothing)).unwrap_err(), "KeyError", "lost");
        }
        is(&import(&object("__arrow_c_device_array__", &nothing)).unwrap_err(), "TypeError", "");
        is(
            &import_stream(&object("__arrow_c_stream__", &nothing)).unwrap_err(),
            "TypeError",
            "a capsule named",
        );
    });
}
