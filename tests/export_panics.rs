//! Panics of the user's code end before C (C9). Without feature `std` there is nothing that could catch them, and they
//! abort.
#![cfg(feature = "std")]

mod common;
mod export;

use core::fmt;
use std::error::Error;
use std::panic::panic_any;
use std::thread;

use arrow_device_abi::errno::EIO;
use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream};
use arrow_device_abi::{ArrayNode, Owned, StreamFailure};

use common::Counter;
use export::stream::{Consumer, Produced, for_both_streams, schema};
use export::{leaf, structure};

/// Counts that it is dropped, then panics.
struct Panics(Counter, fn());

impl Drop for Panics {
    fn drop(&mut self) {
        self.0.add();
        (self.1)();
    }
}

/// A payload that panics when it is dropped itself. That second payload is let go, so it is one of no size.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic_any(());
    }
}

const PANICS: [fn(); 4] = [
    || panic!("a literal"),
    || panic!("a {}", String::from("text")),
    || panic_any(7_u8),
    || panic_any(PanicsAgain),
];

/// A consumer as C is: a panic that came out of the release would abort here.
extern "C" fn consume(array: *mut ArrowArray) {
    // SAFETY: the caller passes a live array.
    unsafe { (*array).release.unwrap()(array) };
}

/// C9: the release returns and has done all that it does, whatever the payload; other trees know nothing of it.
#[test]
fn a_panic_of_the_keep_alive() {
    for panics in PANICS {
        let values = |byte| leaf("C", 2, [None, Some(vec![byte, byte])]);
        let (tree, others) = (structure(2, [values(1), values(2)]), Counter::new());
        let mut other = tree.export(&others);
        let other_child = other.take_child(1).unwrap();

        let (leaf, dropped) = (ArrayNode::default(), Counter::new());
        let node = ArrayNode { children: &[leaf, leaf], ..leaf };
        // SAFETY: the null layout has no buffers.
        let mut array = unsafe { node.export(Panics(dropped.clone(), panics)) }.unwrap();
        let child = array.take_child(1).unwrap();
        for (array, gone) in [(array, 0), (child, 1)] {
            let mut array = array.into_raw();
            consume(&raw mut array);
            assert!(array.is_released());
            assert_eq!(dropped.get(), gone);
        }

        drop(other);
        tree.children[1].assert_read_by(other_child.view().unwrap());
        drop(other_child);
        assert_eq!(others.get(), 1);
    }
}

/// C9: what the panic left of the keep-alive is dropped like anywhere else: its other fields go.
#[test]
fn a_panic_leaves_the_other_fields_to_be_dropped() {
    for panics in PANICS {
        let (first, second) = (Counter::new(), Counter::new());
        let keep = (Panics(first.clone(), panics), Panics(second.clone(), || ()));
        // SAFETY: the null layout has no buffers.
        drop(unsafe { ArrayNode::default().export(keep) }.unwrap());
        assert_eq!((first.get(), second.get()), (1, 1));
    }
}

/// C9: an array dropped because its owner unwinds, whose keep-alive panics too.
#[test]
fn a_panic_during_another() {
    for panics in PANICS {
        let dropped = Counter::new();
        let inside = dropped.clone();
        let thread = thread::spawn(move || {
            // SAFETY: the null layout has no buffers.
            let _array = unsafe { ArrayNode::default().export(Panics(inside, panics)) }.unwrap();
            panic!("of the consumer");
        });
        let payload = thread.join().unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"of the consumer"));
        assert_eq!(dropped.get(), 1);
    }
}

type Next<S> = fn() -> Option<<S as Produced>::Owned>;

/// An iterator whose `next` and `Drop` do what they are told to.
struct Acts<S: Produced> {
    next: Next<S>,
    _drop: Panics,
}

impl<S: Produced> Iterator for Acts<S> {
    type Item = Result<S::Owned, StreamFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next)().map(Ok)
    }
}

fn acting<S: Produced>(next: Next<S>, drop: fn(), ended: &Counter) -> Consumer<S> {
    Consumer::new(S::from_items(schema(), Acts::<S> { next, _drop: Panics(ended.clone(), drop) }))
}

/// C9, S4: a panic is a failure like any other, with its text if it has one. The stream can be asked on, and be
/// released.
#[test]
fn a_panic_of_the_iterator() {
    fn test<S: Produced>() {
        let panics: [(Next<S>, &str); 5] = [
            (|| panic!("a literal"), "a literal"),
            (|| panic!("a {}", String::from("text")), "a text"),
            (|| panic!("a\0b"), "a\u{fffd}b"),
            (|| panic_any(7_u8), "no text"),
            (|| panic_any(PanicsAgain), "no text"),
        ];
        for (next, text) in panics {
            let ended = Counter::new();
            let mut consumer = acting::<S>(next, || (), &ended);
            for _ in 0..2 {
                assert_eq!(consumer.next_length(), Err(EIO));
                let text = format!("the producer of the stream panicked: {text}");
                assert_eq!(consumer.last_error(), Some(text));
                assert_eq!(ended.get(), 1);
            }
            drop(consumer.schema().unwrap());
            consumer.release();
        }
    }
    for_both_streams!(test);
}

/// C9: a panic of the iterator's `Drop` has nobody to tell, and disturbs nothing: at the end, after a failure, after
/// another panic, and at an early release.
#[test]
fn a_panic_of_the_iterators_drop() {
    fn test<S: Produced>(drops: fn()) {
        let ended = Counter::new();
        let mut consumer = acting::<S>(|| None, drops, &ended);
        for _ in 0..2 {
            assert_eq!(consumer.next_length(), Ok(-1));
            assert_eq!((consumer.last_error(), ended.get()), (None, 1));
        }
        consumer.release();

        let mut consumer = acting::<S>(|| panic!("in next"), drops, &ended);
        for _ in 0..2 {
            assert_eq!(consumer.next_length(), Err(EIO));
            assert!(consumer.last_error().unwrap().ends_with("panicked: in next"));
        }
        consumer.release();
        assert_eq!(ended.get(), 2);

        let released = |ended: &Counter| {
            let mut array: Owned<S::Array> = S::array(1, ended).into();
            // SAFETY: lent to C, which moves it out.
            drop(unsafe { Owned::take(array.as_mut_ptr()) }.unwrap());
            array.into()
        };
        let items = [Ok::<S::Owned, StreamFailure>(released(&ended))].into_iter();
        let keep = Panics(ended.clone(), drops);
        let items = items.inspect(move |_| _ = &keep);
        let mut consumer = Consumer::new(S::from_items(schema(), items));
        assert!(consumer.next_length().is_err());
        consumer.release();
        assert_eq!(ended.get(), 4);

        let mut consumer = acting::<S>(|| Some(S::array(1, &Counter::new())), drops, &ended);
        assert_eq!(consumer.next_length(), Ok(1));
        consumer.release();
        assert_eq!(ended.get(), 5);
    }
    for drops in PANICS {
        test::<ArrowArrayStream>(drops);
        test::<ArrowDeviceArrayStream>(drops);
    }
}

/// C9: the text of an error is the user's code too.
#[test]
fn a_panic_of_an_errors_text() {
    #[derive(Debug)]
    struct Unprintable;

    impl fmt::Display for Unprintable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("while printing")
        }
    }

    impl Error for Unprintable {}

    let mut consumer = Consumer::new(ArrowArrayStream::from_items(schema(), [Err(Unprintable)]));
    assert_eq!(consumer.next_length(), Err(EIO));
    assert!(consumer.last_error().unwrap().ends_with("panicked: while printing"));
    consumer.release();
}
