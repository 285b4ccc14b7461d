//! The rules against producers and consumers written in C: `tests/support/c/`. They free what they release, so that
//! AddressSanitizer and valgrind see a double release, a use after it, and a leak.

mod common;
#[path = "common/peer.rs"]
mod peer;

use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use core::ptr;
use std::thread;

use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use arrow_device_abi::{
    ArrayView, Device, EventWaiter, NoWait, Owned, OwnedArray, Readiness, Release, StreamError, StreamReader,
    SyncEvent, TakeError,
};

use common::{Fail, Script, StreamStub, array, nowhere, own, stream};
use peer::*;

const ROOT: usize = 0;
const INTS: usize = 1;
/// More than any stream here gives: a reader that does not see the end fails its test, and does not hang.
const MANY: usize = 9;

/// Waits for the events of the C peer, which have all fired.
struct PeerWaiter;

// SAFETY: the C peer writes its buffers before it hands an array out; other events are refused.
unsafe impl EventWaiter for PeerWaiter {
    type Error = &'static str;

    fn wait(&self, _: Device, event: SyncEvent<'_>) -> Result<Readiness, Self::Error> {
        let SyncEvent::Cuda(event) = event else {
            return Err("no event of the peer's");
        };
        // SAFETY: for CUDA the event points to a handle (D5, C1).
        let handle = unsafe { *event.as_ptr() };
        assert_eq!(handle, nowhere(), "the handle of the peer's events");
        Ok(Readiness::Complete)
    }
}

/// B4, B6, C2: a tree made by C, read, and released by us: each node once.
#[test]
fn an_array_of_c_is_read_and_released() {
    let counts = Counts::default();
    let owned = c_array(&counts);
    let view = owned.view().unwrap();
    assert_eq!((view.length(), view.null_count(), view.n_children()), (4, Some(0), 2));
    let ints = view.child(0).unwrap();
    // SAFETY: four values of `i`.
    assert_eq!(unsafe { ints.buffer_as::<i32>(1, 4) }.unwrap(), [1, 99, 3, 4]);
    let kinds = view.child(1).unwrap();
    assert_eq!(kinds.null_count(), None);
    let dictionary = kinds.dictionary().unwrap().unwrap();
    // SAFETY: two bytes of text.
    assert_eq!(unsafe { dictionary.buffer_as::<u8>(2, 2) }.unwrap(), b"ab");
    drop(owned);
    assert_eq!(counts.get().released, [1; 4]);
}

/// B9, C29, C30: a schema made by C, its metadata at an odd address.
#[test]
fn a_schema_of_c_is_read_and_released() {
    let counts = Counts::default();
    let owned = c_schema(&counts);
    let view = owned.view().unwrap();
    assert_eq!((view.format(), view.name()), (Ok("+s"), Ok(Some(""))));
    let pairs: Vec<_> = view.metadata().unwrap().iter().collect();
    assert_eq!(pairs, [(&b"key"[..], &b"\xFF\xFE"[..])]);
    let kinds = view.child(1).unwrap();
    assert!(kinds.is_dictionary_ordered() && kinds.is_nullable() && !kinds.is_map_keys_sorted());
    let dictionary = kinds.dictionary().unwrap().unwrap();
    assert_eq!((dictionary.format(), dictionary.name()), (Ok("u"), Ok(None)));
    drop(owned);
    assert_eq!(counts.get().released, [1; 4]);
}

/// B5, C2: children and a dictionary outlive the C tree that they came from.
#[test]
fn children_of_c_are_moved_out() {
    let counts = Counts::default();
    let mut root = c_array(&counts);
    let ints = root.take_child(0).unwrap();
    let dictionary = root.take_child(1).unwrap().take_dictionary().unwrap().unwrap();
    drop(root);
    // SAFETY: four values of `i`.
    assert_eq!(unsafe { ints.view().unwrap().buffer_as::<i32>(1, 4) }.unwrap(), [1, 99, 3, 4]);
    assert_eq!(dictionary.view().unwrap().length(), 2);
    drop((ints, dictionary));
    assert_eq!(counts.get().released, [1; 4]);

    let counts = Counts::default();
    let mut root = c_schema(&counts);
    let kinds = root.take_child(1).unwrap();
    drop(root);
    assert_eq!(kinds.view().unwrap().dictionary().unwrap().unwrap().format(), Ok("u"));
    drop(kinds);
    assert_eq!(counts.get().released, [1; 4]);
}

/// B4: a release may itself move a child out, to live on.
#[test]
fn a_release_may_keep_a_child() {
    let counts = Counts::default();
    let mut kept = ArrowArray::released();
    // SAFETY: valid for writes; the counts and `kept` outlive the struct.
    drop(made(|out| unsafe { peer_make_hoarder(out, &raw mut kept, &raw const counts) }));
    assert_eq!(counts.get().released, [1, 0, 1, 1]);
    // SAFETY: the release left a live struct there, and gives it away.
    let ints = unsafe { OwnedArray::take(&raw mut kept) }.unwrap();
    assert_eq!(ints.view().unwrap().null_count(), Some(1));
    drop(ints);
    assert_eq!(counts.get().released, [1; 4]);
}

/// C4: C callbacks that forget to clear themselves are called once, by drop, and by C's move not at all.
#[test]
fn forgetful_callbacks_are_called_once() {
    fn test<T: Release>(
        make: unsafe extern "C" fn(*mut T, *const Counts),
        moves: unsafe extern "C" fn(*mut T, *mut T),
    ) {
        let counts = Counts::default();
        // SAFETY: valid for writes; the counts outlive the struct.
        let mut lent = made(|out| unsafe { make(out, &raw const counts) });
        let mut target = MaybeUninit::uninit();
        // SAFETY: a live struct, and memory that is valid for writes.
        unsafe { moves(lent.as_mut_ptr(), target.as_mut_ptr()) };
        assert!(lent.is_released());
        drop(lent);
        assert_eq!(counts.get().released[ROOT], 0);
        // SAFETY: the move initialised it.
        drop(own(unsafe { target.assume_init() }));
        assert_eq!(counts.get().released[ROOT], 1);
    }
    test(peer_make_forgetful_schema, peer_move_schema);
    test(peer_make_forgetful_array, peer_move_array);
    test(peer_make_forgetful_stream, peer_move_stream);
    test(peer_make_forgetful_device_array, peer_move_device_array);
    test(peer_make_forgetful_device_stream, peer_move_device_stream);
}

/// B3, C4: a release that fills the struct with garbage leaves a released one.
#[test]
fn a_release_may_spoil_its_struct() {
    let counts = Counts::default();
    let mut raw = c_array(&counts).into_raw();
    // SAFETY: live, and nothing of it is used.
    unsafe { Release::release(&raw mut raw) };
    assert_eq!((raw.is_released(), raw.length), (true, 0xDDDD_DDDD_DDDD_DDDD_u64 as i64));
    // SAFETY: released, so nothing else is read.
    assert_eq!(unsafe { Owned::take(&raw mut raw) }.unwrap_err(), TakeError::Released);
    assert_eq!(counts.get().released, [1; 4]);
}

/// B6, D12: a struct exported to C is read and released there, in C's own memory.
#[test]
fn c_reads_and_releases_an_export() {
    let counts = Counts::default();
    let mut target = MaybeUninit::uninit();
    // SAFETY: valid for writes, and nothing is there.
    unsafe { c_array(&counts).export_to(target.as_mut_ptr()) };
    // SAFETY: exported, so live: C reads it, then releases it.
    let (sum, cleared) = unsafe { (peer_sum(target.as_ptr()), peer_release_array(target.as_mut_ptr())) };
    assert_eq!((sum, cleared, counts.get().released), (8, 1, [1; 4]));

    let counts = Counts::default();
    let mut lent = c_schema(&counts);
    // SAFETY: live; C releases what it was lent.
    assert_eq!(unsafe { peer_release_schema(lent.as_mut_ptr()) }, 1);
    drop(lent);
    assert_eq!(counts.get().released, [1; 4]);
}

/// D3, D5, D8, C1: a device array of C waits for its event through a pointer to the handle, and frees it on release.
#[test]
fn a_device_array_of_c() {
    let counts = Counts::default();
    let device = Device::new(ArrowDeviceType::CUDA_MANAGED, 5);
    let owned = c_device_array(device, &counts);
    assert_eq!(owned.device(), device);
    assert_eq!(
        owned.as_raw().reserved,
        [0xAAAA_AAAA_AAAA_AAAA_u64 as i64; 3],
        "garbage, as the peer left it (D10)"
    );
    let owned = owned.synchronize(&NoWait).unwrap_err().array;
    let mut ready = owned.synchronize(&PeerWaiter).unwrap();
    assert!(ready.is_host_ready());
    let ints = ready.take_child(0).unwrap();
    drop(ready);
    assert_eq!((counts.get().events_destroyed, counts.get().released), (1, [1, 0, 1, 1]));
    // SAFETY: four values of `i`, in host memory in truth.
    assert_eq!(unsafe { ints.view().unwrap().buffer_as::<i32>(1, 4) }.unwrap(), [1, 99, 3, 4]);
    drop(ints);
    assert_eq!(counts.get().released, [1; 4]);
}

/// D13: C moves a device array by its own rules, event and all.
#[test]
fn a_device_array_moved_by_c() {
    let counts = Counts::default();
    let mut lent = c_device_array(Device::new(ArrowDeviceType::CUDA, 0), &counts);
    let event = lent.as_raw().sync_event;
    let mut target = MaybeUninit::uninit();
    // SAFETY: a live struct, and memory that is valid for writes.
    unsafe { peer_move_device_array(lent.as_mut_ptr(), target.as_mut_ptr()) };
    assert!(lent.sync_event().unwrap().is_none(), "nothing but release is read of a moved struct (B1)");
    drop(lent);
    assert_eq!((counts.get().released[ROOT], counts.get().events_destroyed), (0, 0));
    // SAFETY: the move initialised it.
    let moved = own(unsafe { target.assume_init() });
    assert_eq!(moved.as_raw().sync_event, event);
    drop(moved);
    assert_eq!((counts.get().released, counts.get().events_destroyed), ([1; 4], 1));
}

fn ints(view: &ArrayView<'_>) -> i32 {
    // SAFETY: the ints of the C tree.
    unsafe { view.child(0).unwrap().buffer_as::<i32>(1, 4) }.unwrap().iter().sum()
}

/// S3, S6, C5: a C stream to its end; schema and arrays outlive it.
#[test]
fn a_stream_of_c() {
    let counts = Counts::default();
    let mut reader = StreamReader::new(c_stream(&PeerScript::batches(3), &counts));
    let schema = reader.schema().unwrap();
    let arrays: Vec<_> = reader.by_ref().take(MANY).map(Result::unwrap).collect();
    assert!(reader.next().is_none());
    drop(reader);
    assert_eq!((counts.get().streams_released, counts.get().get_schema, counts.get().get_next), (1, 1, 4));
    assert_eq!((counts.get().get_last_error, counts.get().faults, counts.get().released), (0, 0, [0; 4]));
    assert_eq!(schema.view().unwrap().n_children(), 2);
    assert!(arrays.iter().all(|array| ints(&array.view().unwrap()) == 107));
    drop((schema, arrays));
    assert_eq!(counts.get().released, [4; 4]);
}

/// S1, X7, C20: a C device stream; the ids differ, and a type that does is an error and released.
#[test]
fn a_device_stream_of_c() {
    let counts = Counts::default();
    let reader = StreamReader::new(c_device_stream(&PeerScript::batches(2), &counts));
    assert_eq!(reader.device_type(), ArrowDeviceType::CUDA_HOST);
    let ids: Vec<_> = reader
        .take(MANY)
        .map(|array| {
            let ready = array.unwrap().synchronize(&PeerWaiter).unwrap();
            assert_eq!(ints(&ready.view().unwrap()), 107);
            ready.device().device_id
        })
        .collect();
    assert_eq!(
        (ids, counts.get().faults, counts.get().released, counts.get().events_destroyed),
        (vec![1, 2], 0, [2; 4], 2)
    );

    let counts = Counts::default();
    let script = PeerScript { last_device_type: ArrowDeviceType::CPU, ..PeerScript::batches(2) };
    let mut reader = StreamReader::new(c_device_stream(&script, &counts));
    assert!(reader.next_array().is_ok());
    let error = reader.next_array().unwrap_err();
    assert!(matches!(error, StreamError::DeviceType { array: ArrowDeviceType::CPU, .. }), "{error}");
    drop(reader);
    assert_eq!((counts.get().get_last_error, counts.get().faults, counts.get().released), (0, 0, [2; 4]));
}

/// S4, C6: what a C stream says of its failure, or does not; the out-structs hold garbage then.
#[test]
fn a_failing_stream_of_c() {
    let texts: [(Option<&CStr>, i32, Option<&str>); 4] = [
        (Some(c"disk gone"), 0, Some("disk gone")),
        (Some(c"\xFF!"), 0, Some("\u{FFFD}!")),
        (None, 0, None),
        (Some(c"unreachable"), 1, None),
    ];
    for (text, has_no_message_callback, expected) in texts {
        for fails_in_get_schema in [0, 1] {
            let script = PeerScript {
                message: text.map_or(ptr::null(), CStr::as_ptr),
                code: -5,
                has_no_message_callback,
                fails_in_get_schema,
                ..PeerScript::batches(1)
            };
            let counts = Counts::default();
            let mut reader = StreamReader::new(c_device_stream(&script, &counts));
            let schema = reader.schema().map(drop);
            let arrays: Vec<_> = reader.by_ref().take(MANY).map(|array| array.map(drop)).collect();
            drop(reader);
            let failed = |callback| {
                Err(StreamError::Failed { callback, code: -5, message: expected.map(str::to_owned) })
            };
            if fails_in_get_schema == 1 {
                assert_eq!((schema, arrays), (failed("get_schema"), vec![Ok(())]));
            } else {
                assert_eq!((schema, arrays), (Ok(()), vec![Ok(()), failed("get_next")]));
            }
            assert_eq!((counts.get().faults, counts.get().streams_released), (0, 1));
            assert_eq!(counts.get().get_last_error, 1 - i64::from(has_no_message_callback));
        }
    }
}

/// S2, S5: a C stream dropped early, unread, and handed on half-read to a C consumer, which drains the rest.
#[test]
fn a_stream_of_c_goes_on_to_c() {
    let counts = Counts::default();
    drop(StreamReader::new(c_stream(&PeerScript::batches(3), &counts)));
    assert_eq!((counts.get().streams_released, counts.get().get_next), (1, 0));

    let counts = Counts::default();
    let mut reader = StreamReader::new(c_device_stream(&PeerScript::batches(3), &counts));
    drop(reader.next_array().unwrap());
    let mut rest = reader.into_inner();
    let (mut arrays, mut rows, mut text) = (0, 0, [0; 64]);
    // SAFETY: a live stream, lent to be drained and released.
    let code =
        unsafe { peer_drain_device_stream(rest.as_mut_ptr(), &raw mut arrays, &raw mut rows, &raw mut text) };
    assert!(rest.is_released());
    drop(rest);
    assert_eq!((code, arrays, rows, counts.get().streams_released), (0, 2, 8, 1));
}

/// C5, S4: a C consumer with garbage in its out-structs drains exported streams, to the end and to an error.
#[test]
fn c_drains_exported_streams() {
    fn test<S: StreamStub>(
        drain: unsafe extern "C" fn(*mut S, *mut i64, *mut i64, *mut [c_char; 64]) -> c_int,
    ) {
        for (fail, expected_text) in [(None, c""), (Some(7), c"torn")] {
            let (mut script, log) = Script::<S>::new([Ok(S::item(array(3))), Ok(S::item(array(4)))]);
            script.arrays.extend(fail.map(|code| Err(Fail::new(code, Some(c"torn")))));
            let mut target = MaybeUninit::uninit();
            // SAFETY: valid for writes, and nothing is there.
            unsafe { own(stream(script)).export_to(target.as_mut_ptr()) };
            let (mut arrays, mut rows, mut text) = (0, 0, [0; 64]);
            // SAFETY: a live stream, given away.
            let code = unsafe { drain(target.as_mut_ptr(), &raw mut arrays, &raw mut rows, &raw mut text) };
            // SAFETY: C ended the text.
            assert_eq!(unsafe { CStr::from_ptr(text.as_ptr()) }, expected_text);
            assert_eq!((code, arrays, rows), (fail.unwrap_or(0), 2, 7));
            assert_eq!(log.take().last(), Some(&"release"));
        }
    }
    test::<ArrowArrayStream>(peer_drain_stream);
    test::<ArrowDeviceArrayStream>(peer_drain_device_stream);
}

/// C33, S7: made by C on one thread, read on a second, released on a third that exits.
#[test]
fn c_structs_on_other_threads() {
    let counts = Counts::default();
    let mut reader = StreamReader::new(c_device_stream(&PeerScript::batches(2), &counts));
    let first = reader.next_array().unwrap().unwrap();
    let second = thread::spawn(move || reader.next_array().unwrap().unwrap()).join().unwrap();
    assert_eq!(counts.get().streams_released, 1);
    thread::spawn(move || drop((first, second))).join().unwrap();
    assert_eq!((counts.get().released, counts.get().events_destroyed), ([2; 4], 2));
    assert_eq!(counts.get().released[INTS], 2);
}
