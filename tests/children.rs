//! Moving children and dictionaries out of their parents (B5).

mod common;

use std::thread;

use arrow_device_abi::raw::{ARROW_FLAG_NULLABLE, ArrowArray, ArrowDeviceType};
use arrow_device_abi::{
    ArrayView, Device, EventWaiter, OwnedArray, Readiness, ReadyDeviceArray, SyncEvent, ViewError,
};

use common::{Counter, Event, Stub, array, nowhere, on_device, own, schema};

/// How often each node of a tree was released.
#[derive(Default)]
struct Counts {
    parent: Counter,
    first: Counter,
    second: Counter,
    dictionary: Counter,
}

impl Counts {
    /// Parent, first child, second child, and the second child's dictionary.
    fn get(&self) -> [usize; 4] {
        [&self.parent, &self.first, &self.second, &self.dictionary].map(Counter::get)
    }
}

fn parent() -> (Stub<ArrowArray>, Counts) {
    let counts = Counts::default();
    let first = array(3).no_buffer().buffer(&[1i32, 2, 3]).counted(&counts.first);
    let values = array(2).no_buffer().buffer(&[0i32, 1, 2]).buffer(b"ab").counted(&counts.dictionary);
    let second = array(3).no_buffer().buffer(&[0i8, 1, 0]).dictionary(values).counted(&counts.second);
    (array(3).no_buffer().child(first).child(second).counted(&counts.parent), counts)
}

fn values(array: &ArrayView<'_>) -> Vec<i32> {
    // SAFETY: second buffer of an `i` array of this file: three static values.
    unsafe { array.buffer_as(1, 3) }.unwrap().to_vec()
}

/// B5, C2: a child that was moved out lives on after its parent, and is released once, by its owner.
#[test]
fn a_child_outlives_its_parent() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    let child = parent.take_child(0).unwrap();
    assert_eq!(counts.get(), [0, 0, 0, 0]);
    drop(parent);
    assert_eq!(counts.get(), [1, 0, 1, 1]);
    assert_eq!(values(&child.view().unwrap()), [1, 2, 3]);
    drop(child);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B5, C2: the same of a dictionary, and of a child that has one.
#[test]
fn a_dictionary_outlives_its_parent() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    let mut child = parent.take_child(1).unwrap();
    drop(parent);
    assert_eq!(counts.get(), [1, 1, 0, 0]);
    let dictionary = child.take_dictionary().unwrap().unwrap();
    drop(child);
    assert_eq!(counts.get(), [1, 1, 1, 0]);
    assert_eq!(dictionary.view().unwrap().length(), 2);
    drop(dictionary);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B5: a parent may also go last, and each node is released once in whatever order.
#[test]
fn children_may_go_before_their_parent() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    drop(parent.take_child(1).unwrap());
    assert_eq!(counts.get(), [0, 0, 1, 1]);
    drop(parent.take_child(0).unwrap());
    drop(parent);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B5, C33: parent and children are released on different threads at once.
#[test]
fn children_and_parent_on_different_threads() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    let children: Vec<OwnedArray> = (0..2).map(|index| parent.take_child(index).unwrap()).collect();
    thread::scope(|scope| {
        for child in children {
            scope.spawn(move || assert_eq!(child.view().unwrap().length(), 3));
        }
        scope.spawn(move || drop(parent));
    });
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B1, B5: what was moved out is seen as released, the siblings are still there.
#[test]
fn a_moved_child_is_released_to_its_parent() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    let _child = parent.take_child(0).unwrap();
    let view = parent.view().unwrap();
    assert_eq!(view.n_children(), 2);
    assert_eq!(view.child(0).unwrap_err(), ViewError::Released);
    let seen: Vec<_> = view.children().map(|child| child.map(|child| child.length())).collect();
    assert_eq!(seen, [Err(ViewError::Released), Ok(3)]);

    assert_eq!(parent.take_child(0).unwrap_err(), ViewError::Released);
    let mut second = parent.take_child(1).unwrap();
    assert!(second.take_dictionary().unwrap().is_some());
    assert_eq!(second.take_dictionary().unwrap_err(), ViewError::Released);
    assert_eq!(second.view().unwrap().dictionary().unwrap_err(), ViewError::Released);
    assert_eq!(counts.get(), [0, 0, 0, 1]);
}

/// B5: an index without a child moves nothing, and no dictionary is no error.
#[test]
fn there_may_be_no_such_child() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    let error = parent.take_child(2).unwrap_err();
    assert_eq!(error, ViewError::OutOfRange { field: "children", index: 2, count: 2 });
    assert!(parent.take_child(usize::MAX).is_err());
    assert!(parent.take_dictionary().unwrap().is_none());
    assert_eq!(parent.view().unwrap().child(0).unwrap().length(), 3);
    drop(parent);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B1: nothing can be taken out of a struct that C moved away.
#[test]
fn a_released_parent_has_no_children() {
    let (stub, counts) = parent();
    let mut parent = stub.own();
    // SAFETY: the pointer is valid while `parent` is borrowed.
    let moved = unsafe { OwnedArray::take(parent.as_mut_ptr()) }.unwrap();
    assert_eq!(parent.take_child(0).unwrap_err(), ViewError::Released);
    assert_eq!(parent.take_dictionary().unwrap_err(), ViewError::Released);
    drop(parent);
    drop(moved);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B5: schemas are trees of the same kind.
#[test]
fn children_of_schemas_move_too() {
    let [parent, child, dictionary] = [Counter::new(), Counter::new(), Counter::new()];
    let mut tree = schema(c"+s")
        .child(schema(c"i").name(c"a").flags(ARROW_FLAG_NULLABLE).counted(&child))
        .child(schema(c"c").dictionary(schema(c"u").counted(&dictionary)).counted(&child))
        .counted(&parent)
        .own();
    let first = tree.take_child(0).unwrap();
    let mut second = tree.take_child(1).unwrap();
    drop(tree);
    assert_eq!([&parent, &child, &dictionary].map(Counter::get), [1, 0, 0]);
    let view = first.view().unwrap();
    assert_eq!((view.format(), view.name(), view.is_nullable()), (Ok("i"), Ok(Some("a")), true));
    let values = second.take_dictionary().unwrap().unwrap();
    drop(second);
    assert_eq!(values.view().unwrap().format(), Ok("u"));
    drop((first, values));
    assert_eq!([&parent, &child, &dictionary].map(Counter::get), [1, 2, 1]);
}

struct Says(Readiness);

// SAFETY: the arrays of this file are static memory, complete before any event.
unsafe impl EventWaiter for Says {
    type Error = ();

    fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, ()> {
        Ok(self.0)
    }
}

fn ready(stub: Stub<ArrowArray>, destroyed: &Counter, readiness: Readiness) -> ReadyDeviceArray {
    let device = Device::new(ArrowDeviceType::CUDA, 3);
    let event = Event::new(nowhere(), destroyed);
    own(on_device(stub, device, Some(event))).synchronize(&Says(readiness)).unwrap()
}

/// B5, D5: a child of a device array is on its parent's device, as ready as that, and outlives it; the event does not.
#[test]
fn a_child_of_a_ready_array_is_as_ready() {
    for readiness in [Readiness::Complete, Readiness::Queued] {
        let (stub, counts) = parent();
        let destroyed = Counter::new();
        let mut parent = ready(stub, &destroyed, readiness);
        let child = parent.take_child(0).unwrap();
        assert_eq!(parent.take_child(0).unwrap_err(), ViewError::Released);
        assert!(matches!(parent.take_child(5), Err(ViewError::OutOfRange { .. })));
        assert_eq!(destroyed.get(), 0);
        drop(parent);
        assert_eq!((counts.get(), destroyed.get()), ([1, 0, 1, 1], 1));
        assert_eq!(child.device(), Device::new(ArrowDeviceType::CUDA, 3));
        assert_eq!(child.readiness(), readiness);
        assert_eq!(values(&child.view().unwrap()), [1, 2, 3]);
        drop(child);
        assert_eq!((counts.get(), destroyed.get()), ([1, 1, 1, 1], 1));
    }
}

/// D5: a child that was waited for in a queue only is not handed on without an event; it comes back and is not lost.
#[test]
fn a_queued_child_is_not_handed_on_without_an_event() {
    let (stub, counts) = parent();
    let destroyed = Counter::new();
    let mut parent = ready(stub, &destroyed, Readiness::Queued);
    let child = parent.take_child(0).unwrap();
    let error = child.into_device_array().unwrap_err();
    assert_eq!(error.to_string(), "the array on CUDA:3 was waited for in a queue, not by the host");
    let child = error.0;
    assert_eq!((counts.get()[1], child.readiness()), (0, Readiness::Queued));
    drop(child);
    assert_eq!(counts.get()[1], 1);

    // The parent has its event still.
    let handed_on = parent.into_device_array().unwrap();
    assert!(handed_on.sync_event().unwrap().is_some());
    assert_eq!(destroyed.get(), 0);
}

/// D8: a child of an array whose event has fired needs none: it is handed on with a null event.
#[test]
fn a_complete_child_is_handed_on_without_an_event() {
    let (stub, counts) = parent();
    let mut parent = ready(stub, &Counter::new(), Readiness::Complete);
    let child = parent.take_child(1).unwrap().into_device_array().unwrap();
    drop(parent);
    assert!(child.sync_event().unwrap().is_none());
    assert!(child.as_raw().sync_event.is_null());
    assert_eq!(child.device(), Device::new(ArrowDeviceType::CUDA, 3));
    assert_eq!(child.as_raw().reserved, [0; 3], "D10");
    drop(child);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}

/// B5: the dictionary of a ready array moves out like a child, once, and is where its array is.
#[test]
fn a_ready_dictionary_outlives_its_parent() {
    let (stub, counts) = parent();
    let mut parent = ready(stub, &Counter::new(), Readiness::Complete);
    assert!(parent.take_dictionary().unwrap().is_none());
    let mut second = parent.take_child(1).unwrap();
    let dictionary = second.take_dictionary().unwrap().unwrap();
    assert_eq!(second.take_dictionary().unwrap_err(), ViewError::Released);
    drop((second, parent));
    assert_eq!(counts.get(), [1, 1, 1, 0]);
    assert_eq!(dictionary.device(), Device::new(ArrowDeviceType::CUDA, 3));
    assert_eq!((dictionary.readiness(), dictionary.view().unwrap().length()), (Readiness::Complete, 2));
    drop(dictionary);
    assert_eq!(counts.get(), [1, 1, 1, 1]);
}
