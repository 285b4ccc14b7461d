//! The proof that `raw` is C's, made each time the crate is compiled, on the target it is compiled for.
//!
//! Three independent parts. Against the C header, as bindgen reads it: size, alignment, offset and type of every
//! field, no field more on either side, every constant. Against numbers: what C compilers say for each data model,
//! since two Rust structs can agree and both be wrong. And of the traits: these types own nothing.
//!
//! `build.rs` sets `arrow_device_abi_lacks` for what a foreign header does not define, and says so in a warning.

// Items that only `const _` uses count as dead for Rust 1.85.
#![allow(dead_code)]

use core::ffi::{c_char, c_int, c_void};
use core::mem::{needs_drop, offset_of};

use static_assertions::{assert_impl_all, assert_not_impl_any};

use super::data::{for_each_flag, for_each_statistics_key};
use super::device::for_each_device_type;
use crate::raw;

#[rustfmt::skip]
#[allow(
    missing_docs, missing_debug_implementations, non_camel_case_types, non_snake_case, non_upper_case_globals,
    unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::restriction,
)]
mod c {
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
    #[cfg(not(feature = "bindgen"))]
    include!("bindings.rs");
}

/// The C type that a Rust type stands for. A type with no impl cannot be a field: `isize` has none.
trait Mirror {
    type C;
}

macro_rules! mirror_itself {
    ($($ty:ty),+) => { $(impl Mirror for $ty { type C = Self; })+ };
}
mirror_itself!(c_char, c_int, i64, c_void, ());

impl Mirror for raw::ArrowDeviceType {
    type C = i32;
}
impl<T: Mirror> Mirror for *const T {
    type C = *const T::C;
}
impl<T: Mirror> Mirror for *mut T {
    type C = *mut T::C;
}
impl<T: Mirror, const N: usize> Mirror for [T; N] {
    type C = [T::C; N];
}

macro_rules! mirror_callback {
    ($($arg:ident),+) => {
        impl<$($arg: Mirror,)+ R: Mirror> Mirror for Option<unsafe extern "C" fn($($arg),+) -> R> {
            type C = Option<unsafe extern "C" fn($($arg::C),+) -> R::C>;
        }
    };
}
mirror_callback!(A1);
mirror_callback!(A1, A2);
mirror_callback!(A1, A2, A3);
mirror_callback!(A1, A2, A3, A4);

/// Compiles only if the field that `theirs` projects has the C type of the one that `ours` projects.
///
/// Needed beside the sizes: `isize` and `i64` have one size on LP64, `*const T` and `*mut T` everywhere.
const fn same_type<S, F: Mirror, C>(_ours: fn(&S) -> &F, _theirs: fn(&C) -> &F::C) {}

macro_rules! same_struct {
    ($($lacks:literal $name:ident { $($field:ident),+ $(,)? })+) => { $(
        #[cfg(not(arrow_device_abi_lacks = $lacks))]
        impl Mirror for raw::$name {
            type C = c::$name;
        }

        #[cfg(not(arrow_device_abi_lacks = $lacks))]
        const _: () = {
            $(same_type(|ours: &raw::$name| &ours.$field, |theirs: &c::$name| &theirs.$field);)+
            $(assert!(
                offset_of!(raw::$name, $field) == offset_of!(c::$name, $field),
                concat!("offset of ", $lacks, "::", stringify!($field), " differs from the C header's")
            );)+
            assert!(
                size_of::<raw::$name>() == size_of::<c::$name>(),
                concat!("size of ", $lacks, " differs from the C header's")
            );
            assert!(
                align_of::<raw::$name>() == align_of::<c::$name>(),
                concat!("alignment of ", $lacks, " differs from the C header's")
            );
            // A pattern without `..`: a field more on either side no longer compiles.
            const fn no_field_more(ours: &raw::$name, theirs: &c::$name) {
                let raw::$name { $($field: _),+ } = ours;
                let c::$name { $($field: _),+ } = theirs;
            }
        };
    )+ };
}
same_struct! {
    "ArrowSchema" ArrowSchema { format, name, metadata, flags, n_children, children, dictionary, release, private_data }
    "ArrowArray" ArrowArray {
        length, null_count, offset, n_buffers, n_children, buffers, children, dictionary, release, private_data
    }
    "ArrowArrayStream" ArrowArrayStream { get_schema, get_next, get_last_error, release, private_data }
    "ArrowDeviceArray" ArrowDeviceArray { array, device_id, device_type, sync_event, reserved }
    "ArrowDeviceArrayStream" ArrowDeviceArrayStream {
        device_type, get_schema, get_next, get_last_error, release, private_data
    }
    "ArrowAsyncTask" ArrowAsyncTask { extract_data, private_data }
    "ArrowAsyncProducer" ArrowAsyncProducer { device_type, request, cancel, additional_metadata, private_data }
    "ArrowAsyncDeviceStreamHandler" ArrowAsyncDeviceStreamHandler {
        on_schema, on_next_task, on_error, release, producer, private_data
    }
}

macro_rules! same_integers {
    ($($(#[$doc:meta])* $lacks:literal $name:ident $($short:ident)? = $value:literal;)+) => { $(
        #[cfg(not(arrow_device_abi_lacks = $lacks))]
        const _: () = assert!(
            $value == c::$name as i64,
            concat!($lacks, " differs from the C header's")
        );
    )+ };
}
for_each_flag!(same_integers);
for_each_device_type!(same_integers);

const fn same_text(a: &[u8], b: &[u8]) -> bool {
    match (a, b) {
        ([], []) => true,
        ([x, a @ ..], [y, b @ ..]) => *x == *y && same_text(a, b),
        _ => false,
    }
}

macro_rules! same_texts {
    ($($lacks:literal $name:ident = $value:literal;)+) => { $(
        #[cfg(not(arrow_device_abi_lacks = $lacks))]
        const _: () = assert!(same_text($value.to_bytes(), c::$name.to_bytes()), concat!($lacks, " differs from the C header's"));
    )+ };
}
for_each_statistics_key!(same_texts);

/// Which column of the tables below holds: the size of a pointer and the alignment of `int64_t` decide, and nothing
/// less does (i686 and armv7 are both 32-bit and differ).
const DATA_MODEL: usize = match (size_of::<usize>(), align_of::<i64>()) {
    (8, 8) => 0, // LP64 and LLP64
    (4, 4) => 1, // ILP32, int64_t aligned to 4: i686 System V
    (4, 8) => 2, // ILP32, int64_t aligned to 8: armv7, wasm32, i686 Windows
    _ => panic!("unknown data model: measure the structs with a C compiler and add a column here"),
};

macro_rules! numbers {
    ($($name:ident $size:expr, $align:expr; { $($field:ident $offset:expr),+ $(,)? })+) => { $(
        const _: () = {
            assert!(
                size_of::<raw::$name>() == $size[DATA_MODEL],
                concat!("size of ", stringify!($name), " is not the data model's")
            );
            assert!(
                align_of::<raw::$name>() == $align[DATA_MODEL],
                concat!("alignment of ", stringify!($name), " is not the data model's")
            );
            $(assert!(
                offset_of!(raw::$name, $field) == $offset[DATA_MODEL],
                concat!("offset of ", stringify!($name), "::", stringify!($field), " is not the data model's")
            );)+
        };
    )+ };
}

const WIDE: [usize; 3] = [8, 4, 8];
const POINTER: [usize; 3] = [8, 4, 4];

numbers! {
    ArrowSchema [72, 44, 48], WIDE; {
        format [0, 0, 0], name [8, 4, 4], metadata [16, 8, 8], flags [24, 12, 16], n_children [32, 20, 24],
        children [40, 28, 32], dictionary [48, 32, 36], release [56, 36, 40], private_data [64, 40, 44],
    }
    ArrowArray [80, 60, 64], WIDE; {
        length [0, 0, 0], null_count [8, 8, 8], offset [16, 16, 16], n_buffers [24, 24, 24], n_children [32, 32, 32],
        buffers [40, 40, 40], children [48, 44, 44], dictionary [56, 48, 48], release [64, 52, 52],
        private_data [72, 56, 56],
    }
    ArrowArrayStream [40, 20, 20], POINTER; {
        get_schema [0, 0, 0], get_next [8, 4, 4], get_last_error [16, 8, 8], release [24, 12, 12],
        private_data [32, 16, 16],
    }
    ArrowDeviceArray [128, 100, 104], WIDE; {
        array [0, 0, 0], device_id [80, 60, 64], device_type [88, 68, 72], sync_event [96, 72, 76],
        reserved [104, 76, 80],
    }
    ArrowDeviceArrayStream [48, 24, 24], POINTER; {
        device_type [0, 0, 0], get_schema [8, 4, 4], get_next [16, 8, 8], get_last_error [24, 12, 12],
        release [32, 16, 16], private_data [40, 20, 20],
    }
    ArrowAsyncTask [16, 8, 8], POINTER; { extract_data [0, 0, 0], private_data [8, 4, 4] }
    ArrowAsyncProducer [40, 20, 20], POINTER; {
        device_type [0, 0, 0], request [8, 4, 4], cancel [16, 8, 8], additional_metadata [24, 12, 12],
        private_data [32, 16, 16],
    }
    ArrowAsyncDeviceStreamHandler [48, 24, 24], POINTER; {
        on_schema [0, 0, 0], on_next_task [8, 4, 4], on_error [16, 8, 8], release [24, 12, 12],
        producer [32, 16, 16], private_data [40, 20, 20],
    }
}
const _: () = assert!(
    size_of::<raw::ArrowDeviceType>() == 4 && align_of::<raw::ArrowDeviceType>() == 4,
    "ArrowDeviceType is not an int32_t"
);

macro_rules! owns_nothing {
    ($($name:ident),+ $(,)?) => { $(
        assert_not_impl_any!(raw::$name: Copy, Clone, Send, Sync);
        const _: () = assert!(!needs_drop::<raw::$name>(), concat!(stringify!($name), " must not drop"));
    )+ };
}
owns_nothing!(
    ArrowSchema,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowAsyncTask,
    ArrowAsyncProducer,
    ArrowAsyncDeviceStreamHandler,
);
// The integer inside: its size would be right without its sign.
const _: fn(&raw::ArrowDeviceType) -> &<raw::ArrowDeviceType as Mirror>::C = |device_type| &device_type.0;

// Never called, so never linked. Rust happens to lay out some structs as C does without `repr(C)`: this lint asks for
// the promise.
#[deny(improper_ctypes)]
#[allow(dead_code)]
unsafe extern "C" {
    fn arrow_device_abi_as_c_sees_it(
        _: raw::ArrowSchema,
        _: raw::ArrowArray,
        _: raw::ArrowArrayStream,
        _: raw::ArrowDeviceArray,
        _: raw::ArrowDeviceArrayStream,
        _: raw::ArrowAsyncTask,
        _: raw::ArrowAsyncProducer,
        _: raw::ArrowAsyncDeviceStreamHandler,
        _: raw::ArrowDeviceType,
    );
}

assert_impl_all!(raw::ArrowDeviceType: Copy, Send, Sync, Eq, Ord, core::hash::Hash);
