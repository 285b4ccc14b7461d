//! Arrays on devices: the event and its address (C1), the device (C18), what is zero (D10).

mod common;
mod export;

use core::convert::Infallible;
use core::ffi::c_void;
use core::ptr;

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{
    ArrayNode, Device, EventWaiter, ExportErrorKind, ExportEvent, OwnedDeviceArray, Readiness, SyncEvent,
};

use common::{Counter, nowhere};
use export::{Keep, Tree, layouts, leaf, structure};

const CUDA: Device = Device::new(ArrowDeviceType::CUDA, 1);

/// C1's handle: nothing may be read there.
fn handle() -> *mut c_void {
    nowhere()
}

/// The event kinds of the specification's table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    None,
    Handle,
    Vk,
    Object,
}

impl Kind {
    fn event(self) -> ExportEvent {
        match self {
            Self::None => ExportEvent::Synchronized,
            Self::Handle => ExportEvent::Handle(handle()),
            Self::Vk => ExportEvent::VkEvent(0x0123_4567_89AB_CDEF),
            Self::Object => ExportEvent::Object(handle()),
        }
    }

    fn null(self) -> Option<ExportEvent> {
        match self {
            Self::None => None,
            Self::Handle => Some(ExportEvent::Handle(ptr::null_mut())),
            Self::Vk => Some(ExportEvent::VkEvent(0)),
            Self::Object => Some(ExportEvent::Object(ptr::null_mut())),
        }
    }
}

const KINDS: [Kind; 4] = [Kind::None, Kind::Handle, Kind::Vk, Kind::Object];

/// SPEC.md's table, and types that Arrow does not define.
const EVENTS: [(i32, Kind); 20] = [
    (1, Kind::None),
    (2, Kind::Handle),
    (3, Kind::Handle),
    (4, Kind::Handle),
    (7, Kind::Vk),
    (8, Kind::Object),
    (9, Kind::None),
    (10, Kind::Handle),
    (11, Kind::Handle),
    (12, Kind::Object),
    (13, Kind::Handle),
    (14, Kind::Object),
    (15, Kind::None),
    (16, Kind::None),
    (0, Kind::Object),
    (5, Kind::Object),
    (6, Kind::Object),
    (17, Kind::Object),
    (-1, Kind::Object),
    (i32::MAX, Kind::Object),
];

fn export<K: Send + 'static>(
    node: ArrayNode<'_>,
    device: Device,
    event: ExportEvent,
    keep: K,
) -> Result<OwnedDeviceArray, arrow_device_abi::ExportError<K>> {
    // SAFETY: the nodes of these tests are of a type, their buffers are never read through a device, and nobody waits
    // for their events but to look at the handle.
    unsafe { node.export_on(device, event, keep) }
}

fn bare(device: Device, event: ExportEvent) -> Result<OwnedDeviceArray, ExportErrorKind> {
    let dropped = Counter::new();
    let result = export(ArrayNode::default(), device, event, Keep::counted(&dropped));
    assert_eq!(dropped.get(), 0);
    result.map_err(|error| {
        drop(error.keep);
        assert_eq!(dropped.get(), 1, "the keep-alive was not in the error");
        error.kind
    })
}

/// D5, D8, D9, C15: each type of device takes its own kind of event and no other, none is always allowed, and a null
/// handle never, so that nobody has to wait for one or destroy it.
#[test]
fn each_device_type_has_its_own_kind_of_event() {
    for (number, own) in EVENTS {
        let device_type = ArrowDeviceType(number);
        let device = Device::new(device_type, 0);
        for kind in KINDS {
            let array = bare(device, kind.event());
            if kind != Kind::None && kind != own {
                assert_eq!(array.unwrap_err(), ExportErrorKind::Event(device_type), "{kind:?}");
                continue;
            }
            let array = array.unwrap();
            assert_eq!(array.device().device_type, device_type);
            assert_eq!(array.as_raw().sync_event.is_null(), kind == Kind::None);
            assert_eq!(array.sync_event().unwrap().is_some(), kind != Kind::None);
            if let Some(null) = kind.null() {
                assert_eq!(bare(device, null).unwrap_err(), ExportErrorKind::Event(device_type), "{kind:?}");
            }
        }
    }
    for named in ArrowDeviceType::NAMED {
        assert!(EVENTS.iter().any(|(number, _)| *number == named.0), "{named}");
    }
}

/// C1: `sync_event` is the address of the handle and not the handle, and the handle is read through it. For an object
/// it is the object.
#[test]
fn the_event_is_behind_a_pointer() {
    for (number, kind) in EVENTS {
        let array = bare(Device::new(ArrowDeviceType(number), 0), kind.event()).unwrap();
        let event = array.as_raw().sync_event;
        match kind {
            Kind::None => assert!(event.is_null()),
            Kind::Object => assert_eq!(event, handle()),
            Kind::Handle => {
                assert_ne!(event, handle());
                // SAFETY: points to the handle while the array lives.
                assert_eq!(unsafe { event.cast::<*mut c_void>().read() }, handle());
            }
            // SAFETY: points to the `VkEvent` while the array lives.
            Kind::Vk => assert_eq!(unsafe { event.cast::<u64>().read() }, 0x0123_4567_89AB_CDEF),
        }
    }
}

/// D10, and what a struct is by the specification.
#[test]
fn the_other_fields() {
    for (number, kind) in EVENTS {
        let array = bare(Device::new(ArrowDeviceType(number), 7), kind.event()).unwrap();
        assert_eq!(array.as_raw().reserved, [0; 3]);
        assert!(array.as_raw().array.release.is_some());
        let id = if number == 1 { -1 } else { 7 };
        assert_eq!(array.as_raw().device_id, id);
    }
}

/// D4, C18: the CPU has the id −1, whatever was asked for; all other ids are as they were given.
#[test]
fn ids() {
    for id in [-1, 0, 3, i64::MIN, i64::MAX] {
        let cpu = bare(Device::new(ArrowDeviceType::CPU, id), ExportEvent::Synchronized).unwrap();
        assert_eq!(cpu.device(), Device::CPU);
        assert_eq!(cpu.as_raw().device_id, -1);
        let cuda = bare(Device::new(ArrowDeviceType::CUDA, id), ExportEvent::Synchronized).unwrap();
        assert_eq!(cuda.as_raw().device_id, id);
    }
}

/// Reads a handle through `sync_event`, as a runtime does.
fn read(event: *mut c_void) -> *mut c_void {
    // SAFETY: points to a handle in these tests, as long as a node of its tree lives.
    unsafe { event.cast::<*mut c_void>().read() }
}

fn family() -> Tree {
    let values = |byte| leaf("C", 2, [None, Some(vec![byte, byte])]);
    structure(2, [structure(2, [values(1)]), values(2)])
}

fn export_family(tree: &Tree, dropped: &Counter) -> OwnedDeviceArray {
    let (placed, keep) = tree.place(dropped);
    placed.with_node(|node| export(*node, CUDA, ExportEvent::Handle(handle()), keep)).unwrap()
}

/// C1, B6, D13: the event is not in the struct: moved to another address it still reads, and does not change.
#[test]
fn the_event_survives_a_move() {
    let (tree, dropped) = (family(), Counter::new());
    let raw = Box::new(export_family(&tree, &dropped).into_raw());
    let event = raw.sync_event;
    let start = ptr::from_ref(&*raw).addr();
    assert!(!(start..start + size_of::<ArrowDeviceArray>()).contains(&event.addr()));
    // SAFETY: a move by bytes; the source is freed and not used again.
    let mut moved = Box::new(unsafe { ptr::read(&raw const *raw) });
    drop(raw);
    assert_eq!((moved.sync_event, read(moved.sync_event)), (event, handle()));
    // D3, B4: one release, of the array, frees it all; it does not ask where the array is.
    // SAFETY: a live array that nobody else has.
    unsafe { moved.array.release.unwrap()(&raw mut moved.array) };
    assert!(moved.is_released());
    assert_eq!(dropped.get(), 1);
}

/// C1, B5, D11: the event lives as long as any node: a moved child, a grandchild.
#[test]
fn the_event_lives_as_long_as_a_moved_child() {
    let (tree, dropped) = (family(), Counter::new());
    let array = export_family(&tree, &dropped);
    let event = array.as_raw().sync_event;
    // SAFETY: the buffers are in host memory, and written.
    let mut ready = unsafe { array.assume_ready() };
    tree.assert_read_by(ready.view().unwrap());
    let mut child = ready.take_child(0).unwrap();
    drop(ready);
    assert_eq!(read(event), handle());
    let grandchild = child.take_child(0).unwrap();
    drop(child);
    assert_eq!((read(event), dropped.get()), (handle(), 0));
    assert_eq!(grandchild.device(), CUDA);
    tree.children[0].children[0].assert_read_by(grandchild.view().unwrap());
    drop(grandchild);
    assert_eq!(dropped.get(), 1);
}

/// D7, D11: a waiter of the consumer gets the handle from the pointer.
#[test]
fn a_waiter_reads_the_handle() {
    struct Reads;

    // SAFETY: there is no work that writes the buffers, so it is done.
    unsafe impl EventWaiter for Reads {
        type Error = Infallible;

        fn wait(&self, device: Device, event: SyncEvent<'_>) -> Result<Readiness, Infallible> {
            let SyncEvent::Cuda(event) = event else {
                panic!("{event:?}");
            };
            assert_eq!((device, read(event.as_ptr().cast())), (CUDA, handle()));
            Ok(Readiness::Complete)
        }
    }

    let (tree, dropped) = (family(), Counter::new());
    let ready = export_family(&tree, &dropped).synchronize(&Reads).unwrap();
    tree.assert_read_by(ready.view().unwrap());
    drop(ready);
    assert_eq!(dropped.get(), 1);
}

/// D1, D2, D15: the tree of a device array is that of a host array, in host memory; buffer pointers are passed on as
/// they are.
#[test]
fn every_layout_on_a_device() {
    for tree in layouts() {
        let dropped = Counter::new();
        let array = export_family(&tree, &dropped);
        // SAFETY: the buffers are in host memory, and written.
        tree.assert_read_by(unsafe { array.assume_ready() }.view().unwrap());
        assert_eq!(dropped.get(), 1);
    }
    let node = ArrayNode { length: 1, buffers: &[ptr::null(), nowhere()], ..ArrayNode::default() };
    let array = export(node, CUDA, ExportEvent::Synchronized, ()).unwrap();
    // SAFETY: the pointers are looked at only, not what they point to.
    let ready = unsafe { array.assume_ready() };
    assert_eq!(ready.view().unwrap().buffers(), [ptr::null(), nowhere().cast_const()]);
}

/// C28: what is wrong with the tree is said here too, and the keep-alive comes back without the event.
#[test]
fn wrong_trees_are_refused() {
    let dropped = Counter::new();
    let node = ArrayNode { length: 1, null_count: 2, ..ArrayNode::default() };
    let error = export(node, CUDA, ExportEvent::Handle(handle()), Keep::counted(&dropped)).unwrap_err();
    assert_eq!(error.kind, ExportErrorKind::NullCount { null_count: 2 });
    assert_eq!(dropped.get(), 0);
    drop(error);
    assert_eq!(dropped.get(), 1);
}

/// D9: the error names the device type, known or not.
#[test]
fn the_refusal_of_an_event_has_its_own_words() {
    for (device_type, name) in [(ArrowDeviceType::WEBGPU, "WEBGPU"), (ArrowDeviceType(99), "99")] {
        let kind = bare(Device::new(device_type, 0), ExportEvent::Handle(handle())).unwrap_err();
        assert_eq!(kind.to_string(), format!("an array on device type {name} cannot wait for this event"));
    }
}

/// D11: the event stands beside a keep-alive of any alignment, and neither disturbs the other.
#[test]
fn the_event_beside_an_aligned_keep_alive() {
    #[repr(align(128))]
    struct Aligned(Counter, [u8; 3]);

    impl Drop for Aligned {
        fn drop(&mut self) {
            assert_eq!((ptr::from_mut(self).addr() % 128, self.1), (0, [1, 2, 3]));
            self.0.add();
        }
    }

    let dropped = Counter::new();
    let keep = Aligned(dropped.clone(), [1, 2, 3]);
    let array = export(ArrayNode::default(), CUDA, ExportEvent::Handle(handle()), keep).unwrap();
    assert_eq!(read(array.as_raw().sync_event), handle());
    assert_eq!(array.as_raw().sync_event.addr() % align_of::<*mut c_void>(), 0);
    drop(array);
    assert_eq!(dropped.get(), 1);
}
