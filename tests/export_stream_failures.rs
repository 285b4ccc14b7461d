//! Streams that fail: the code, the text, how long, and what is left.

mod common;
mod export;

use core::fmt;
use std::error::Error;
use std::io;

use arrow_device_abi::errno::{EINVAL, EIO, ENOMEM};
use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use arrow_device_abi::{
    Device, Owned, OwnedArray, OwnedArrayStream, OwnedDeviceArrayStream, StreamFailure, StreamReader,
};

use common::Counter;
use export::stream::{Consumer, Produced, for_both_streams, on_device, schema};

/// What is yielded, and counts its end.
struct Items<T>(Vec<T>, Counter);

impl<T> Iterator for Items<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
}

impl<T> Drop for Items<T> {
    fn drop(&mut self) {
        self.1.add();
    }
}

/// A stream that ends with this failure after one array.
fn failing<S: Produced, E: Into<StreamFailure> + Send + 'static>(error: E, ended: &Counter) -> Consumer<S> {
    let array = |length| Ok(S::array(length, &Counter::new()));
    let items = Items(vec![array(1), Err(error), array(2)], ended.clone());
    Consumer::new(S::from_items(schema(), items))
}

/// S4, B10: the failure is reported as often as the consumer asks on, with its code and text; there is no text
/// before, none after a success, and the iterator is dropped at once.
#[test]
fn a_failure_stays() {
    fn test<S: Produced>() {
        let ended = Counter::new();
        let mut consumer = failing::<S, _>(StreamFailure::new(123, "disk gone"), &ended);
        assert_eq!(consumer.last_error(), None);
        assert_eq!(consumer.next_length(), Ok(1));
        assert_eq!((consumer.last_error(), ended.get()), (None, 0));
        for _ in 0..3 {
            assert_eq!(consumer.next_length(), Err(123));
            assert_eq!(consumer.last_error().as_deref(), Some("disk gone"));
            assert_eq!(ended.get(), 1);
        }
        // The schema can still be had, and its success has no text.
        drop(consumer.schema().unwrap());
        assert_eq!(consumer.last_error(), None);
        let mut consumer = consumer.moved();
        assert_eq!(consumer.next_length(), Err(123));
        assert_eq!(consumer.last_error().as_deref(), Some("disk gone"));
        consumer.release();
        assert_eq!(ended.get(), 1);
    }
    for_both_streams!(test);
}

/// C6: the reader of this crate reports code and text, once.
#[test]
fn the_reader_reports_it() {
    fn test<S: Produced>() {
        let items = [Err::<S::Owned, _>(StreamFailure::new(-1, "no such table"))];
        let mut reader = StreamReader::new(S::from_items(schema(), items));
        let error = reader.next_array().unwrap_err();
        assert_eq!((error.code(), error.message()), (Some(-1), Some("no such table")));
        assert!(reader.next_array().unwrap().is_none());
    }
    for_both_streams!(test);
}

/// B10: codes are kept, but 0, which would be a success; a NUL byte in the text is replaced, where C would see its end.
#[test]
fn failures_by_hand() {
    for (code, kept) in [(5, 5), (0, EIO), (-1, -1), (i32::MIN, i32::MIN), (9999, 9999)] {
        assert_eq!(StreamFailure::new(code, "x").code(), kept);
    }
    for (text, kept) in [
        ("", ""),
        ("größe", "größe"),
        ("a\0b", "a\u{fffd}b"),
        ("\0", "\u{fffd}"),
        ("a\0\0", "a\u{fffd}\u{fffd}"),
    ] {
        let failure = StreamFailure::new(5, text);
        assert_eq!(failure.message().to_str(), Ok(kept));
        assert_eq!(failure.to_string(), format!("code 5: {kept}"));
        assert_eq!(failure, failure.clone());
    }
    let mut consumer = failing::<ArrowArrayStream, _>(StreamFailure::new(0, "a\0b"), &Counter::new());
    assert_eq!(consumer.next_length(), Ok(1));
    assert_eq!(consumer.next_length(), Err(EIO));
    assert_eq!(consumer.last_error().as_deref(), Some("a\u{fffd}b"));
    consumer.release();
}

#[derive(Debug)]
struct Custom(&'static str);

impl fmt::Display for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "custom: {}", self.0)
    }
}

impl Error for Custom {}

/// What the consumer is told of an error.
fn told<E: Into<StreamFailure> + Send + 'static>(error: E) -> (i32, String) {
    let mut consumer = failing::<ArrowDeviceArrayStream, _>(error, &Counter::new());
    assert_eq!(consumer.next_length(), Ok(1));
    let code = consumer.next_length().unwrap_err();
    let text = consumer.last_error().unwrap();
    consumer.release();
    (code, text)
}

/// B10: an `io::Error` of the operating system keeps its errno, one of Rust gets the code of its kind, others are
/// `EIO`. All keep their text. Without feature `std` there is no `io::Error` to know.
#[test]
fn errors_of_rust() {
    let std = |code| if cfg!(feature = "std") { code } else { EIO };
    for errno in [1, 2, 13, ENOMEM, EINVAL, EIO] {
        let error = io::Error::from_raw_os_error(errno);
        let text = error.to_string();
        assert_eq!(told(error), (std(errno), text));
    }
    for (kind, code) in [
        (io::ErrorKind::OutOfMemory, ENOMEM),
        (io::ErrorKind::InvalidInput, EINVAL),
        (io::ErrorKind::InvalidData, EINVAL),
        (io::ErrorKind::UnexpectedEof, EIO),
        (io::ErrorKind::Other, EIO),
    ] {
        assert_eq!(told(io::Error::new(kind, "of this kind")), (std(code), "of this kind".to_owned()));
        assert_eq!(told(io::Error::from(kind)).0, std(code));
    }
    assert_eq!(told(Custom("text")), (EIO, "custom: text".to_owned()));
    assert_eq!(told(Custom("a\0b")), (EIO, "custom: a\u{fffd}b".to_owned()));
    assert_eq!(told("x".parse::<i32>().unwrap_err()).0, EIO);
    assert_eq!(told(StreamFailure::new(77, "as it is")), (77, "as it is".to_owned()));
    // One behind another is not looked for: it is the outer one's text that is reported.
    assert_eq!(told(io::Error::other(Custom("inside"))), (EIO, "custom: inside".to_owned()));
    assert_eq!(StreamFailure::from(Custom("text")), StreamFailure::new(EIO, "custom: text"));
}

/// C20, S1: an array on another type of device never leaves: it is released, and the stream has failed.
#[test]
fn an_array_of_another_device_type_never_leaves() {
    let other_types =
        [ArrowDeviceType::CPU, ArrowDeviceType::CUDA_HOST, ArrowDeviceType(77), ArrowDeviceType(0)];
    for other in other_types {
        let (dropped, ended) = (Counter::new(), Counter::new());
        let array = |device_type| Ok::<_, StreamFailure>(on_device(1, Device::new(device_type, 0), &dropped));
        let items = [ArrowDeviceType::CUDA, other, ArrowDeviceType::CUDA].map(array);
        let items = Items(items.into(), ended.clone());
        // SAFETY: the arrays are of this schema.
        let stream = unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CUDA, schema(), items) };
        let mut consumer = Consumer::new(stream);
        assert_eq!(consumer.next_length(), Ok(1));
        assert_eq!(dropped.get(), 1);
        for _ in 0..2 {
            assert_eq!(consumer.next_length(), Err(EINVAL));
            let text = format!("an array on device type {other} in a stream of device type CUDA");
            assert_eq!(consumer.last_error(), Some(text));
            assert_eq!((dropped.get(), ended.get()), (3, 1));
        }
        consumer.release();
        assert_eq!(dropped.get(), 3);
    }
}

/// S3: a released array would be taken for the end, and is an error.
#[test]
fn a_released_array_is_not_the_end() {
    fn test<S: Produced>() {
        let (dropped, ended) = (Counter::new(), Counter::new());
        let mut emptied: Owned<S::Array> = S::array(1, &dropped).into();
        // SAFETY: lent to C, which moves it out.
        drop(unsafe { Owned::take(emptied.as_mut_ptr()) }.unwrap());
        let items = Items(vec![Ok::<_, StreamFailure>(emptied.into())], ended.clone());
        let mut consumer = Consumer::new(S::from_items(schema(), items));
        for _ in 0..2 {
            assert_eq!(consumer.next_length(), Err(EINVAL));
            assert_eq!(
                consumer.last_error().as_deref(),
                Some("the producer of the stream gave a released array")
            );
            assert_eq!(ended.get(), 1);
        }
        consumer.release();
    }
    for_both_streams!(test);
}

/// S4: a schema that cannot be copied is an error each time, with its own text; the arrays can still be had.
#[test]
fn a_schema_that_cannot_be_copied() {
    fn test<S: Produced>() {
        let mut broken = common::schema(c"+s").child(common::schema(c"i")).own();
        drop(broken.take_child(0).unwrap());
        let items = [Ok::<_, StreamFailure>(S::array(1, &Counter::new()))];
        let mut consumer = Consumer::new(S::from_items(broken, items));
        for _ in 0..2 {
            assert_eq!(consumer.schema().unwrap_err(), EINVAL);
            assert_eq!(consumer.last_error().as_deref(), Some("the struct is released or was moved away"));
        }
        assert_eq!(consumer.next_length(), Ok(1));
        assert_eq!(consumer.last_error(), None);
        assert_eq!(consumer.next_length(), Ok(-1));
        consumer.release();
    }
    for_both_streams!(test);
}

/// B10: errors that are none are never asked for a text.
#[test]
fn items_that_cannot_fail() {
    #[derive(Debug)]
    enum Never {}

    impl From<Never> for StreamFailure {
        fn from(never: Never) -> Self {
            match never {}
        }
    }

    let dropped = Counter::new();
    let array: OwnedArray = ArrowArrayStream::array(1, &dropped);
    // SAFETY: the arrays are of this schema.
    let stream = unsafe { OwnedArrayStream::from_iter(schema(), [Ok::<_, Never>(array)]) };
    assert_eq!(StreamReader::new(stream).filter(Result::is_ok).count(), 1);
    assert_eq!(dropped.get(), 1);
}
