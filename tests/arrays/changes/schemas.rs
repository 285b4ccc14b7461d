//! Changes of the schema.

use core::ffi::{CStr, c_char};
use core::ptr;

use arrow_device_abi::raw::ArrowSchema;

use super::Breaks::{Nothing, Schema};
use super::{Apply, Change};

const fn schema(name: &'static str, when: fn(&ArrowSchema) -> bool, then: fn(&mut ArrowSchema)) -> Change {
    Change { name, breaks: Schema, apply: Apply::Schema(when, then) }
}

pub const ALL: &[Change] = &[
    Change {
        breaks: Nothing,
        ..schema("fields without a name", has_children, |raw| child(raw).name = ptr::null())
    },
    schema("a format that nobody knows", any, |raw| set(raw, c"?")),
    schema("an empty format", any, |raw| set(raw, c"")),
    schema("a unit of no type", any, |raw| set(raw, c"ttx")),
    schema("a decimal without digits", |raw| starts(raw, c"d:"), |raw| set(raw, c"d:0,2")),
    schema("a negative width", |raw| starts(raw, c"w:"), |raw| set(raw, c"w:-1")),
    schema("a type id twice", |raw| starts(raw, c"+us"), |raw| set(raw, c"+us:4,4")),
    schema("an id too few", |raw| starts(raw, c"+ud"), |raw| set(raw, c"+ud:4")),
    schema("a format that is null", any, |raw| raw.format = ptr::null()),
    schema("a name that is not UTF-8", any, |raw| raw.name = c"\xFF".as_ptr()),
    schema("metadata of less than no pairs", any, |raw| raw.metadata = NEGATIVE.as_ptr().cast::<c_char>()),
    schema("metadata with a key of less than no bytes", any, |raw| {
        raw.metadata = NEGATIVE_KEY.as_ptr().cast::<c_char>();
    }),
    schema(
        "a type with a child less",
        |raw| has_children(raw) && !starts(raw, c"+s"),
        |raw| raw.n_children -= 1,
    ),
    schema("a type with a child that is null", has_children, |raw| {
        // SAFETY: a live schema has as many children as it says.
        unsafe { raw.children.write(ptr::null_mut()) };
    }),
    schema("indices that are no integers", |raw| !raw.dictionary.is_null(), |raw| set(raw, c"g")),
    schema("run ends that are no integers", |raw| starts(raw, c"+r"), |raw| set(child(raw), c"g")),
    schema("run ends of a byte", |raw| starts(raw, c"+r"), |raw| set(child(raw), c"c")),
    schema("entries that are no struct", |raw| starts(raw, c"+m"), |raw| set(child(raw), c"+us:0,1")),
];

static NEGATIVE: [i32; 1] = [-1];
static NEGATIVE_KEY: [i32; 2] = [1, -1];

fn any(_: &ArrowSchema) -> bool {
    true
}

fn has_children(raw: &ArrowSchema) -> bool {
    raw.n_children > 0
}

fn starts(raw: &ArrowSchema, prefix: &CStr) -> bool {
    // SAFETY: the format of a live schema ends in NUL.
    unsafe { CStr::from_ptr(raw.format) }.to_bytes().starts_with(prefix.to_bytes())
}

fn set(raw: &mut ArrowSchema, format: &'static CStr) {
    raw.format = format.as_ptr();
}

fn child(raw: &mut ArrowSchema) -> &mut ArrowSchema {
    // SAFETY: a live schema of these types has one child at least.
    unsafe { &mut **raw.children }
}
