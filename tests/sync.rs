//! Device arrays: what they are on, what they wait for, and that their buffers come only after it.

mod common;

use core::ffi::c_void;
use core::fmt;
use core::ptr;
use std::cell::RefCell;
use std::error::Error;

use arrow_device_abi::raw::{ArrowArray, ArrowDeviceType};
use arrow_device_abi::{
    Device, EventWaiter, NoWait, NoWaiter, OwnedArray, OwnedDeviceArray, Readiness, SyncErrorKind, SyncEvent,
    UnexpectedEvent, ViewError,
};

use common::{Counter, Event, Stub, array, nowhere, on_device, own};

const CUDA: Device = Device::new(ArrowDeviceType::CUDA, 1);

/// What the event table says of a device type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NoEvent,
    Cuda,
    OpenCl,
    Vulkan,
    Metal,
    Hip,
    Sycl,
    Extension,
    Unknown,
}

/// SPEC.md's table: value, name, kind of event, whether the host can read its memory.
const TABLE: [(i32, &str, Kind, bool); 14] = [
    (1, "CPU", Kind::NoEvent, true),
    (2, "CUDA", Kind::Cuda, false),
    (3, "CUDA_HOST", Kind::Cuda, true),
    (4, "OPENCL", Kind::OpenCl, false),
    (7, "VULKAN", Kind::Vulkan, false),
    (8, "METAL", Kind::Metal, false),
    (9, "VPI", Kind::NoEvent, false),
    (10, "ROCM", Kind::Hip, false),
    (11, "ROCM_HOST", Kind::Hip, true),
    (12, "EXT_DEV", Kind::Extension, false),
    (13, "CUDA_MANAGED", Kind::Cuda, true),
    (14, "ONEAPI", Kind::Sycl, false),
    (15, "WEBGPU", Kind::NoEvent, false),
    (16, "HEXAGON", Kind::NoEvent, false),
];
/// 5 and 6 are unused, 17 and more are DLPack's, the rest is nobody's.
const UNKNOWN: [i32; 9] = [0, 5, 6, 17, 18, 99, -1, i32::MIN, i32::MAX];

fn kind(event: SyncEvent<'_>) -> (Kind, *mut c_void) {
    match event {
        SyncEvent::Cuda(event) => (Kind::Cuda, event.as_ptr().cast()),
        SyncEvent::OpenCl(event) => (Kind::OpenCl, event.as_ptr().cast()),
        SyncEvent::Vulkan(event) => (Kind::Vulkan, event.as_ptr().cast()),
        SyncEvent::Metal(event) => (Kind::Metal, event.as_ptr()),
        SyncEvent::Hip(event) => (Kind::Hip, event.as_ptr().cast()),
        SyncEvent::Sycl(event) => (Kind::Sycl, event.as_ptr()),
        SyncEvent::Extension(event) => (Kind::Extension, event.as_ptr()),
        SyncEvent::Unknown(event) => (Kind::Unknown, event.as_ptr()),
        other => panic!("a new kind of event: {other:?}"),
    }
}

/// D4, D9, D11, C1: the event table, over all 14 types and unknown ones; the pointer passes through and is not
/// followed.
#[test]
fn the_event_table() {
    let all = TABLE.iter().map(|&(value, _, kind, _)| (value, kind));
    for (value, expected) in all.chain(UNKNOWN.map(|value| (value, Kind::Unknown))) {
        let device_type = ArrowDeviceType(value);
        // SAFETY: this test follows no event pointer.
        let event = unsafe { SyncEvent::from_raw(device_type, nowhere()) };
        if expected == Kind::NoEvent {
            let error = event.unwrap_err();
            assert_eq!(error.device_type, device_type);
        } else {
            assert_eq!(kind(event.unwrap().unwrap()), (expected, nowhere()), "device type {value}");
        }
        // SAFETY: null is allowed.
        let none = unsafe { SyncEvent::from_raw(device_type, ptr::null_mut()) };
        assert!(none.unwrap().is_none(), "device type {value} without an event (D8)");
    }
}

/// D4, C18: −1 is what a producer writes for the CPU, any id is accepted.
#[test]
fn the_cpu_has_any_id() {
    assert_eq!(Device::CPU, Device::new(ArrowDeviceType::CPU, -1));
    for id in [-1, 0, 7] {
        let owned = own(on_device(array(2), Device::new(ArrowDeviceType::CPU, id), None));
        assert!(owned.device().is_cpu());
        assert_eq!(owned.device().device_id, id);
        let ready = owned.synchronize(&NoWait).unwrap();
        assert!(ready.is_host_ready());
    }
    assert!(!CUDA.is_cpu());
    assert!(!Device::new(ArrowDeviceType(0), -1).is_cpu());
}

/// D4: a device prints its type, and its number where it has one.
#[test]
fn devices_are_printed() {
    let text = |device_type, id| Device::new(device_type, id).to_string();
    assert_eq!(text(ArrowDeviceType::CPU, -1), "CPU");
    assert_eq!(text(ArrowDeviceType::CPU, 0), "CPU");
    assert_eq!(text(ArrowDeviceType::CUDA, 3), "CUDA:3");
    assert_eq!(text(ArrowDeviceType::EXT_DEV, -1), "EXT_DEV");
    assert_eq!(text(ArrowDeviceType(99), 1), "99:1");
    assert_eq!(text(ArrowDeviceType(-5), -1), "-5");
}

/// A waiter that does as it is told and notes what it is asked.
struct Mock {
    answer: Result<Readiness, Timeout>,
    asked: RefCell<Vec<(Device, Kind, *mut c_void)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timeout(u32);

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timed out after {} ms", self.0)
    }
}

impl Mock {
    fn new(answer: Result<Readiness, Timeout>) -> Self {
        Self { answer, asked: RefCell::default() }
    }
}

// SAFETY: the arrays of this file are static memory or nowhere: no event has anything to wait for.
unsafe impl EventWaiter for Mock {
    type Error = Timeout;

    fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, Timeout> {
        let (kind, address) = kind(event);
        // SAFETY: the events of this file are live pointers to handles.
        let handle = unsafe { *address.cast::<*mut c_void>() };
        self.asked.borrow_mut().push((device, kind, handle));
        self.answer
    }
}

fn with_event(stub: Stub<ArrowArray>, device: Device, destroyed: &Counter) -> OwnedDeviceArray {
    own(on_device(stub, device, Some(Event::new(nowhere(), destroyed))))
}

/// D8: without an event the array is complete at once, on any type of device, and no waiter is asked.
#[test]
fn without_an_event_nobody_is_asked() {
    let waiter = Mock::new(Err(Timeout(0)));
    for value in TABLE.map(|(value, ..)| value).into_iter().chain(UNKNOWN) {
        let device = Device::new(ArrowDeviceType(value), 0);
        let owned = own(on_device(array(4).buffer_at(nowhere()), device, None));
        assert!(owned.sync_event().unwrap().is_none());
        let ready = owned.synchronize(&waiter).unwrap();
        assert_eq!((ready.device(), ready.readiness()), (device, Readiness::Complete));
        assert_eq!(ready.is_host_ready(), device.is_host_readable());
        assert_eq!(ready.view().unwrap().length(), 4);
    }
    assert!(waiter.asked.borrow().is_empty());
}

/// D5, D7, C1: a waiter gets the device and a pointer to the handle, wherever the struct was moved.
#[test]
fn a_waiter_gets_the_device_and_a_pointer_to_the_handle() {
    let destroyed = Counter::new();
    let owned = with_event(array(4), CUDA, &destroyed);
    let address = owned.as_raw().sync_event;
    assert_ne!(address, nowhere(), "the pointer is not the handle");
    let moved = Box::new(owned);
    assert_eq!(moved.as_raw().sync_event, address);

    let waiter = Mock::new(Ok(Readiness::Complete));
    let ready = moved.synchronize(&waiter).unwrap();
    assert_eq!(*waiter.asked.borrow(), [(CUDA, Kind::Cuda, nowhere())]);
    assert_eq!(destroyed.get(), 0, "waiting does not destroy the event (D11)");
    drop(ready);
    assert_eq!(destroyed.get(), 1, "the array may be released right after the wait (D3)");
}

/// D5, C19: readable by the host is not ready: the event counts, and so does what the waiter says.
#[test]
fn host_readable_is_not_ready() {
    for (value, name, expected, host_readable) in TABLE {
        if expected == Kind::NoEvent {
            continue;
        }
        let device = Device::new(ArrowDeviceType(value), 0);
        let owned = with_event(array(1), device, &Counter::new());
        let owned = owned.synchronize(&NoWait).unwrap_err().array;
        let waiter = Mock::new(Ok(Readiness::Queued));
        let ready = owned.synchronize(&waiter).unwrap();
        assert_eq!(waiter.asked.borrow().len(), 1, "{name}");
        assert_eq!(ready.readiness(), Readiness::Queued);
        assert!(!ready.is_host_ready(), "{name}: nobody on the host has waited");

        let again = ready.into_device_array().unwrap();
        let ready = again.synchronize(&Mock::new(Ok(Readiness::Complete))).unwrap();
        assert_eq!(ready.is_host_ready(), host_readable, "{name}");
    }
}

/// C19, D3, D5: only what the host can read, and has waited for, is an array of the C Data Interface; the event goes
/// with it.
#[test]
fn a_host_array_is_host_ready() {
    let [released, destroyed] = [Counter::new(), Counter::new()];
    let event_on = |device_type, readiness| {
        let owned = with_event(array(6).counted(&released), Device::new(device_type, 2), &destroyed);
        owned.synchronize(&Mock::new(Ok(readiness))).unwrap()
    };
    let not_ready = [
        (ArrowDeviceType::CUDA, Readiness::Complete, "the host cannot read memory of CUDA:2"),
        (
            ArrowDeviceType::CUDA_HOST,
            Readiness::Queued,
            "the array on CUDA_HOST:2 was waited for in a queue, not by the host",
        ),
    ];
    for (index, (device_type, readiness, text)) in not_ready.into_iter().enumerate() {
        let error = event_on(device_type, readiness).into_host_array().unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!((released.get(), destroyed.get()), (index, index));
        assert_eq!(error.0.device().device_type, device_type);
        drop(error);
    }
    assert_eq!((released.get(), destroyed.get()), (2, 2));

    let array = event_on(ArrowDeviceType::CUDA_HOST, Readiness::Complete).into_host_array().unwrap();
    assert_eq!(array.view().unwrap().length(), 6);
    assert_eq!((released.get(), destroyed.get()), (2, 2));
    drop(array);
    assert_eq!((released.get(), destroyed.get()), (3, 3));
}

/// D4, D8, D10: a host array is a device array of the CPU: id −1, no event, zeroes.
#[test]
fn a_host_array_becomes_a_device_array() {
    let released = Counter::new();
    let owned = OwnedDeviceArray::from(array(7).counted(&released).own());
    assert_eq!(owned.device(), Device::CPU);
    assert!(owned.as_raw().sync_event.is_null());
    assert_eq!(owned.as_raw().reserved, [0; 3]);
    let array = owned.synchronize(&NoWait).unwrap().into_host_array().unwrap();
    assert_eq!((array.view().unwrap().length(), released.get()), (7, 0));
    drop(array);
    assert_eq!(released.get(), 1);

    let nothing = OwnedDeviceArray::from(OwnedArray::released());
    assert_eq!(nothing.synchronize(&NoWait).unwrap_err().kind, SyncErrorKind::Released);
}

/// D5: an array goes on as it was received, its event still in it for the next consumer.
#[test]
fn a_ready_array_goes_on_with_its_event() {
    for readiness in [Readiness::Complete, Readiness::Queued] {
        let [released, destroyed] = [Counter::new(), Counter::new()];
        let owned = with_event(array(6).counted(&released), CUDA, &destroyed);
        let before = format!("{:?}", owned.as_raw());
        let ready = owned.synchronize(&Mock::new(Ok(readiness))).unwrap();
        let owned = ready.into_device_array().unwrap();
        assert_eq!(format!("{:?}", owned.as_raw()), before);
        assert_eq!((released.get(), destroyed.get()), (0, 0));
        drop(owned);
        assert_eq!((released.get(), destroyed.get()), (1, 1));
    }
}

/// D5: a failed wait opens nothing and gives the array back as it was; it can be tried again.
#[test]
fn a_failed_wait_gives_the_array_back() {
    let [released, destroyed] = [Counter::new(), Counter::new()];
    let owned = with_event(array(2).counted(&released), CUDA, &destroyed);
    let before = format!("{:?}", owned.as_raw());

    let error = owned.synchronize(&Mock::new(Err(Timeout(20)))).unwrap_err();
    assert_eq!(error.kind, SyncErrorKind::Wait(Timeout(20)));
    assert_eq!(error.to_string(), "waiting for the array's event failed: timed out after 20 ms");
    let debug = format!("{error:?}");
    assert!(debug.contains("CUDA") && debug.contains("Wait(Timeout(20))"), "{debug}");
    assert_eq!(format!("{:?}", error.array.as_raw()), before);
    assert_eq!((released.get(), destroyed.get()), (0, 0));

    assert!(error.array.synchronize(&Mock::new(Ok(Readiness::Complete))).is_ok());
    assert_eq!((released.get(), destroyed.get()), (1, 1));
}

/// D7: who knows no runtime takes what needs no waiting, and refuses the rest.
#[test]
fn no_wait_refuses_events() {
    let released = Counter::new();
    let owned = with_event(array(2).counted(&released), CUDA, &Counter::new());
    let error = owned.synchronize(&NoWait).unwrap_err();
    assert_eq!(error.kind, SyncErrorKind::Wait(NoWaiter));
    assert!(error.to_string().ends_with("no waiter that could was given"), "{error}");
    assert_eq!(released.get(), 0);
    drop(error);
    assert_eq!(released.get(), 1);
}

/// D9: an event on a type that has none is an error; nobody is asked and nothing is followed.
#[test]
fn an_event_where_there_can_be_none() {
    for (value, name, expected, _) in TABLE {
        if expected != Kind::NoEvent {
            continue;
        }
        let released = Counter::new();
        let device = Device::new(ArrowDeviceType(value), -1);
        let mut raw = on_device(array(2).counted(&released), device, None);
        raw.sync_event = nowhere();
        let owned = own(raw);
        assert_eq!(owned.sync_event().unwrap_err().device_type, device.device_type);

        let waiter = Mock::new(Ok(Readiness::Complete));
        let error = owned.synchronize(&waiter).unwrap_err();
        assert!(waiter.asked.borrow().is_empty());
        let SyncErrorKind::UnexpectedEvent(UnexpectedEvent { device_type, .. }) = error.kind else {
            panic!("{error:?}");
        };
        assert_eq!(device_type, device.device_type);
        let text =
            format!("the array has a sync event, but no kind of event is defined for device type {name}");
        assert_eq!(error.to_string(), text);
        assert_eq!(released.get(), 0);
        assert_eq!(error.array.as_raw().sync_event, nowhere());
        drop(error);
        assert_eq!(released.get(), 1);
    }
}

/// B1, D16: a released array has no event and cannot be waited for, whatever stands in its other fields.
#[test]
fn a_released_array_is_not_waited_for() {
    let released = Counter::new();
    let mut lent = with_event(array(2).counted(&released), CUDA, &Counter::new());
    // SAFETY: the pointer is valid while `lent` is borrowed.
    let moved = unsafe { OwnedDeviceArray::take(lent.as_mut_ptr()) }.unwrap();
    drop(moved);
    assert_eq!(released.get(), 1);
    assert!(!lent.as_raw().sync_event.is_null());
    assert!(lent.sync_event().unwrap().is_none());

    let waiter = Mock::new(Ok(Readiness::Complete));
    let error = lent.synchronize(&waiter).unwrap_err();
    assert_eq!(error.kind, SyncErrorKind::Released);
    assert_eq!(error.to_string(), "the array is released or was moved away");
    assert!(waiter.asked.borrow().is_empty());
    assert!(error.array.is_released());
}

/// D5: the unsafe way looks at no event, and opens a released array no more than the other.
#[test]
fn assume_ready_does_not_look_at_the_event() {
    let owned = with_event(array(5), Device::new(ArrowDeviceType::CUDA_MANAGED, 0), &Counter::new());
    // SAFETY: there is nothing that writes the array.
    let ready = unsafe { owned.assume_ready() };
    assert_eq!(ready.readiness(), Readiness::Complete);
    assert!(ready.is_host_ready());
    assert_eq!(ready.view().unwrap().length(), 5);

    let mut lent = ready.into_device_array().unwrap();
    // SAFETY: the pointer is valid while `lent` is borrowed.
    drop(unsafe { OwnedDeviceArray::take(lent.as_mut_ptr()) }.unwrap());
    // SAFETY: as above.
    let ready = unsafe { lent.assume_ready() };
    assert_eq!(ready.view().unwrap_err(), ViewError::Released);
}

/// D1, D2: structs and pointer arrays are on the host and are read; buffers are on the device and are not.
#[test]
fn buffers_are_passed_on_and_not_read() {
    let stub =
        array(1000).nulls(-1).buffer_at(nowhere()).child(array(9).buffer_at(nowhere()).buffer_at(nowhere()));
    let ready = own(on_device(stub, CUDA, None)).synchronize(&NoWait).unwrap();
    let view = ready.view().unwrap();
    assert_eq!(view.buffers(), [nowhere().cast_const()]);
    let child = view.child(0).unwrap();
    assert_eq!((child.length(), child.buffer(1)), (9, Ok(nowhere().cast_const())));
}

/// D10: a consumer does not look at `reserved`, which some producers leave uninitialised.
#[test]
fn garbage_in_reserved_is_no_error() {
    let raw = on_device(array(1), Device::CPU, None);
    assert_ne!(raw.reserved, [0; 3]);
    assert!(own(raw).synchronize(&NoWait).is_ok());
}

/// D7: a waiter may be a trait object, and errors are errors.
#[test]
fn waiters_and_errors_are_ordinary_objects() {
    let waiter: Box<dyn EventWaiter<Error = NoWaiter>> = Box::new(NoWait);
    let owned = with_event(array(1), CUDA, &Counter::new());
    let error: Box<dyn Error + Send + Sync> = Box::new(owned.synchronize(&*waiter).unwrap_err());
    assert!(error.to_string().starts_with("waiting for the array's event failed: the array has an event"));
}
