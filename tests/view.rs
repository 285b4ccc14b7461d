//! Reading structs: what may be null, unknown, unaligned or not UTF-8, and is no error.

mod common;

use core::ptr;

use arrow_device_abi::raw::{ArrowArray, ArrowSchema};
use arrow_device_abi::{Metadata, OwnedSchema, ViewError};

use common::{Counter, Stub, array, nowhere, schema};

/// B7, C7: buffers and children of nothing: null pointers are empty slices, and the release runs once.
#[test]
fn null_pointers_of_nothing_are_empty() {
    let released = Counter::new();
    let empty: [(Stub<ArrowArray>, usize); 4] = [
        (array(0).no_buffer().no_buffer().no_buffer(), 3),
        (array(0).no_buffer().no_buffer(), 2),
        (array(0), 0),
        (array(0).no_buffer(), 1),
    ];
    for (stub, n_buffers) in empty {
        let owned = stub.counted(&released).own();
        assert_eq!(owned.as_raw().buffers.is_null(), n_buffers == 0);
        assert!(owned.as_raw().children.is_null());
        let view = owned.view().unwrap();
        assert_eq!((view.length(), view.null_count(), view.n_children()), (0, Some(0), 0));
        assert_eq!(view.buffers(), vec![ptr::null(); n_buffers]);
        assert_eq!(view.children().len(), 0);
        for index in 0..n_buffers {
            // SAFETY: nothing is read.
            assert!(unsafe { view.buffer_as::<u64>(index, 0) }.unwrap().is_empty());
        }
    }
    assert_eq!(released.get(), 4);
}

/// B7: the pointer arrays of no buffers and no children may also dangle.
#[test]
fn pointers_to_nothing_may_dangle() {
    let mut raw = array(0).build();
    (raw.buffers, raw.children) = (nowhere().cast(), nowhere().cast());
    let owned = common::own(raw);
    let view = owned.view().unwrap();
    assert!(view.buffers().is_empty());
    assert_eq!(view.children().len(), 0);

    let mut raw = schema(c"n").build();
    raw.children = nowhere().cast();
    assert_eq!(common::own(raw).view().unwrap().n_children(), 0);
}

/// B7: a buffer of no bytes may be null or dangle; one that has values may not be null.
#[test]
fn a_buffer_of_nothing_may_be_anywhere() {
    let owned = array(0).no_buffer().buffer_at(nowhere()).own();
    let view = owned.view().unwrap();
    for index in 0..2 {
        // SAFETY: nothing is read.
        let empty = unsafe { view.buffer_as::<i32>(index, 0) };
        assert!(empty.unwrap().is_empty());
    }
    // SAFETY: a null buffer is not read.
    assert_eq!(unsafe { view.buffer_as::<u8>(0, 1) }, Err(ViewError::Null { field: "buffer" }));
    for count in [0, 1] {
        let error = ViewError::OutOfRange { field: "buffers", index: 2, count: 2 };
        // SAFETY: a buffer that is not there is not read.
        assert_eq!(unsafe { view.buffer_as::<u8>(2, count) }, Err(error));
    }
}

/// B8, C23, C24: −1 is "not counted", with a bitmap or without.
#[test]
fn an_unknown_null_count_is_none() {
    let with_bitmap = array(2).nulls(-1).buffer(&[0b01u8]).buffer(&[1i32, 2]).own();
    assert_eq!(with_bitmap.view().unwrap().null_count(), None);
    let without = array(3).nulls(-1).no_buffer().buffer(&[1i32, 2, 3]).own();
    assert_eq!(without.view().unwrap().null_count(), None);
}

/// B8, C24: a null count is at most the length, and 0 without a bitmap.
#[test]
fn null_counts_within_bounds() {
    let count = |stub: Stub<ArrowArray>| stub.own().view().map(|view| view.null_count());
    assert_eq!(count(array(2).nulls(0).no_buffer().no_buffer()), Ok(Some(0)));
    assert_eq!(count(array(2).nulls(2).buffer(&[0u8]).no_buffer()), Ok(Some(2)));
    assert_eq!(count(array(2).nulls(2)), Ok(Some(2)), "the null layout has no bitmap");
    assert_eq!(count(array(2).nulls(2).no_buffer()), Ok(Some(2)), "some give it a bitmap that is null");
    for (stub, value) in [
        (array(2).nulls(3).buffer(&[0u8]), 3),
        (array(2).nulls(1).no_buffer(), 1),
        (array(2).nulls(2).no_buffer().buffer(&[1i32, 2]), 2),
        (array(2).nulls(2).no_buffer().child(array(2)), 2),
        (array(2).nulls(3), 3),
        (array(0).nulls(1).buffer(&[0u8]), 1),
        (array(2).nulls(i64::MAX).buffer(&[0u8]), i64::MAX),
    ] {
        let error = count(stub).unwrap_err();
        assert_eq!(error, ViewError::NullCount { value });
        let text = format!("null_count is {value}, more than the elements or without a validity bitmap");
        assert_eq!(error.to_string(), text);
    }
    for value in [-2, i64::MIN] {
        let error = count(array(2).nulls(value).buffer(&[0u8])).unwrap_err();
        assert_eq!(error, ViewError::NullCount { value });
        assert_eq!(error.to_string(), format!("null_count is neither a count nor -1: {value}"));
    }
}

#[repr(align(16))]
struct Aligned([u8; 32]);

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(16))]
struct Wide(u128);

/// C27: a buffer at any address is imported; reading it as a type that does not fit there is an error, as bytes not.
#[test]
fn unaligned_buffers_are_errors_when_read() {
    static BYTES: Aligned = Aligned([7; 32]);
    let at = |index: usize| BYTES.0[index..].as_ptr().cast();
    let owned = array(1).buffer_at(at(0)).buffer_at(at(1)).buffer_at(at(8)).own();
    let view = owned.view().unwrap();
    // SAFETY: each buffer has 24 bytes, any of them are integers.
    unsafe {
        assert_eq!(view.buffer_as::<i32>(1, 1), Err(ViewError::Misaligned { buffer: 1, alignment: 4 }));
        assert_eq!(view.buffer_as::<Wide>(2, 1), Err(ViewError::Misaligned { buffer: 2, alignment: 16 }));
        assert_eq!(view.buffer_as::<u64>(2, 2).unwrap(), [0x0707_0707_0707_0707; 2]);
        assert_eq!(view.buffer_as::<u8>(1, 3).unwrap(), [7; 3]);
        assert_eq!(view.buffer_as::<[u8; 4]>(1, 2).unwrap(), [[7; 4]; 2]);
        assert_eq!(view.buffer_as::<Wide>(0, 2).unwrap().len(), 2);
        assert!(view.buffer_as::<i32>(1, 0).unwrap().is_empty());
    }
    let error = ViewError::Misaligned { buffer: 1, alignment: 4 };
    assert_eq!(error.to_string(), "buffer 1 is not aligned to 4 bytes");
}

/// C30: each flag is a bit of its own, of 64; an unknown one disturbs nothing.
#[test]
fn flags() {
    let seen = |flags| {
        let owned = schema(c"i").flags(flags).own();
        let view = owned.view().unwrap();
        assert_eq!(view.flags(), flags);
        [view.is_dictionary_ordered(), view.is_nullable(), view.is_map_keys_sorted()]
    };
    assert_eq!(seen(0), [false; 3]);
    assert_eq!(seen(1), [true, false, false]);
    assert_eq!(seen(2), [false, true, false]);
    assert_eq!(seen(4), [false, false, true]);
    assert_eq!(seen(7), [true; 3]);
    assert_eq!(seen(64), [false; 3]);
    assert_eq!(seen(64 | 2), [false, true, false]);
    assert_eq!(seen(-1), [true; 3]);
    assert_eq!(seen(i64::MIN), [false; 3]);
    assert_eq!(seen(2 << 32), [false; 3]);
}

/// D15: names may be missing, empty, or any UTF-8.
#[test]
fn names() {
    let name = |stub: Stub<ArrowSchema>| {
        let owned = stub.own();
        let view = owned.view().unwrap();
        (view.name().unwrap().map(str::to_owned), view.name_bytes().map(<[u8]>::to_vec))
    };
    assert_eq!(name(schema(c"i")), (None, None));
    assert_eq!(name(schema(c"i").name(c"")), (Some(String::new()), Some(Vec::new())));
    let text = "größe 📏";
    assert_eq!(name(schema(c"i").name(c"größe 📏")), (Some(text.into()), Some(text.as_bytes().into())));
}

/// Native numbers and bytes, as the interface encodes metadata.
fn encode(count: i32, pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = count.to_ne_bytes().to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend((text.len() as i32).to_ne_bytes());
        bytes.extend(*text);
    }
    bytes
}

fn with_metadata(bytes: &[u8], at: usize) -> OwnedSchema {
    schema(c"i").metadata(bytes, at).own()
}

/// B9, C29: pairs come as raw bytes, in order, at any alignment.
#[test]
fn metadata_is_read_as_bytes_at_any_alignment() {
    let pairs: [(&[u8], &[u8]); 4] = [(b"k", b"\xFF\xFE"), (b"", b""), (b"k", b"again"), (b"long key", b"v")];
    for at in [0, 1, 2, 3, 5] {
        let owned = with_metadata(&encode(4, &pairs), at);
        assert_eq!(owned.as_raw().metadata as usize % 16, at);
        let metadata = owned.view().unwrap().metadata().unwrap();
        assert_eq!((metadata.len(), metadata.is_empty()), (4, false));
        assert_eq!(metadata.iter().collect::<Vec<_>>(), pairs);
        assert_eq!(metadata.into_iter().len(), 4);
        assert_eq!(metadata.get(b"k"), Some(&b"\xFF\xFE"[..]), "the first of two");
        assert_eq!(metadata.get(b""), Some(&b""[..]));
        assert_eq!(metadata.get(b"v"), None);
        let debug = format!("{metadata:?}");
        assert!(debug.starts_with("{\"k\": \"\u{FFFD}\u{FFFD}\", "), "{debug}");
    }
}

/// B9: the iterator knows how many pairs are left, and stays at its end.
#[test]
fn metadata_pairs_are_counted_down() {
    let owned = with_metadata(&encode(2, &[(b"a", b"1"), (b"b", b"2")]), 0);
    let metadata = owned.view().unwrap().metadata().unwrap();
    let mut pairs = metadata.iter();
    assert_eq!((pairs.len(), pairs.next()), (2, Some((&b"a"[..], &b"1"[..]))));
    assert_eq!((pairs.len(), pairs.next()), (1, Some((&b"b"[..], &b"2"[..]))));
    assert_eq!((pairs.len(), pairs.next(), pairs.next()), (0, None, None));
}

/// C29: no metadata and metadata without pairs are the same.
#[test]
fn no_metadata_equals_no_pairs() {
    let none = schema(c"i").own();
    let none = none.view().unwrap().metadata().unwrap();
    let empty = with_metadata(&encode(0, &[]), 1);
    let empty = empty.view().unwrap().metadata().unwrap();
    assert!(none.is_empty() && empty.is_empty());
    assert_eq!(none, empty);
    assert_eq!(none, Metadata::default());
    assert_eq!(empty.get(b""), None);

    let one = with_metadata(&encode(1, &[(b"a", b"1")]), 0);
    let same = with_metadata(&encode(1, &[(b"a", b"1")]), 3);
    let other = with_metadata(&encode(1, &[(b"a", b"2")]), 0);
    let [one, same, other] = [&one, &same, &other].map(|owned| owned.view().unwrap().metadata().unwrap());
    assert_eq!(one, same);
    assert_ne!(one, other);
    assert_ne!(one, none);
}

/// C29: a negative count or length is an error that says where and what.
#[test]
fn negative_numbers_in_metadata_are_errors() {
    let negative = (-1i32).to_ne_bytes();
    let key = [&1i32.to_ne_bytes()[..], &negative].concat();
    let value = [&1i32.to_ne_bytes()[..], &1i32.to_ne_bytes(), b"k", &i32::MIN.to_ne_bytes()].concat();
    let second = [&encode(2, &[(b"ab", b"c")])[..], &negative].concat();
    let cases: [(&[u8], usize, i32); 5] = [
        (&negative, 0, -1),
        (&i32::MIN.to_ne_bytes(), 0, i32::MIN),
        (&key, 4, -1),
        (&value, 9, i32::MIN),
        (&second, 15, -1),
    ];
    for (bytes, at, number) in cases {
        let owned = with_metadata(bytes, 1);
        let error = owned.view().unwrap().metadata().unwrap_err();
        assert_eq!(error, ViewError::Metadata { at, value: number });
        assert_eq!(
            error.to_string(),
            format!("metadata is malformed: the count or length at byte {at} is {number}")
        );
    }
}
