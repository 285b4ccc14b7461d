//! Draining streams, each rule for host and device streams alike. Their errors: `stream_errors.rs`.

mod common;

use std::thread;

use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use arrow_device_abi::{
    ArrayStreamReader, Device, DeviceArrayStreamReader, Owned, StreamError, StreamReader, TakeError,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

use common::{
    Bare, Counter, Fail, Log, Script, StreamStub, array, batches, for_both_streams, length, on_device, own,
    reader, schema, stream,
};

// S7, C33: a reader goes to another thread, and is not shared.
assert_impl_all!(ArrayStreamReader: Send);
assert_impl_all!(DeviceArrayStreamReader: Send);
assert_not_impl_any!(ArrayStreamReader: Sync, Clone);
assert_not_impl_any!(DeviceArrayStreamReader: Sync, Clone);

/// S3, C5: success with a released array is the end, whatever else stands in it; `get_last_error` is not asked.
#[test]
fn a_released_array_is_the_end() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let (mut reader, log) = batches::<S>(&[3, 0, 5], &released);
        let lengths: Vec<_> = reader.by_ref().take(9).map(|batch| length::<S>(&batch.unwrap())).collect();
        assert_eq!(lengths, [3, 0, 5], "an empty batch is no end");
        assert_eq!(log.take(), ["get_next"; 4]);
        assert_eq!(released.get(), 3);
        drop(reader);
        assert_eq!(log.take(), ["release"]);
    }
    for_both_streams!(test);
}

/// S3, C5: after the end the producer is not asked again.
#[test]
fn the_end_is_fused() {
    fn test<S: StreamStub>() {
        let (mut reader, log) = batches::<S>(&[], &Counter::new());
        assert!(reader.next_array().unwrap().is_none());
        log.take();
        assert!(reader.next_array().unwrap().is_none());
        assert!(reader.next().is_none());
        assert!(log.take().is_empty());
    }
    for_both_streams!(test);
}

/// C5: every out-struct is zeroed before the call, also after a call that left garbage.
#[test]
fn out_structs_are_zeroed() {
    fn test<S: StreamStub>() {
        let (mut script, log) = Script::<S>::new([Ok(S::item(array(1))), Ok(S::item(array(2)))]);
        let released = Counter::new();
        let garbage = Some(Box::new(Bare::bare(&released, true)));
        script.schemas.push_back(Err(Fail { code: 1, text: None, garbage }));
        let mut reader = reader(script);
        assert!(reader.schema().is_err());
        assert!(reader.schema().is_ok());
        assert_eq!(reader.by_ref().take(9).count(), 2);
        let calls = ["get_schema", "get_last_error", "get_schema", "get_next", "get_next", "get_next"];
        assert_eq!(log.take(), calls, "the stub logs an out-struct that is not zeroed");
    }
    for_both_streams!(test);
}

/// S8, S6: the schema can be asked for at any time, before the arrays, after the end and after an error; each is a
/// new one and lives on.
#[test]
fn the_schema_can_be_asked_for_at_any_time() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let (mut script, log) = Script::<S>::new([Ok(S::item(array(1))), Err(Fail::new(1, None))]);
        for _ in 0..3 {
            script.schemas.push_back(Ok(schema(c"+s").child(schema(c"i")).counted(&released).build()));
        }
        let mut reader = reader(script);
        let mut schemas = vec![reader.schema().unwrap()];
        assert!(reader.next_array().is_ok());
        schemas.push(reader.schema().unwrap());
        assert!(reader.next_array().is_err());
        schemas.push(reader.schema().unwrap());
        drop(reader);
        assert_eq!(
            log.take(),
            ["get_schema", "get_next", "get_schema", "get_next", "get_last_error", "get_schema", "release"]
        );
        assert_eq!(released.get(), 0);
        for schema in &schemas {
            let view = schema.view().unwrap();
            assert_eq!((view.format(), view.n_children()), (Ok("+s"), 1));
        }
        drop(schemas);
        assert_eq!(released.get(), 3);
    }
    for_both_streams!(test);
}

/// S2: a released stream is refused, and of one that C moved out no callback is called.
#[test]
fn nothing_is_called_on_a_released_stream() {
    fn test<S: StreamStub>() {
        // SAFETY: a released struct, by value.
        let refused = unsafe { Owned::from_raw(S::released()) };
        assert_eq!(refused.unwrap_err(), TakeError::Released);

        let (script, log) = Script::<S>::new([Ok(S::item(array(1)))]);
        let mut lent = own(stream(script));
        // SAFETY: the pointer is valid while `lent` is borrowed.
        drop(unsafe { Owned::take(lent.as_mut_ptr()) }.unwrap());
        assert_eq!(log.take(), ["release"]);
        let mut reader = StreamReader::from(lent);
        assert_eq!(reader.schema().unwrap_err(), StreamError::Released);
        let error = reader.next_array().unwrap_err();
        assert_eq!(error, StreamError::Released);
        assert_eq!(error.to_string(), "the stream is released or was moved away");
        assert!(reader.next().is_none());
        drop(reader);
        assert!(log.take().is_empty());
    }
    for_both_streams!(test);
}

/// S6: schema and arrays live on after their stream.
#[test]
fn arrays_outlive_their_stream() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let (reader, log) = batches::<S>(&[4, 5], &released);
        let arrays: Vec<_> = reader.take(9).map(Result::unwrap).collect();
        assert_eq!(log.take().last(), Some(&"release"));
        assert_eq!(released.get(), 0);
        assert_eq!(arrays.iter().map(length::<S>).collect::<Vec<_>>(), [4, 5]);
        drop(arrays);
        assert_eq!(released.get(), 2);
    }
    for_both_streams!(test);
}

/// S2, S5: a reader that is dropped early releases the stream once, and nothing of what is left in it.
#[test]
fn an_early_drop_releases_the_stream() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let (mut reader, log) = batches::<S>(&[1, 2, 3], &released);
        let first = reader.next_array().unwrap().unwrap();
        drop(reader);
        assert_eq!(log.take(), ["get_next", "release"]);
        assert_eq!(released.get(), 2, "the stub's own release frees what it did not give out");
        drop(first);
        assert_eq!(released.get(), 3);

        let (unread, log) = batches::<S>(&[1], &released);
        drop(unread);
        assert_eq!(log.take(), ["release"]);
    }
    for_both_streams!(test);
}

/// S2: a stream can be had back, as far as it was read, and is released once.
#[test]
fn a_half_read_stream_can_be_had_back() {
    fn test<S: StreamStub>() {
        let released = Counter::new();
        let (mut reader, log) = batches::<S>(&[1, 2, 3], &released);
        drop(reader.next_array().unwrap().unwrap());
        let mut rest = StreamReader::new(reader.into_inner());
        assert_eq!(length::<S>(&rest.next_array().unwrap().unwrap()), 2);
        drop(rest);
        assert_eq!(log.take(), ["get_next", "get_next", "release"]);
        assert_eq!(released.get(), 3);
    }
    for_both_streams!(test);
}

/// S3, C5: an array is read into a place that holds another: that one is released first, and the place is zeroed.
#[test]
fn arrays_are_read_into_a_place() {
    fn test<S: StreamStub>() {
        let [released, before] = [Counter::new(), Counter::new()];
        let (mut reader, log) = batches::<S>(&[4, 5], &released);
        let mut place = own(S::item(array(1).counted(&before)));
        assert_eq!(reader.read_into(&mut place), Ok(true));
        assert_eq!((length::<S>(&place), before.get(), released.get()), (4, 1, 0));
        assert_eq!(reader.read_into(&mut place), Ok(true));
        assert_eq!((length::<S>(&place), released.get()), (5, 1));
        assert_eq!(reader.read_into(&mut place), Ok(false));
        assert!(place.is_released());
        assert_eq!((released.get(), log.take()), (2, vec!["get_next"; 3]));

        let mut place = own(S::item(array(1).counted(&before)));
        assert_eq!(reader.read_into(&mut place), Ok(false));
        assert!(place.is_released());
        assert_eq!((before.get(), log.take().len()), (2, 0), "released, and the producer not asked again");
    }
    for_both_streams!(test);
}

/// C5, S1, S4: after an error the place holds nothing, whatever the producer left there.
#[test]
fn a_place_holds_nothing_after_an_error() {
    fn test<S: StreamStub>() {
        let [garbage, before] = [Counter::new(), Counter::new()];
        let fail = Fail { code: 3, text: None, garbage: Some(Box::new(Bare::bare(&garbage, false))) };
        let (script, _log) = Script::<S>::new([Err(fail)]);
        let mut place = own(S::item(array(1).counted(&before)));
        assert_eq!(reader(script).read_into(&mut place).unwrap_err().code(), Some(3));
        assert!(place.is_released());
        drop(place);
        assert_eq!((garbage.get(), before.get()), (0, 1));
    }
    for_both_streams!(test);

    let released = Counter::new();
    let (mut reader, _) = on_devices(&[(ArrowDeviceType::CPU, 0)], &released);
    let mut place = Owned::released();
    assert!(matches!(reader.read_into(&mut place), Err(StreamError::DeviceType { .. })));
    assert!(place.is_released());
    assert_eq!(released.get(), 1);
}

/// S7, C33: a stream is read on one thread, then on another, and released there.
#[test]
fn a_stream_moves_to_another_thread() {
    fn test<S: StreamStub>()
    where
        StreamReader<S>: Send,
        Owned<S::Array>: Send,
    {
        let released = Counter::new();
        let (mut reader, log) = batches::<S>(&[1, 2, 3], &released);
        let first = reader.next_array().unwrap().unwrap();
        let rest: Vec<_> =
            thread::spawn(move || reader.take(9).map(Result::unwrap).collect()).join().unwrap();
        assert_eq!(log.take(), ["get_next", "get_next", "get_next", "get_next", "release"]);
        assert_eq!((length::<S>(&first), rest.len(), released.get()), (1, 2, 0));
        drop((first, rest));
        assert_eq!(released.get(), 3);
    }
    for_both_streams!(test);
}

type Batch = (ArrowDeviceType, i64);

/// A stream of CUDA's with batches on these devices.
fn on_devices(devices: &[Batch], released: &Counter) -> (DeviceArrayStreamReader, Log) {
    let (script, log) = Script::new(devices.iter().map(|&(device_type, id)| {
        Ok(on_device(array(1).counted(released), Device::new(device_type, id), None))
    }));
    (reader(script), log)
}

/// S1, C20: an array on another type of device than its stream is an error, is released once, and is the end.
#[test]
fn a_device_type_that_is_not_the_streams() {
    for other in [ArrowDeviceType::CPU, ArrowDeviceType::CUDA_HOST, ArrowDeviceType(99)] {
        let released = Counter::new();
        let cuda = (ArrowDeviceType::CUDA, 0);
        let (mut reader, log) = on_devices(&[cuda, (other, 0), cuda], &released);
        drop(reader.next_array().unwrap().unwrap());
        assert_eq!(released.get(), 1);

        let error = reader.next_array().unwrap_err();
        assert_eq!(error, StreamError::DeviceType { stream: ArrowDeviceType::CUDA, array: other });
        assert_eq!(
            error.to_string(),
            format!("an array on device type {other} came out of a stream of device type CUDA")
        );
        assert_eq!((error.code(), error.message()), (None, None));
        assert_eq!(released.get(), 2);
        assert!(reader.next_array().unwrap().is_none());
        assert_eq!(log.take(), ["get_next"; 2], "no failure of the producer's (S4)");
    }
}

/// X7, C20: the arrays of a stream may be on different devices of its type.
#[test]
fn device_ids_may_differ_within_a_stream() {
    let cuda = |id| (ArrowDeviceType::CUDA, id);
    let (reader, _) = on_devices(&[cuda(0), cuda(1), cuda(-1)], &Counter::new());
    assert_eq!(reader.device_type(), ArrowDeviceType::CUDA);
    let ids: Vec<_> = reader.take(9).map(|batch| batch.unwrap().device().device_id).collect();
    assert_eq!(ids, [0, 1, -1]);
}

/// S1: a device type without a name is as good as any other.
#[test]
fn a_stream_of_an_unknown_device_type() {
    let device = Device::new(ArrowDeviceType(99), 7);
    let (script, _log) = Script::new([Ok(on_device(array(1), device, None))]);
    let mut raw: ArrowDeviceArrayStream = stream(script);
    raw.device_type = ArrowDeviceType(99);
    let mut reader = StreamReader::new(own(raw));
    assert_eq!(reader.next_array().unwrap().unwrap().device(), device);
    assert!(reader.next_array().unwrap().is_none());
}

/// C7, S3: zero rows, zero columns: an array all the same.
#[test]
fn an_array_of_nothing_is_no_end() {
    let (reader, _) = batches::<ArrowArrayStream>(&[0], &Counter::new());
    let arrays: Vec<Owned<ArrowArray>> = reader.take(9).map(Result::unwrap).collect();
    assert_eq!(arrays.len(), 1);
    assert_eq!(arrays[0].view().unwrap().n_children(), 0);
}
