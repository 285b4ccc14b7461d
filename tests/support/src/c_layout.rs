//! What the C compiler makes of `include/arrow_device_abi.h`: the tables of `c/layout.c`.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};

#[repr(C)]
#[derive(Clone, Copy)]
struct Number {
    name: *const c_char,
    value: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    name: *const c_char,
    value: *const c_char,
}

unsafe extern "C" {
    fn layout_numbers(count: *mut usize) -> *const Number;
    fn layout_texts(count: *mut usize) -> *const Text;
}

/// Sizes, alignments, offsets, and the values of the integer macros.
///
/// # Panics
///
/// If the table has a name twice.
pub fn numbers() -> BTreeMap<&'static str, i64> {
    table(layout_numbers, |entry| (entry.name, entry.value))
}

/// The values of the text macros.
///
/// # Panics
///
/// If the table has a name twice.
pub fn texts() -> BTreeMap<&'static str, &'static str> {
    table(layout_texts, |entry| (entry.name, literal(entry.value)))
}

fn table<E: Copy + 'static, V>(
    get: unsafe extern "C" fn(*mut usize) -> *const E,
    read: fn(E) -> (*const c_char, V),
) -> BTreeMap<&'static str, V> {
    let mut count = 0;
    // SAFETY: the function gives a constant array and writes its length.
    let entries: &'static [E] = unsafe { std::slice::from_raw_parts(get(&raw mut count), count) };
    let mut table = BTreeMap::new();
    for entry in entries {
        let (name, value) = read(*entry);
        let name = literal(name);
        assert!(table.insert(name, value).is_none(), "{name} stands twice in c/layout.c");
    }
    table
}

fn literal(text: *const c_char) -> &'static str {
    // SAFETY: the tables hold literals, which end in NUL and live for ever.
    unsafe { CStr::from_ptr(text) }.to_str().expect("the tables are ASCII")
}
