//! [`Owned`]: the rules of moving and releasing, for all five structs.

mod common;

use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::cell::Cell;
use std::error::Error;
use std::thread;

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use arrow_device_abi::{
    Device, Owned, OwnedArray, OwnedDeviceArray, OwnedSchema, Release, TakeError, ViewError,
};

use common::{Bare, Counter, Event, array, for_each_struct, nowhere, on_device, own, schema};

/// `Owned::take`, for structs of the stubs.
fn take<T: Release>(src: &mut T) -> Result<Owned<T>, TakeError> {
    // SAFETY: a reference is valid; stubs obey the interface and may be used from any thread.
    unsafe { Owned::take(src) }
}

/// B6, D13, D16: a move marks the source, calls nothing, and the new owner releases once.
#[test]
fn take_moves_and_marks_the_source() {
    fn test<T: Bare>() {
        let released = Counter::new();
        let mut source = T::bare(&released, true);
        assert!(!source.is_released());
        let owned = take(&mut source).unwrap();
        assert!(source.is_released());
        assert!(!owned.is_released());
        assert_eq!(released.get(), 0);
        drop(owned);
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);
}

/// B1, C3, D16: what is released cannot be taken, and zeros are released. The source stays as it is.
#[test]
fn a_released_struct_is_refused() {
    fn test<T: Bare>() {
        assert_eq!(take(&mut T::released()).unwrap_err(), TakeError::Released);
        // SAFETY: as in `take`; by value.
        assert_eq!(unsafe { Owned::from_raw(T::released()) }.unwrap_err(), TakeError::Released);

        let released = Counter::new();
        let mut source = T::bare(&released, true);
        let first = take(&mut source).unwrap();
        assert_eq!(take(&mut source).unwrap_err(), TakeError::Released, "a second owner");
        drop(first);
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);

    let mut moved_away = ArrowArray { length: 3, private_data: nowhere(), ..ArrowArray::released() };
    assert!(take(&mut moved_away).is_err());
    assert_eq!((moved_away.length, moved_away.private_data), (3, nowhere()));
}

/// B1: a null pointer is an error.
#[test]
fn a_null_pointer_is_refused() {
    fn test<T: Bare>() {
        // SAFETY: null is allowed.
        assert_eq!(unsafe { Owned::<T>::take(ptr::null_mut()) }.unwrap_err(), TakeError::Null);
    }
    for_each_struct!(test);
}

/// B1: the two refusals say which one they are.
#[test]
fn take_errors_have_their_own_words() {
    let texts = [TakeError::Null, TakeError::Released].map(|error| {
        let error: Box<dyn Error> = Box::new(error);
        error.to_string()
    });
    assert_eq!(texts, ["the pointer to the struct is null", "the struct is released or was moved away"]);
}

/// C4, B4: `release` is called once, whether it clears itself or not, and a cleared one is not called again.
#[test]
fn release_is_called_once_even_if_it_forgets_to_clear_itself() {
    fn test<T: Bare>() {
        for clears_itself in [true, false] {
            let released = Counter::new();
            let mut raw = T::bare(&released, clears_itself);
            // SAFETY: a live struct of this test's own, and nothing of it is used.
            unsafe { T::release(&raw mut raw) };
            assert!(raw.is_released());
            // SAFETY: a released struct, which is allowed.
            unsafe { T::release(&raw mut raw) };
            assert!(take(&mut raw).is_err());
            assert_eq!(released.get(), 1, "by hand, clears_itself: {clears_itself}");

            let released = Counter::new();
            drop(own(T::bare(&released, clears_itself)));
            assert_eq!(released.get(), 1, "by drop, clears_itself: {clears_itself}");
        }
    }
    for_each_struct!(test);
}

/// B6: C may move the contents of a lent struct out; what is left is not released again.
#[test]
fn a_lent_struct_that_was_moved_out_is_not_released() {
    fn test<T: Bare>() {
        let released = Counter::new();
        let mut lent = own(T::bare(&released, true));
        // SAFETY: the pointer is valid while `lent` is borrowed; this is what a C consumer does.
        let moved = unsafe { Owned::take(lent.as_mut_ptr()) }.unwrap();
        assert!(lent.is_released());
        drop(lent);
        assert_eq!(released.get(), 0);
        drop(moved);
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);
}

/// C4: C may also release a lent struct, with a callback that does clear itself.
#[test]
fn a_lent_struct_that_was_released_is_not_released_again() {
    fn test<T: Bare>() {
        let released = Counter::new();
        let mut lent = own(T::bare(&released, true));
        // SAFETY: live, and nothing of it is used.
        unsafe { T::release(lent.as_mut_ptr()) };
        assert!(lent.is_released());
        drop(lent);
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);
}

/// C4, C3: an owner may release before its end, once, and start with nothing.
#[test]
fn an_owner_of_nothing() {
    fn test<T: Bare>() {
        let mut nothing = Owned::<T>::released();
        assert!(nothing.is_released() && Owned::<T>::default().is_released());
        nothing.release();
        assert!(nothing.is_released());

        for clears_itself in [true, false] {
            let released = Counter::new();
            let mut owned = own(T::bare(&released, clears_itself));
            owned.release();
            assert!(owned.is_released());
            assert_eq!(released.get(), 1);
            owned.release();
            drop(owned);
            assert_eq!(released.get(), 1, "clears_itself: {clears_itself}");
        }
    }
    for_each_struct!(test);
    assert_eq!(OwnedArray::released().view().unwrap_err(), ViewError::Released);
    assert_eq!(OwnedSchema::released().view().unwrap_err(), ViewError::Released);
}

/// C3: there is one owner: giving the struct up and taking it back releases it once.
#[test]
fn into_raw_gives_the_struct_up_live() {
    fn test<T: Bare>() {
        let released = Counter::new();
        let raw = own(T::bare(&released, false)).into_raw();
        assert!(!raw.is_released());
        assert_eq!(released.get(), 0);
        drop(own(raw));
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);
}

/// C5: what is at the target of an export is neither read nor released, be it uninitialised or live.
#[test]
fn export_only_writes_its_target() {
    fn test<T: Bare>() {
        let released = Counter::new();
        let mut target = MaybeUninit::<T>::uninit();
        // SAFETY: valid for writes; nothing is there.
        unsafe { own(T::bare(&released, true)).export_to(target.as_mut_ptr()) };
        // SAFETY: the export initialised it.
        let mut exported = unsafe { target.assume_init() };
        assert!(!exported.is_released());
        assert_eq!(released.get(), 0);

        let next_released = Counter::new();
        // SAFETY: valid for writes, and the live struct there may be lost: it owns nothing.
        unsafe { own(T::bare(&next_released, true)).export_to(&raw mut exported) };
        drop(own(exported));
        assert_eq!((released.get(), next_released.get()), (0, 1));

        let mut garbage = MaybeUninit::<T>::uninit();
        // SAFETY: the whole of it is valid for writes.
        unsafe { garbage.as_mut_ptr().cast::<u8>().write_bytes(0xAA, size_of::<T>()) };
        // SAFETY: as above; the "callback" of 0xAA bytes must not be called.
        unsafe { own(T::bare(&released, true)).export_to(garbage.as_mut_ptr()) };
        // SAFETY: the export initialised it.
        drop(own(unsafe { garbage.assume_init() }));
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);
}

/// B1, B6, C5, D13: a move without an owner marks the source and only writes the target; a refused one does neither.
#[test]
fn move_between_two_places() {
    fn test<T: Bare>() {
        let released = Counter::new();
        let mut source = T::bare(&released, true);
        let mut target = MaybeUninit::<T>::uninit();
        // SAFETY: a live struct, and memory that is valid for writes.
        unsafe { Owned::move_between(&raw mut source, target.as_mut_ptr()) }.unwrap();
        assert!(source.is_released());
        // SAFETY: the move initialised it.
        let mut target = unsafe { target.assume_init() };

        // SAFETY: a released struct, and one that is not lost because nothing is moved.
        let refused = unsafe { Owned::move_between(&raw mut source, &raw mut target) };
        assert_eq!(refused, Err(TakeError::Released));
        // SAFETY: null is allowed; as above.
        let refused = unsafe { Owned::move_between(ptr::null_mut(), &raw mut target) };
        assert_eq!(refused, Err(TakeError::Null));
        assert!(!target.is_released());
        assert_eq!(released.get(), 0);

        let next_released = Counter::new();
        let mut next = T::bare(&next_released, true);
        // SAFETY: both are valid, and the live struct at the target may be lost: it owns nothing.
        unsafe { Owned::move_between(&raw mut next, &raw mut target) }.unwrap();
        drop(own(target));
        assert_eq!((released.get(), next_released.get()), (0, 1));
    }
    for_each_struct!(test);
}

/// B2: only the base struct is released; its children and dictionary are its own business.
#[test]
fn drop_releases_the_base_struct_only() {
    let [base, inner] = [Counter::new(), Counter::new()];
    let [mut child, mut dictionary] = [(); 2].map(|()| ArrowArray::bare(&inner, true));
    let mut children = [&raw mut child];
    drop(own(ArrowArray {
        n_children: 1,
        children: children.as_mut_ptr(),
        dictionary: &raw mut dictionary,
        ..ArrowArray::bare(&base, true)
    }));
    assert_eq!((base.get(), inner.get()), (1, 0));

    let base = Counter::new();
    let [mut child, mut dictionary] = [(); 2].map(|()| ArrowSchema::bare(&inner, true));
    let mut children = [&raw mut child];
    drop(own(ArrowSchema {
        n_children: 1,
        children: children.as_mut_ptr(),
        dictionary: &raw mut dictionary,
        ..ArrowSchema::bare(&base, true)
    }));
    assert_eq!((base.get(), inner.get()), (1, 0));
}

/// B6, D12: the memory of the base struct is the consumer's: it can go away once the struct was moved.
#[test]
fn the_source_can_be_freed_after_a_move() {
    let released = Counter::new();
    let mut source = Box::new(array(3).buffer(&[1i32, 2, 3]).counted(&released).build());
    let first = take(&mut *source).unwrap();
    drop(source);
    let mut second = Box::new(first.into_raw());
    let third = take(&mut *second).unwrap();
    drop(second);
    assert_eq!(third.view().unwrap().length(), 3);
    drop(third);
    assert_eq!(released.get(), 1);
}

/// D3, D16: the one release of a device array is the embedded array's, which gets the address of that array.
#[test]
fn a_device_array_is_released_through_its_array() {
    static SEEN: AtomicPtr<ArrowArray> = AtomicPtr::new(ptr::null_mut());
    unsafe extern "C" fn release(this: *mut ArrowArray) {
        SEEN.store(this, SeqCst);
        // SAFETY: valid for writes, as every released struct is.
        unsafe { (*this).release = None };
    }
    let mut raw = ArrowDeviceArray::released();
    raw.array.release = Some(release);
    raw.device_id = 4;
    let mut place = Box::new(own(raw));
    let address = place.as_mut_ptr();
    drop(place);
    assert_eq!(SEEN.load(SeqCst), address.cast(), "the array is the first field");
}

/// D3: the release of an array on a device frees its event too, and nothing else does.
#[test]
fn release_frees_the_event_too() {
    let [released, destroyed] = [Counter::new(), Counter::new()];
    let cuda = Device::new(ArrowDeviceType::CUDA, 0);
    let stub = array(1).counted(&released);
    let owned = own(on_device(stub, cuda, Some(Event::new(nowhere(), &destroyed))));
    let raw = owned.into_raw();
    assert_eq!((released.get(), destroyed.get()), (0, 0));
    drop(own(raw));
    assert_eq!((released.get(), destroyed.get()), (1, 1));
}

/// D10, D11, D13, B6: a move changes nothing but the source's `release`: id, type, event and a garbage `reserved` survive.
#[test]
fn a_move_keeps_every_field() {
    let released = Counter::new();
    let mut source = ArrowDeviceArray {
        device_id: i64::MIN,
        device_type: ArrowDeviceType(-7),
        sync_event: nowhere(),
        reserved: [1, i64::MAX, -1],
        ..ArrowDeviceArray::bare(&released, true)
    };
    source.array.length = 5;
    let expected = format!("{source:?}");
    let owned = take(&mut source).unwrap();
    assert_eq!(format!("{:?}", owned.as_raw()), expected);
    let mut moved = owned.into_raw();
    assert_eq!(format!("{moved:?}"), expected);
    let mut target = MaybeUninit::uninit();
    // SAFETY: valid for writes, and nothing is there.
    unsafe { take(&mut moved).unwrap().export_to(target.as_mut_ptr()) };
    // SAFETY: the export initialised it.
    let exported = unsafe { target.assume_init() };
    assert_eq!(format!("{exported:?}"), expected);

    source.array.release = exported.array.release;
    assert_eq!(format!("{source:?}"), expected, "the source has lost its release and nothing more");
    assert_eq!(released.get(), 0);
}

/// C30: flags are 64 bits, and a move keeps the unknown ones.
#[test]
fn a_move_keeps_unknown_flags() {
    let mut source = schema(c"i").flags(0x4000_0000_0000_0047).build();
    let owned = take(&mut source).unwrap();
    assert_eq!(owned.as_raw().flags, 0x4000_0000_0000_0047);
}

/// S5, B6: the private data is passed on as it is, and never looked at.
#[test]
fn private_data_stays_the_producers() {
    unsafe extern "C" fn release(this: *mut ArrowArrayStream) {
        // SAFETY: valid for writes, as every released struct is.
        unsafe { (*this).release = None };
    }
    let mut raw = ArrowArrayStream::released();
    raw.release = Some(release);
    raw.private_data = nowhere();
    let owned = own(raw);
    assert_eq!(owned.as_raw().private_data, nowhere());
    assert_eq!(owned.into_raw().private_data, nowhere());
}

/// C33: made on one thread, released on another.
#[test]
fn release_on_another_thread() {
    fn test<T: Bare>()
    where
        Owned<T>: Send,
    {
        let released = Counter::new();
        let owned = own(T::bare(&released, false));
        thread::scope(|scope| {
            scope.spawn(move || drop(owned));
        });
        assert_eq!(released.get(), 1);
    }
    for_each_struct!(test);
}

/// C33: released by a thread that is about to exit, in the destructor of a thread-local value.
#[test]
fn release_on_a_thread_that_is_exiting() {
    thread_local! {
        static KEPT: Cell<Option<(OwnedSchema, OwnedDeviceArray)>> = const { Cell::new(None) };
    }
    let [schemas, arrays, events] = [Counter::new(), Counter::new(), Counter::new()];
    let cuda = Device::new(ArrowDeviceType::CUDA, 0);
    let kept = (
        schema(c"+s").child(schema(c"i").counted(&schemas)).counted(&schemas).own(),
        own(on_device(array(0).counted(&arrays), cuda, Some(Event::new(nowhere(), &events)))),
    );
    thread::spawn(move || KEPT.set(Some(kept))).join().unwrap();
    assert_eq!((schemas.get(), arrays.get(), events.get()), (2, 1, 1));
}

/// C33, D14: an array can be read from several threads at once.
#[test]
fn arrays_are_read_from_several_threads() {
    let owned: OwnedArray = array(2).child(array(2).nulls(1)).own();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let child = owned.view().unwrap().child(0).unwrap();
                assert_eq!(child.null_count(), Some(1));
            });
        }
    });
}

/// B3: what a release leaves in the struct is not read: here a null `release` beside nonsense.
#[test]
fn nothing_is_read_after_release() {
    let released = Counter::new();
    let mut raw = array(1).child(array(1).counted(&released)).counted(&released).build();
    // SAFETY: a live struct of this test's own, and nothing of it is used.
    unsafe { Release::release(&raw mut raw) };
    assert_eq!((raw.length, raw.children), (i64::MIN, nowhere().cast()), "the stub spoils the struct");
    assert!(take(&mut raw).is_err());
    assert_eq!(released.get(), 2);
}
