//! The GIL: who holds it when structs are released and streams are read.

#[path = "../../common/mod.rs"]
mod common;
mod python;

use std::iter;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use arrow_device_abi::interop::pyo3::{from_capsule, import_device_stream, to_capsule};
use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{
    ArrayNode, DeviceArrayStreamReader, Owned, OwnedArray, OwnedArrayStream, OwnedDeviceArray,
    OwnedDeviceArrayStream, OwnedSchema, SchemaNode, StreamFailure,
};
use common::{Bare, Counter, own};
use pyo3::types::PyAnyMethods;
use pyo3::{Py, PyAny};
use python::{attach, builtin, detach, object};

/// Far longer than a thread needs, and short enough to wait for where nobody answers.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits for another thread to take the GIL: in vain, while this one holds it.
fn another_thread_gets_the_gil() -> Result<(), RecvTimeoutError> {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || attach(|_| done.send(())));
    wait.recv_timeout(LIMIT)?;
    thread.join().unwrap().unwrap();
    Ok(())
}

struct NeedsTheGil(mpsc::Sender<Result<(), RecvTimeoutError>>);
impl Drop for NeedsTheGil {
    fn drop(&mut self) {
        self.0.send(another_thread_gets_the_gil()).unwrap();
    }
}

fn array<K: Send + 'static>(keep: K) -> OwnedArray {
    // SAFETY: an array of type null has no buffers.
    unsafe { ArrayNode::default().export(keep) }.unwrap()
}

fn schema() -> OwnedSchema {
    SchemaNode { format: "n", ..Default::default() }.export().unwrap()
}

/// C33: the end of a capsule waits for a thread that takes the GIL, and for the one that the release runs on itself.
#[test]
fn a_capsule_ends_without_the_gil() {
    let (sender, answers) = mpsc::channel();
    let keep = || NeedsTheGil(sender.clone());
    let stream = |keep| {
        let arrays = iter::once_with(move || Ok::<_, StreamFailure>(array(keep)));
        // SAFETY: the arrays are of this schema.
        unsafe { OwnedArrayStream::from_iter(schema(), arrays) }
    };
    attach(|py| {
        drop(to_capsule(py, array(keep())).unwrap());
        drop(to_capsule(py, OwnedDeviceArray::from(array(keep()))).unwrap());
        drop(to_capsule(py, stream(keep())).unwrap());
    });
    assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Ok(()); 3]);
}

/// C33: a struct that keeps Python objects alive is released on a thread that Python has never seen, while another has
/// the GIL at first.
#[test]
fn release_takes_the_gil() {
    let (keep, array) = attach(|py| {
        let keep: Py<PyAny> = builtin(py, "list").call0().unwrap().unbind();
        struct Clear(Py<PyAny>);
        impl Drop for Clear {
            fn drop(&mut self) {
                attach(|py| drop(self.0.bind(py).call_method1("append", (1,)).unwrap()));
            }
        }
        let array = to_capsule(py, array(Clear(keep.clone_ref(py)))).unwrap();
        // SAFETY: made above.
        (keep, unsafe { from_capsule::<arrow_device_abi::raw::ArrowArray>(&array) }.unwrap())
    });
    attach(|py| {
        let thread = thread::spawn(move || drop(array));
        detach(py, || thread.join().unwrap());
        assert_eq!(keep.bind(py).len().unwrap(), 1);
    });
}

/// P4: of all threads that take one capsule at the same time, one gets the struct. This is Python's GIL's doing where
/// there is one, and ours where there is none.
#[test]
fn one_of_many_threads_gets_it() {
    const THREADS: usize = 8;
    for _ in 0..200 {
        let released = Counter::new();
        let capsule = attach(|py| {
            let struct_ = own(ArrowDeviceArray::bare(&released, true));
            to_capsule(py, struct_).unwrap().unbind()
        });
        let (capsule, start) = (Arc::new(capsule), Arc::new(Barrier::new(THREADS)));
        let threads: Vec<_> = iter::repeat_with(|| (Arc::clone(&capsule), Arc::clone(&start)))
            .take(THREADS)
            .map(|(capsule, start)| {
                thread::spawn(move || {
                    start.wait();
                    // SAFETY: made above.
                    attach(|py| unsafe { from_capsule::<ArrowDeviceArray>(capsule.bind(py)) }.ok())
                })
            })
            .collect();
        let taken: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
        assert_eq!((taken.len(), released.get()), (1, 0));
        drop(taken);
        assert_eq!(released.get(), 1);
    }
}

/// C33: the schema of a host stream is asked for, and what was half read is released, without the GIL.
#[test]
fn a_host_stream_may_need_the_gil_on_another_thread() {
    let answers = attach(|py| {
        let (sender, answers) = mpsc::channel();
        // SAFETY: the arrays are of this schema.
        let stream =
            unsafe { OwnedArrayStream::from_iter(schema(), iter::empty::<Result<_, StreamFailure>>()) };
        // Wraps the callbacks of `stream`: the schema of a stream as Rust makes them needs nobody.
        let mut slow = own(slow::stream(stream, NeedsTheGil(sender)));
        assert!(!slow.is_released());
        let capsule = to_capsule(py, std::mem::take(&mut slow)).unwrap();
        // SAFETY: the method gives the capsule made above.
        let stream = unsafe { import_device_stream(&object("__arrow_c_stream__", &capsule), None) }.unwrap();
        detach(py, || drop(stream));
        answers
    });
    assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Ok(()); 2]);
}

mod slow {
    //! A stream whose schema has to be waited for.

    use std::ffi::c_int;

    use arrow_device_abi::raw::ArrowSchema;

    use super::*;

    struct Private {
        inner: OwnedArrayStream,
        _gil: NeedsTheGil,
        sender: mpsc::Sender<Result<(), RecvTimeoutError>>,
    }

    pub fn stream(inner: OwnedArrayStream, gil: NeedsTheGil) -> ArrowArrayStream {
        let sender = gil.0.clone();
        let private_data = Box::into_raw(Box::new(Private { inner, _gil: gil, sender })).cast();
        ArrowArrayStream {
            get_schema: Some(get_schema),
            release: Some(release),
            private_data,
            ..ArrowArrayStream::released()
        }
    }

    unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
        // SAFETY: called on a live stream of `stream`, one call at a time.
        let private = unsafe { &mut *(*stream).private_data.cast::<Private>() };
        private.sender.send(another_thread_gets_the_gil()).unwrap();
        let inner = private.inner.as_mut_ptr();
        // SAFETY: live, and one call at a time.
        unsafe { (*inner).get_schema.unwrap()(inner, out) }
    }

    unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
        // SAFETY: a live stream of `stream`, for the last time.
        drop(unsafe { Box::from_raw((*stream).private_data.cast::<Private>()) });
        // SAFETY: valid for writes.
        unsafe { (*stream).release = None };
    }
}

/// S7: a stream whose iterator is a Python object is read without the GIL, and takes it as it needs it.
#[test]
fn a_stream_of_python_objects_is_read_without_the_gil() {
    attach(|py| {
        let items = python::run("it = iter([1, 2, 3])", "it", &builtin(py, "dict")).unbind();
        let arrays = iter::from_fn(move || {
            attach(|py| {
                let next = builtin(py, "next").call1((items.bind(py), python::none(py))).unwrap();
                let length: i64 = next.extract().ok()?;
                let node = ArrayNode { length, null_count: length, ..Default::default() };
                // SAFETY: an array of type null has no buffers.
                Some(Ok::<_, StreamFailure>(OwnedDeviceArray::from(unsafe { node.export(()) }.unwrap())))
            })
        });
        // SAFETY: the arrays are of this schema.
        let stream = unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, schema(), arrays) };
        let capsule = to_capsule(py, stream).unwrap();
        // SAFETY: the method gives the capsule made above.
        let stream = unsafe { import_device_stream(&object("__arrow_c_device_stream__", &capsule), None) };
        let mut reader = DeviceArrayStreamReader::new(stream.unwrap());
        let lengths = detach(py, || {
            let read = reader.by_ref().map(|array: Result<Owned<_>, _>| array.unwrap().as_raw().array.length);
            read.collect::<Vec<_>>()
        });
        assert_eq!(lengths, [1, 2, 3]);
    });
}
