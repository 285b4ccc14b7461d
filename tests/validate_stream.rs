//! Streams that are checked: what comes out is valid, and what is not ends them.

mod common;

use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream};
use arrow_device_abi::{
    ArrayStreamReader, CheckedReader, CheckedStreamError, Fault, Limits, StreamError, StreamReader,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

use common::{Counter, Fail, Script, StreamStub, Stub, array, for_both_streams, length, own, schema, stream};

const LIMITS: Limits = Limits::DEFAULT;

// S7, C33: a checked reader goes where its stream may go.
assert_impl_all!(CheckedReader<ArrowArrayStream>: Send);
assert_not_impl_any!(CheckedReader<ArrowArrayStream>: Sync, Clone);

fn ints(length: i64) -> Stub<ArrowArray> {
    array(length).no_buffer().buffer(&[1_i32, 2, 3])
}

fn reader<S: StreamStub>(script: Script<S>) -> StreamReader<S> {
    StreamReader::new(own(stream(script)))
}

/// S3, S4: a valid array comes out as it was; an invalid one is released and the end, as an error of the producer's is.
/// Who wants to read on can.
#[test]
fn an_invalid_array_is_the_end() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let wrong = array(4).no_buffer().no_buffer().counted(&released);
        let (script, log) =
            Script::<S>::new([Ok(S::item(ints(3))), Ok(S::item(wrong)), Ok(S::item(ints(2)))]);
        let mut reader = reader(script).checked(LIMITS).unwrap();
        assert_eq!(reader.schema().view().unwrap().format(), Ok("i"));
        assert_eq!(log.take(), ["get_schema"]);
        assert_eq!(length::<S>(&reader.next_array().unwrap().unwrap()), 3);
        assert_eq!(released.get(), 0);
        let error = reader.next_array().unwrap_err();
        assert_eq!(released.get(), 1);
        assert_eq!(
            error.to_string(),
            "out of the stream came something invalid: root: buffer 1 is null, wanted 16 bytes"
        );
        let CheckedStreamError::Invalid(invalid) = error else { panic!("{error}") };
        assert_eq!(invalid.fault(), &Fault::NullBuffer { buffer: 1, wanted: 16 });
        log.take();
        assert!(reader.next().is_none() && reader.next_array().unwrap().is_none());
        assert!(log.take().is_empty(), "the producer is not asked again");
        let mut unchecked = reader.into_inner();
        assert_eq!(length::<S>(&unchecked.next_array().unwrap().unwrap()), 2);
        assert!(unchecked.next_array().unwrap().is_none());
    }
    for_both_streams!(test);
}

/// S4, C6: the producer's own errors come through, and end it too.
#[test]
fn errors_of_the_producer() {
    fn test<S: StreamStub>() {
        let (script, log) = Script::<S>::new([Err(Fail::new(5, Some(c"gone"))), Ok(S::item(ints(1)))]);
        let mut reader = reader(script).checked(LIMITS).unwrap();
        let failed = StreamError::Failed { callback: "get_next", code: 5, message: Some("gone".into()) };
        assert_eq!(reader.next().unwrap().unwrap_err(), CheckedStreamError::Stream(failed.clone()));
        log.take();
        assert!(reader.next().is_none());
        assert!(log.take().is_empty());
        assert_eq!(CheckedStreamError::from(failed.clone()).to_string(), failed.to_string());
    }
    for_both_streams!(test);
}

/// D15, S8: without a valid schema nothing is read, and the stream is released.
#[test]
fn a_stream_without_a_valid_schema() {
    fn test<S: StreamStub>() {
        let (mut script, log) = Script::<S>::new([]);
        script.schemas.extend([Ok(schema(c"+l").build())]);
        let error = reader(script).checked(LIMITS).unwrap_err();
        assert!(matches!(error, CheckedStreamError::Invalid(_)));
        assert_eq!(log.take(), ["get_schema", "release"]);

        let (mut script, _) = Script::<S>::new([]);
        script.schemas.extend([Err(Fail::new(7, None))]);
        let error = reader(script).checked(LIMITS).unwrap_err();
        assert!(matches!(error, CheckedStreamError::Stream(StreamError::Failed { code: 7, .. })));

        let (mut script, _) = Script::<S>::new([Ok(S::item(ints(1)))]);
        script.schemas.extend([Ok(schema(c"+s").child(schema(c"i")).build())]);
        let error = reader(script).checked(LIMITS.with_depth(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "out of the stream came something invalid: root[0]: more than 1 nodes deep"
        );
    }
    for_both_streams!(test);
}

/// B8: the contents of host arrays are checked if that is asked for.
#[test]
fn contents() {
    let batches = || {
        let wrong = array(2).nulls(1).buffer(&[0_u8]).buffer(&[1_i32, 2]);
        reader(Script::<ArrowArrayStream>::new([Ok(ints(2).build()), Ok(wrong.build())]).0)
    };
    let structure: Vec<_> = batches().checked(LIMITS).unwrap().map(|batch| batch.is_ok()).collect();
    assert_eq!(structure, [true, true]);
    let all: ArrayStreamReader = batches();
    let all: Vec<_> = all.checked_in_full(LIMITS).unwrap().collect();
    assert!(all[0].is_ok());
    let error = all[1].as_ref().unwrap_err().to_string();
    assert_eq!(error, "out of the stream came something invalid: root: null_count is 1, wanted 2");
}
