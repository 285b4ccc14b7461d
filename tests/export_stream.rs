//! Streams out of iterators: what they yield, when, and to whom.

mod common;
mod export;

use core::ffi::CStr;
use core::ptr;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;

use arrow_device_abi::errno::EINVAL;
use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema};
use arrow_device_abi::{
    ArrayStreamReader, Device, DeviceArrayStreamReader, Owned, OwnedArrayStream, OwnedDeviceArrayStream,
    OwnedSchema, Release, StreamFailure, StreamReader, StreamStruct,
};

use common::Counter;
use export::stream::{Consumer, Produced, for_both_streams, on_device, schema};

/// A stream of arrays of these lengths; `dropped` counts their ends.
fn of_lengths<S: Produced>(lengths: &[i64], dropped: &Counter) -> Owned<S> {
    let dropped = dropped.clone();
    let lengths = lengths.to_vec();
    S::from_items(schema(), lengths.into_iter().map(move |n| Ok::<_, StreamFailure>(S::array(n, &dropped))))
}

fn is_the_schema(schema: &OwnedSchema) -> bool {
    schema.view().unwrap().name() == Ok(Some("nulls"))
}

/// S3, S6: what goes in comes out of the reader of this crate, in order; then the end, and again the end.
#[test]
fn a_round_trip() {
    fn test<S: Produced>() {
        let dropped = Counter::new();
        let mut reader = StreamReader::new(of_lengths::<S>(&[3, 0, 5], &dropped));
        assert!(is_the_schema(&reader.schema().unwrap()));
        let arrays: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        let lengths: Vec<_> = arrays.iter().map(|array| S::length(array.as_raw())).collect();
        assert_eq!(lengths, [3, 0, 5]);
        assert!(reader.next_array().unwrap().is_none());
        assert!(is_the_schema(&reader.schema().unwrap()));
        // S6: they outlive the stream.
        drop(reader);
        assert_eq!(dropped.get(), 0);
        drop(arrays);
        assert_eq!(dropped.get(), 3);
    }
    for_both_streams!(test);
}

/// What the structs say without being called: all callbacks are there, and the device type is (S1).
#[test]
fn the_fields() {
    for device_type in [ArrowDeviceType::CPU, ArrowDeviceType::ROCM, ArrowDeviceType(77)] {
        let items: [Result<_, StreamFailure>; 0] = [];
        // SAFETY: the arrays are of this schema.
        let stream = unsafe { OwnedDeviceArrayStream::from_iter(device_type, schema(), items) };
        let raw = stream.as_raw();
        assert_eq!(raw.device_type, device_type);
        assert!(raw.get_schema.is_some() && raw.get_next.is_some());
        assert!(raw.get_last_error.is_some() && raw.release.is_some());
        let mut reader = DeviceArrayStreamReader::new(stream);
        assert!(reader.next_array().unwrap().is_none());
    }
    let items: [Result<_, StreamFailure>; 0] = [];
    // SAFETY: the arrays are of this schema.
    let mut reader = ArrayStreamReader::new(unsafe { OwnedArrayStream::from_iter(schema(), items) });
    assert!(reader.next_array().unwrap().is_none());
}

/// S3, C5: the out-struct is written over whatever is there; at the end with a released one, now and ever after.
#[test]
fn out_is_only_written() {
    fn test<S: Produced>() {
        let dropped = Counter::new();
        let mut consumer = Consumer::new(of_lengths::<S>(&[1], &dropped));
        assert!(is_the_schema(&consumer.schema().unwrap()));
        assert_eq!(consumer.next_length(), Ok(1));
        assert_eq!(dropped.get(), 1);
        for _ in 0..3 {
            assert!(consumer.next().unwrap().is_none());
            assert_eq!(consumer.last_error(), None);
        }
        consumer.release();
    }
    for_both_streams!(test);
}

/// S6: the schema is there as often as it is asked for, at any time, and each is its own.
#[test]
fn schemas_are_independent() {
    fn test<S: Produced>() {
        let mut consumer = Consumer::new(of_lengths::<S>(&[1], &Counter::new()));
        let first = consumer.schema().unwrap();
        let second = consumer.schema().unwrap();
        assert_ne!(first.as_raw().format, second.as_raw().format);
        drop(first);
        assert_eq!(consumer.next_length(), Ok(1));
        assert_eq!(consumer.next_length(), Ok(-1));
        let third = consumer.schema().unwrap();
        consumer.release();
        assert!(is_the_schema(&second) && is_the_schema(&third));
    }
    for_both_streams!(test);
}

/// Counts its calls and its end, and yields on after `None`, as iterators may.
struct Counted<T> {
    items: VecDeque<Option<T>>,
    calls: Counter,
    dropped: Counter,
}

impl<T> Iterator for Counted<T> {
    type Item = Result<T, StreamFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.calls.add();
        self.items.pop_front().flatten().map(Ok)
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        self.dropped.add();
    }
}

fn counted<S: Produced>(lengths: &[i64], calls: &Counter, dropped: &Counter) -> Owned<S> {
    let array = |length| (length >= 0).then(|| S::array(length, &Counter::new()));
    let items = lengths.iter().map(|length| array(*length)).collect();
    S::from_items(schema(), Counted { items, calls: calls.clone(), dropped: dropped.clone() })
}

/// S3: nothing is asked of the iterator before the consumer asks, and nothing after its end, when it is dropped.
#[test]
fn the_iterator_is_asked_once_an_array() {
    fn test<S: Produced>() {
        let (calls, dropped) = (Counter::new(), Counter::new());
        let mut consumer = Consumer::new(counted::<S>(&[4, 5, -1, 6], &calls, &dropped));
        drop(consumer.schema().unwrap());
        assert_eq!(calls.get(), 0);
        for (call, length) in [(1, 4), (2, 5), (3, -1), (3, -1), (3, -1)] {
            assert_eq!(consumer.next_length(), Ok(length));
            assert_eq!(calls.get(), call);
            assert_eq!(dropped.get(), usize::from(call == 3));
        }
        consumer.release();
        assert_eq!(dropped.get(), 1);
    }
    for_both_streams!(test);
}

/// S2, S5: a stream released early drops the iterator, with the arrays that are still in it.
#[test]
fn an_early_release_drops_the_iterator() {
    fn test<S: Produced>() {
        let (dropped, calls) = (Counter::new(), Counter::new());
        for read in 0..3 {
            let ended = Counter::new();
            let before = dropped.get();
            let items = (0..3).map(|length| Some(S::array(length, &dropped))).collect();
            let items = Counted { items, calls: calls.clone(), dropped: ended.clone() };
            let mut consumer = Consumer::new(S::from_items(schema(), items));
            for length in 0..read {
                assert_eq!(consumer.next_length(), Ok(length));
            }
            assert_eq!((dropped.get(), ended.get()), (before + read as usize, 0));
            consumer.release();
            assert_eq!((dropped.get(), ended.get()), (before + 3, 1));
        }
    }
    for_both_streams!(test);
}

/// B6, C4: a stream moved by its bytes goes on, and release acts on the struct that it is given; a second call or one
/// on nothing does nothing.
#[test]
fn a_stream_may_be_moved() {
    fn test<S: Produced>() {
        let (calls, dropped) = (Counter::new(), Counter::new());
        let mut consumer = Consumer::new(counted::<S>(&[1, 2, 3], &calls, &dropped));
        for length in [1, 2, 3, -1, -1] {
            consumer = consumer.moved();
            assert_eq!(consumer.next_length(), Ok(length));
        }
        let mut consumer = consumer.moved();
        let stream = consumer.raw();
        // SAFETY: a live stream, then a released one, then none.
        unsafe {
            let release = S::release_of(stream).unwrap();
            release(stream);
            assert!((*stream).is_released());
            release(stream);
            release(ptr::null_mut());
        }
        assert_eq!(dropped.get(), 1);
    }
    for_both_streams!(test);
}

/// S2: null pointers and released streams are answered and not followed. A call with nowhere to write to loses no
/// array.
#[test]
fn null_pointers_and_released_streams() {
    fn test<S: Produced>() {
        let mut consumer = Consumer::new(of_lengths::<S>(&[1, 2], &Counter::new()));
        assert_eq!(consumer.next_length(), Ok(1));
        let stream = consumer.raw();
        // SAFETY: a live stream.
        let callbacks = unsafe { &*stream };
        let get_schema = StreamStruct::get_schema(callbacks).unwrap();
        let get_next = StreamStruct::get_next(callbacks).unwrap();
        let get_last_error = StreamStruct::get_last_error(callbacks).unwrap();
        let (mut schema, mut array) = (ArrowSchema::released(), S::Array::released());
        // SAFETY: null pointers are what is tried, the others are valid.
        unsafe {
            assert_eq!(get_schema(stream, ptr::null_mut()), EINVAL);
            assert_eq!(get_next(stream, ptr::null_mut()), EINVAL);
            assert!(get_last_error(stream).is_null());
            assert_eq!(get_schema(ptr::null_mut(), &raw mut schema), EINVAL);
            assert_eq!(get_next(ptr::null_mut(), &raw mut array), EINVAL);
            assert_eq!(get_next(ptr::null_mut(), ptr::null_mut()), EINVAL);
            assert!(get_last_error(ptr::null_mut()).is_null());
        }
        assert_eq!(consumer.next_length(), Ok(2));
        let mut consumer = consumer.moved();
        let stream = consumer.raw();
        // SAFETY: a live stream, and a released one afterwards, whose source is gone.
        unsafe {
            S::release_of(stream).unwrap()(stream);
            assert_eq!(get_schema(stream, &raw mut schema), EINVAL);
            assert_eq!(get_next(stream, &raw mut array), EINVAL);
            assert!(get_last_error(stream).is_null());
        }
        assert!(schema.is_released() && array.is_released());
    }
    for_both_streams!(test);
}

/// S7, C33: a stream can be sent, and driven and released elsewhere. The iterator need not be one for two threads.
#[test]
fn a_stream_is_driven_from_other_threads() {
    macro_rules! test {
        ($stream:ty) => {
            let dropped = Counter::new();
            let on = dropped.clone();
            // Not `Sync`.
            let next = Cell::new(0);
            let items = std::iter::from_fn(move || {
                next.set(next.get() + 1);
                (next.get() < 5).then(|| Ok::<_, StreamFailure>(<$stream>::array(next.get(), &on)))
            });
            let mut reader = StreamReader::new(<$stream>::from_items(schema(), items));
            let (send, receive) = mpsc::channel();
            let thread = thread::spawn(move || {
                send.send(reader.next_array().unwrap().unwrap()).unwrap();
                let rest = move || reader.for_each(|array| send.send(array.unwrap()).unwrap());
                thread::spawn(rest).join().unwrap();
            });
            let lengths: Vec<_> =
                receive.into_iter().map(|array| <$stream>::length(array.as_raw())).collect();
            assert_eq!(lengths, [1, 2, 3, 4]);
            thread.join().unwrap();
            assert_eq!(dropped.get(), 4);
        };
    }
    test!(ArrowArrayStream);
    test!(ArrowDeviceArrayStream);
}

/// S1: the arrays of a device stream may be on different devices of one type.
#[test]
fn devices_of_one_type() {
    let dropped = Counter::new();
    let cuda = |id| Device::new(ArrowDeviceType::CUDA, id);
    let arrays = [0, 1, -1].map(|id| Ok::<_, StreamFailure>(on_device(1, cuda(id), &dropped)));
    // SAFETY: the arrays are of this schema.
    let stream = unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CUDA, schema(), arrays) };
    let reader = DeviceArrayStreamReader::new(stream);
    assert_eq!(reader.device_type(), ArrowDeviceType::CUDA);
    let ids: Vec<_> = reader.map(|array| array.unwrap().device().device_id).collect();
    assert_eq!(ids, [0, 1, -1]);
    assert_eq!(dropped.get(), 3);
}

/// The text of a failure lives until the next callback, so also while it is asked for again (S4).
#[test]
fn a_text_can_be_read_more_than_once() {
    fn test<S: Produced>() {
        let items = [Err::<S::Owned, _>(StreamFailure::new(7, "disk gone"))];
        let mut consumer = Consumer::new(S::from_items(schema(), items));
        assert_eq!(consumer.next_length(), Err(7));
        let stream = consumer.raw();
        // SAFETY: a live stream whose last callback failed; the text lives until the next one.
        unsafe {
            let get_last_error = StreamStruct::get_last_error(&*stream).unwrap();
            let first = get_last_error(stream);
            assert!(!first.is_null());
            let first = CStr::from_ptr(first);
            assert_eq!(first, c"disk gone");
            assert_eq!(get_last_error(stream), first.as_ptr());
            assert_eq!(first, c"disk gone");
        }
        consumer.release();
    }
    for_both_streams!(test);
}

/// S3, S4: a stream may be made of what another one yields, failure and all.
#[test]
fn a_stream_of_a_stream() {
    macro_rules! test {
        ($stream:ty) => {
            let (calls, dropped) = (Counter::new(), Counter::new());
            let inner = StreamReader::new(counted::<$stream>(&[1, 2, -1], &calls, &dropped));
            let outer = StreamReader::new(<$stream>::from_items(schema(), inner));
            let lengths: Vec<_> = outer.map(|array| <$stream>::length(array.unwrap().as_raw())).collect();
            assert_eq!((lengths, dropped.get()), (vec![1, 2], 1));

            let items = [Err::<<$stream as Produced>::Owned, _>(StreamFailure::new(7, "disk gone"))];
            let inner = StreamReader::new(<$stream>::from_items(schema(), items));
            let error = StreamReader::new(<$stream>::from_items(schema(), inner)).next_array().unwrap_err();
            assert_eq!(error.code(), Some(7));
            assert_eq!(error.message(), Some("get_next failed with code 7: disk gone"));
        };
    }
    test!(ArrowArrayStream);
    test!(ArrowDeviceArrayStream);
}
