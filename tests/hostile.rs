//! Structs that break the rules: errors with their own words, never a panic.

mod common;

use core::ffi::CStr;
use core::ptr;
use std::error::Error;

use arrow_device_abi::raw::{ArrowArray, ArrowSchema};
use arrow_device_abi::{ArrayView, SchemaView, ViewError};

use common::{Counter, array, nowhere, own, schema};

/// The error of a struct that was well until `spoil`; its release runs once all the same.
fn array_error(spoil: impl FnOnce(&mut ArrowArray)) -> ViewError {
    let released = Counter::new();
    let stub = array(3).nulls(1).offset(1).buffer(&[0b1010u8]).buffer(&[1i32, 2, 3, 4]);
    let mut raw = stub.child(array(1)).counted(&released).build();
    spoil(&mut raw);
    let owned = own(raw);
    let error = owned.view().unwrap_err();
    drop(owned);
    assert_eq!(released.get(), 1);
    error
}

fn schema_error(spoil: impl FnOnce(&mut ArrowSchema)) -> ViewError {
    let released = Counter::new();
    let mut raw = schema(c"+s").name(c"name").child(schema(c"i")).counted(&released).build();
    spoil(&mut raw);
    let owned = own(raw);
    let error = owned.view().unwrap_err();
    drop(owned);
    assert_eq!(released.get(), 1);
    error
}

/// B1: a negative count is an error with its name and number.
#[test]
fn negative_counts() {
    for value in [-1, -2, i64::MIN] {
        type Spoil = fn(&mut ArrowArray, i64);
        let fields: [(&str, Spoil); 4] = [
            ("length", |raw, value| raw.length = value),
            ("offset", |raw, value| raw.offset = value),
            ("n_buffers", |raw, value| raw.n_buffers = value),
            ("n_children", |raw, value| raw.n_children = value),
        ];
        for (field, spoil) in fields {
            let error = array_error(|raw| spoil(raw, value));
            assert_eq!(error, ViewError::Negative { field, value });
            assert_eq!(error.to_string(), format!("{field} is negative: {value}"));
        }
        let error = schema_error(|raw| raw.n_children = value);
        assert_eq!(error, ViewError::Negative { field: "n_children", value });
    }
}

/// B8: so is a null count that can be none.
#[test]
fn impossible_null_counts() {
    for value in [-2, 4, i64::MIN, i64::MAX] {
        assert_eq!(array_error(|raw| raw.null_count = value), ViewError::NullCount { value });
    }
}

/// B1: a length and an offset that no memory can hold.
#[test]
fn lengths_beyond_memory() {
    let error = array_error(|raw| raw.length = i64::MAX);
    let too_large = |field, value| ViewError::TooLarge { field, value };
    if cfg!(target_pointer_width = "64") {
        assert_eq!(error, too_large("offset + length", i64::MAX));
        assert_eq!(
            error.to_string(),
            "offset + length is more than this platform can address: 9223372036854775807"
        );
        let longest = array(i64::MAX).own();
        assert_eq!(longest.view().unwrap().length(), i64::MAX as usize);
    } else {
        assert_eq!(error, too_large("length", i64::MAX));
        assert_eq!(array(1 << 32).own().view().unwrap_err(), too_large("length", 1 << 32));
    }
    assert!(matches!(array_error(|raw| raw.offset = i64::MAX), ViewError::TooLarge { .. }));
}

/// B1: pointers where there must be something: null is an error with its name.
#[test]
fn missing_pointers() {
    let null = |field| ViewError::Null { field };
    for count in [1, 2, i64::MAX] {
        let buffers = |raw: &mut ArrowArray| (raw.n_buffers, raw.buffers) = (count, ptr::null_mut());
        let children = |raw: &mut ArrowArray| (raw.n_children, raw.children) = (count, ptr::null_mut());
        // A 32-bit platform can tell from the count alone.
        let too_large = |field| ViewError::TooLarge { field, value: count };
        let expected =
            |name, field| if usize::try_from(count).is_ok() { null(name) } else { too_large(field) };
        assert_eq!(array_error(buffers), expected("buffers", "n_buffers"));
        assert_eq!(array_error(children), expected("children", "n_children"));
        let children = |raw: &mut ArrowSchema| (raw.n_children, raw.children) = (count, ptr::null_mut());
        assert_eq!(schema_error(children), expected("children", "n_children"));
    }
    assert_eq!(schema_error(|raw| raw.format = ptr::null()), null("format"));
    assert_eq!(null("format").to_string(), "format is null");
}

/// B1: more pointers than memory can hold are an error, wherever they are said to be.
#[test]
fn counts_beyond_memory() {
    for value in [i64::MAX, i64::MAX / 4] {
        let is_too_large = |error| matches!(error, ViewError::TooLarge { value: seen, .. } if seen == value);
        assert!(is_too_large(array_error(|raw| raw.n_buffers = value)));
        assert!(is_too_large(array_error(|raw| raw.n_children = value)));
        assert!(is_too_large(schema_error(|raw| raw.n_children = value)));
    }
}

/// B1: a null or released child is an error, on its own: its siblings are still read.
#[test]
fn missing_children() {
    let raw = array(1).child(array(1)).child(array(1)).child(array(5)).build();
    let mut released = ArrowArray::released();
    // SAFETY: the stub has an array of three children.
    let (first, second) =
        unsafe { (raw.children.replace(ptr::null_mut()), raw.children.add(1).replace(&raw mut released)) };
    let mut owned = own(raw);
    let view = owned.view().unwrap();
    assert_eq!(view.child(0).unwrap_err(), ViewError::Null { field: "child" });
    assert_eq!(view.child(1).unwrap_err(), ViewError::Released);
    assert_eq!(view.child(2).unwrap().length(), 5);
    let out_of_range = ViewError::OutOfRange { field: "children", index: 3, count: 3 };
    assert_eq!(view.child(3).unwrap_err(), out_of_range);
    assert_eq!(out_of_range.to_string(), "children has no index 3: there are 3");
    assert_eq!(view.children().len(), 3);
    let seen: Vec<_> = view.children().map(|child| child.is_ok()).collect();
    assert_eq!(seen, [false, false, true]);
    assert_eq!(owned.take_child(0).unwrap_err(), ViewError::Null { field: "child" });
    assert_eq!(owned.take_child(1).unwrap_err(), ViewError::Released);

    // The stub releases what it made.
    // SAFETY: as above.
    unsafe {
        owned.as_raw().children.write(first);
        owned.as_raw().children.add(1).write(second);
    }
}

/// B1: what is wrong with a child or a dictionary is found when it is asked for, and by its own name.
#[test]
fn faults_below_the_top() {
    let dictionary = array(2).nulls(-9).buffer(&[0u8]);
    let owned = array(1).child(array(-4)).dictionary(dictionary).own();
    let view = owned.view().unwrap();
    assert_eq!(view.child(0).unwrap_err(), ViewError::Negative { field: "length", value: -4 });
    assert_eq!(view.dictionary().unwrap_err(), ViewError::NullCount { value: -9 });

    let mut raw = schema(c"c").build();
    let mut released = ArrowSchema::released();
    raw.dictionary = &raw mut released;
    let owned = own(raw);
    assert_eq!(owned.view().unwrap().dictionary().unwrap_err(), ViewError::Released);
}

/// C28: of three columns the second is bad: the others are read, and each is released once.
#[test]
fn one_bad_column_releases_all() {
    let [first, second, third] = [Counter::new(), Counter::new(), Counter::new()];
    let columns =
        [array(1).counted(&first).own(), array(-1).counted(&second).own(), array(3).counted(&third).own()];
    let lengths: Result<Vec<_>, _> =
        columns.into_iter().map(|column| column.view().map(|view| view.length())).collect();
    assert_eq!(lengths, Err(ViewError::Negative { field: "length", value: -1 }));
    assert_eq!([first, second, third].map(|counter| counter.get()), [1; 3]);
}

/// B1, D16: nothing but `release` is read of a released struct.
#[test]
fn released_structs() {
    let array = ArrowArray {
        length: -1,
        n_buffers: i64::MAX,
        n_children: 4,
        buffers: nowhere().cast(),
        children: nowhere().cast(),
        dictionary: nowhere().cast(),
        ..ArrowArray::released()
    };
    // SAFETY: released, so nothing has to be as it says.
    let error = unsafe { ArrayView::from_raw(&array) }.unwrap_err();
    assert_eq!(error, ViewError::Released);
    assert_eq!(error.to_string(), "the struct is released or was moved away");

    let schema = ArrowSchema {
        format: nowhere().cast(),
        name: nowhere().cast(),
        metadata: nowhere().cast(),
        n_children: 4,
        children: nowhere().cast(),
        dictionary: nowhere().cast(),
        ..ArrowSchema::released()
    };
    // SAFETY: as above.
    assert_eq!(unsafe { SchemaView::from_raw(&schema) }.unwrap_err(), ViewError::Released);
}

/// C29, D15: texts that are not UTF-8 are errors with the field's name, and their bytes can be had.
#[test]
fn texts_that_are_not_utf8() {
    let bad: &CStr = c"a\xFFb";
    let owned = schema(bad).name(bad).own();
    let view = owned.view().unwrap();
    let error = view.format().unwrap_err();
    assert_eq!(error, ViewError::NotUtf8 { field: "format" });
    assert_eq!(error.to_string(), "format is not UTF-8");
    assert_eq!(view.name(), Err(ViewError::NotUtf8 { field: "name" }));
    assert_eq!(view.format_bytes(), b"a\xFFb");
    assert_eq!(view.name_bytes(), Some(&b"a\xFFb"[..]));
}

/// D15: a format is any text, also none; what it means is not asked here.
#[test]
fn formats_of_no_type() {
    for format in [c"", c"?", c"+", c"tsu:\xC3\xA9"] {
        let owned = schema(format).own();
        assert_eq!(owned.view().unwrap().format().unwrap().as_bytes(), format.to_bytes());
    }
}

/// C25: less than three buffers are no view array.
#[test]
fn too_few_buffers_for_a_view_array() {
    for (stub, count) in [(array(0), 0), (array(0).no_buffer(), 1), (array(0).no_buffer().no_buffer(), 2)] {
        let owned = stub.own();
        let error = owned.view().unwrap().binary_view_buffers().unwrap_err();
        assert_eq!(error, ViewError::OutOfRange { field: "buffers", index: 2, count });
    }
}

/// B7: a buffer that is not there is an error, at any index.
#[test]
fn buffers_out_of_range() {
    let owned = array(1).no_buffer().own();
    let view = owned.view().unwrap();
    assert_eq!(view.buffer(0), Ok(ptr::null()));
    for index in [1, usize::MAX] {
        assert_eq!(view.buffer(index), Err(ViewError::OutOfRange { field: "buffers", index, count: 1 }));
    }
    let boxed: Box<dyn Error + Send + Sync> = Box::new(view.buffer(1).unwrap_err());
    assert_eq!(boxed.to_string(), "buffers has no index 1: there are 1");
}
