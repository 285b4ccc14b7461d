//! What a stream says when it fails, each rule for host and device streams alike.

mod common;

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::error::Error;

use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream, ArrowSchema};
use arrow_device_abi::{StreamError, StreamReader, errno};

use common::{
    Bare, Counter, Fail, Log, Script, StreamStub, array, for_both_streams, length, own, reader, stream,
};

fn failing<S: StreamStub>(fail: Fail<S::Array>) -> (StreamReader<S>, Log) {
    let (script, log) = Script::new([Err(fail)]);
    (reader(script), log)
}

/// S4, C6: an error is reported once, with code and text, and is the end; the producer is not asked again.
#[test]
fn an_error_is_reported_once_and_is_the_end() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let (script, log) = Script::<S>::new([
            Ok(S::item(array(1).counted(&released))),
            Err(Fail::new(errno::EIO, Some(c"disk gone"))),
            Ok(S::item(array(2).counted(&released))),
        ]);
        let mut reader = reader(script);
        let seen: Vec<_> =
            reader.by_ref().take(9).map(|batch| batch.map(|batch| length::<S>(&batch))).collect();
        let error =
            StreamError::Failed { callback: "get_next", code: errno::EIO, message: Some("disk gone".into()) };
        assert_eq!(error.to_string(), format!("get_next failed with code {}: disk gone", errno::EIO));
        assert_eq!((error.code(), error.message()), (Some(errno::EIO), Some("disk gone")));
        assert_eq!(seen, [Ok(1), Err(error)]);
        assert_eq!(log.take(), ["get_next", "get_next", "get_last_error"]);

        assert!(reader.next_array().unwrap().is_none());
        assert!(reader.next().is_none());
        assert!(log.take().is_empty());
        assert_eq!(released.get(), 1);
        drop(reader);
        assert_eq!(released.get(), 2, "what was not handed out stays the producer's (S5)");
        assert_eq!(log.take(), ["release"]);
    }
    for_both_streams!(test);
}

/// C6, S4: a null text is no text.
#[test]
fn an_error_may_have_a_null_message() {
    fn test<S: StreamStub>() {
        let (mut reader, log) = failing::<S>(Fail::new(5, None));
        let error = reader.next_array().unwrap_err();
        assert_eq!(error, StreamError::Failed { callback: "get_next", code: 5, message: None });
        assert_eq!(error.to_string(), "get_next failed with code 5");
        assert_eq!((error.code(), error.message()), (Some(5), None));
        assert_eq!(log.take(), ["get_next", "get_last_error"]);
    }
    for_both_streams!(test);
}

/// C6, S4: a producer without `get_last_error` has no text.
#[test]
fn an_error_may_have_no_message_callback() {
    fn test<S: StreamStub>() {
        let (mut script, log) = Script::<S>::new([Err(Fail::new(5, Some(c"unreachable")))]);
        script.schemas.push_back(Err(Fail::new(6, Some(c"unreachable"))));
        let mut raw = stream(script);
        raw.remove("get_last_error");
        let mut reader = StreamReader::new(own(raw));
        let failed = |callback, code| StreamError::Failed { callback, code, message: None };
        assert_eq!(reader.schema().unwrap_err(), failed("get_schema", 6));
        assert_eq!(reader.next_array().unwrap_err(), failed("get_next", 5));
        assert_eq!(log.take(), ["get_schema", "get_next"]);
    }
    for_both_streams!(test);
}

/// C6, S4: a text that is not UTF-8 is kept as far as it is.
#[test]
fn an_error_text_need_not_be_utf8() {
    fn test<S: StreamStub>() {
        let texts: [(&CStr, &str); 3] =
            [(c"", ""), (c"caf\xC3\xA9", "café"), (c"bad \xFF\xFE end", "bad \u{FFFD}\u{FFFD} end")];
        for (text, expected) in texts {
            let (mut reader, _) = failing::<S>(Fail::new(1, Some(text)));
            assert_eq!(reader.next_array().unwrap_err().message(), Some(expected));
        }
    }
    for_both_streams!(test);
}

/// B10, C6: a code is kept as it is, known or not.
#[test]
fn codes_are_kept() {
    fn test<S: StreamStub>() {
        for code in [errno::EINVAL, errno::ENOMEM, -1, 9999, i32::MIN, i32::MAX] {
            let (mut reader, _) = failing::<S>(Fail::new(code, None));
            let error = reader.next_array().unwrap_err();
            assert_eq!(error.code(), Some(code));
            assert_eq!(error.to_string(), format!("get_next failed with code {code}"));
        }
    }
    for_both_streams!(test);
}

/// S4: the text is copied before the next callback, which takes it back.
#[test]
fn the_text_is_copied_at_once() {
    fn test<S: StreamStub>() {
        let (mut script, _log) = Script::<S>::new([]);
        script.schemas.push_back(Err(Fail::new(1, Some(c"first"))));
        script.schemas.push_back(Err(Fail::new(2, Some(c"second"))));
        let mut reader = reader(script);
        let first = reader.schema().unwrap_err();
        let second = reader.schema().unwrap_err();
        drop(reader);
        assert_eq!((first.message(), second.message()), (Some("first"), Some("second")));
    }
    for_both_streams!(test);
}

/// C5, S4: what a failed call left in the out-struct is not read and not released.
#[test]
fn garbage_after_an_error_is_not_released() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let garbage = Some(Box::new(Bare::bare(&released, false)));
        let (mut script, _log) = Script::<S>::new([Err(Fail { code: 3, text: None, garbage })]);
        let garbage = Some(Box::new(Bare::bare(&released, false)));
        script.schemas.push_back(Err(Fail { code: 4, text: None, garbage }));
        let mut reader = reader(script);
        assert_eq!(reader.schema().unwrap_err().code(), Some(4));
        assert_eq!(reader.next_array().unwrap_err().code(), Some(3));
        drop(reader);
        assert_eq!(released.get(), 0);
    }
    for_both_streams!(test);
}

/// C6: a failing `get_schema` says what the producer says, and the arrays can still be read.
#[test]
fn a_schema_error_does_not_end_the_stream() {
    fn test<S: StreamStub>() {
        let (mut script, _log) = Script::<S>::new([Ok(S::item(array(8)))]);
        script.schemas.push_back(Err(Fail::new(errno::EINVAL, Some(c"no such table"))));
        let mut reader = reader(script);
        let error = reader.schema().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("get_schema failed with code {}: no such table", errno::EINVAL)
        );
        assert_eq!(length::<S>(&reader.next_array().unwrap().unwrap()), 8);
        assert!(reader.schema().is_ok());
    }
    for_both_streams!(test);
}

/// B1, S8: there is no stream without a schema, so a released one is an error, and not asked about.
#[test]
fn a_released_schema_is_an_error() {
    fn test<S: StreamStub>() {
        let (mut script, log) = Script::<S>::new([]);
        script.schemas.push_back(Ok(ArrowSchema::released()));
        let mut reader = reader(script);
        let error = reader.schema().unwrap_err();
        assert_eq!(error, StreamError::ReleasedSchema);
        assert_eq!(error.to_string(), "get_schema succeeded with a released schema");
        assert_eq!((error.code(), error.message()), (None, None));
        assert_eq!(log.take(), ["get_schema"]);
    }
    for_both_streams!(test);
}

/// C6: a missing callback is an error, not a call; without `get_next` it is the end as well.
#[test]
fn a_missing_callback_is_an_error() {
    fn test<S: StreamStub>() {
        let (script, log) = Script::<S>::new([]);
        let mut raw = stream(script);
        raw.remove("get_schema");
        raw.remove("get_next");
        let mut reader = StreamReader::new(own(raw));
        let error = reader.schema().unwrap_err();
        assert_eq!(error, StreamError::MissingCallback { callback: "get_schema" });
        let error = reader.next_array().unwrap_err();
        assert_eq!(error, StreamError::MissingCallback { callback: "get_next" });
        assert_eq!(error.to_string(), "the stream has no get_next");
        assert!(reader.next_array().unwrap().is_none());
        drop(reader);
        assert_eq!(log.take(), ["release"]);
    }
    for_both_streams!(test);
}

/// C6: a stream's errors can be boxed and compared.
#[test]
fn errors_are_ordinary_errors() {
    let (mut reader, _) = failing::<ArrowArrayStream>(Fail::new(2, Some(c"gone")));
    let error = reader.next().unwrap().unwrap_err();
    let boxed: Box<dyn Error + Send + Sync> = Box::new(error.clone());
    assert_eq!(boxed.downcast_ref::<StreamError>(), Some(&error));
}

/// S2: a stream that releases itself when it fails has no text any more, and nothing is called on it.
#[test]
fn a_stream_that_released_itself_is_asked_nothing() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, _: *mut ArrowArray) -> c_int {
        // SAFETY: the reader passes its stream.
        unsafe { (*stream).release = None };
        errno::EIO
    }
    unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
        CALLS.fetch_add(1, Ordering::Relaxed);
        c"too late".as_ptr()
    }
    unsafe extern "C" fn release(_: *mut ArrowArrayStream) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    let raw = ArrowArrayStream {
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        ..ArrowArrayStream::released()
    };
    let mut reader = StreamReader::new(own(raw));
    let error = StreamError::Failed { callback: "get_next", code: errno::EIO, message: None };
    assert_eq!(reader.next_array().unwrap_err(), error);
    assert_eq!(reader.schema().unwrap_err(), StreamError::Released);
    drop(reader);
    assert_eq!(CALLS.load(Ordering::Relaxed), 0);
}
