//! C's own numbers against Rust's, on the target that the tests run on, and the constants, codes and names. What
//! `src/raw/layout.rs` proves with bindgen's eyes and a table is asked of the C compiler itself here.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use arrow_device_abi::errno;
use arrow_device_abi::raw::*;
use arrow_device_abi_support::c_layout;

/// The fields of each struct, and no other: the pattern has no `..`.
macro_rules! structs {
    ($numbers:ident; $($name:ident { $($field:ident: $ty:ty),+ $(,)? })+) => { $(
        $numbers.insert(concat!("size of ", stringify!($name)), size_of::<$name>());
        $numbers.insert(concat!("alignment of ", stringify!($name)), align_of::<$name>());
        $(
            let offset = offset_of!($name, $field);
            $numbers.insert(concat!("offset of ", stringify!($name), "::", stringify!($field)), offset);
            $numbers.insert(concat!("size of ", stringify!($name), "::", stringify!($field)), size_of::<$ty>());
        )+
        let _: fn($name) = |$name { $($field),+ }| { $(let _: $ty = $field;)+ };
    )+ };
}

fn layout() -> BTreeMap<&'static str, usize> {
    let mut numbers = BTreeMap::new();
    structs! { numbers;
        ArrowSchema {
            format: *const c_char,
            name: *const c_char,
            metadata: *const c_char,
            flags: i64,
            n_children: i64,
            children: *mut *mut ArrowSchema,
            dictionary: *mut ArrowSchema,
            release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
            private_data: *mut c_void,
        }
        ArrowArray {
            length: i64,
            null_count: i64,
            offset: i64,
            n_buffers: i64,
            n_children: i64,
            buffers: *mut *const c_void,
            children: *mut *mut ArrowArray,
            dictionary: *mut ArrowArray,
            release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
            private_data: *mut c_void,
        }
        ArrowArrayStream {
            get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
            get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
            get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
            release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
            private_data: *mut c_void,
        }
        ArrowDeviceArray {
            array: ArrowArray,
            device_id: i64,
            device_type: ArrowDeviceType,
            sync_event: *mut c_void,
            reserved: [i64; 3],
        }
        ArrowDeviceArrayStream {
            device_type: ArrowDeviceType,
            get_schema: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut ArrowSchema) -> c_int>,
            get_next: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut ArrowDeviceArray) -> c_int>,
            get_last_error: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream) -> *const c_char>,
            release: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream)>,
            private_data: *mut c_void,
        }
        // X4: called ArrowArrayTask on the specification's page once.
        ArrowAsyncTask {
            extract_data: Option<unsafe extern "C" fn(*mut ArrowAsyncTask, *mut ArrowDeviceArray) -> c_int>,
            private_data: *mut c_void,
        }
        // X1: without the `release` that the page lists.
        ArrowAsyncProducer {
            device_type: ArrowDeviceType,
            // X2: `int64_t`, not `uint64_t`.
            request: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer, i64)>,
            cancel: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer)>,
            additional_metadata: *const c_char,
            private_data: *mut c_void,
        }
        ArrowAsyncDeviceStreamHandler {
            // X6: the handler is `self`, not the producer.
            on_schema: Option<unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, *mut ArrowSchema) -> c_int>,
            on_next_task: Option<
                unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, *mut ArrowAsyncTask, *const c_char) -> c_int,
            >,
            // X5: `self` by pointer, not by value.
            on_error: Option<
                unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, c_int, *const c_char, *const c_char),
            >,
            release: Option<unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler)>,
            // X3: by pointer, not by value.
            producer: *mut ArrowAsyncProducer,
            private_data: *mut c_void,
        }
    }
    numbers.insert("size of ArrowDeviceType", size_of::<ArrowDeviceType>());
    numbers.insert("alignment of ArrowDeviceType", align_of::<ArrowDeviceType>());
    numbers
}

/// Both spellings of each, in the order of the values.
const DEVICE_TYPES: [(&str, ArrowDeviceType, ArrowDeviceType); 14] = [
    ("ARROW_DEVICE_CPU", ARROW_DEVICE_CPU, ArrowDeviceType::CPU),
    ("ARROW_DEVICE_CUDA", ARROW_DEVICE_CUDA, ArrowDeviceType::CUDA),
    ("ARROW_DEVICE_CUDA_HOST", ARROW_DEVICE_CUDA_HOST, ArrowDeviceType::CUDA_HOST),
    ("ARROW_DEVICE_OPENCL", ARROW_DEVICE_OPENCL, ArrowDeviceType::OPENCL),
    ("ARROW_DEVICE_VULKAN", ARROW_DEVICE_VULKAN, ArrowDeviceType::VULKAN),
    ("ARROW_DEVICE_METAL", ARROW_DEVICE_METAL, ArrowDeviceType::METAL),
    ("ARROW_DEVICE_VPI", ARROW_DEVICE_VPI, ArrowDeviceType::VPI),
    ("ARROW_DEVICE_ROCM", ARROW_DEVICE_ROCM, ArrowDeviceType::ROCM),
    ("ARROW_DEVICE_ROCM_HOST", ARROW_DEVICE_ROCM_HOST, ArrowDeviceType::ROCM_HOST),
    ("ARROW_DEVICE_EXT_DEV", ARROW_DEVICE_EXT_DEV, ArrowDeviceType::EXT_DEV),
    ("ARROW_DEVICE_CUDA_MANAGED", ARROW_DEVICE_CUDA_MANAGED, ArrowDeviceType::CUDA_MANAGED),
    ("ARROW_DEVICE_ONEAPI", ARROW_DEVICE_ONEAPI, ArrowDeviceType::ONEAPI),
    ("ARROW_DEVICE_WEBGPU", ARROW_DEVICE_WEBGPU, ArrowDeviceType::WEBGPU),
    ("ARROW_DEVICE_HEXAGON", ARROW_DEVICE_HEXAGON, ArrowDeviceType::HEXAGON),
];

const FLAGS: [(&str, i64); 3] = [
    ("ARROW_FLAG_DICTIONARY_ORDERED", ARROW_FLAG_DICTIONARY_ORDERED),
    ("ARROW_FLAG_NULLABLE", ARROW_FLAG_NULLABLE),
    ("ARROW_FLAG_MAP_KEYS_SORTED", ARROW_FLAG_MAP_KEYS_SORTED),
];

const CODES: [(&str, c_int); 3] = [("EINVAL", errno::EINVAL), ("EIO", errno::EIO), ("ENOMEM", errno::ENOMEM)];

/// C12: sizes, alignments and offsets are those of the C compiler of this target; X1 to X6 with them.
#[test]
fn every_number_is_the_c_compilers() {
    let mut ours: BTreeMap<&str, i64> = layout()
        .into_iter()
        .map(|(name, number)| (name, i64::try_from(number).expect("a small number")))
        .collect();
    ours.insert("ArrowDeviceType is signed", 1);
    for (name, long, short) in DEVICE_TYPES {
        assert_eq!(long, short, "{name}");
        ours.insert(name, long.0.into());
    }
    ours.extend(FLAGS);
    ours.extend(CODES.map(|(name, code)| (name, i64::from(code))));

    let theirs = c_layout::numbers();
    for (name, number) in &theirs {
        assert_eq!(ours.get(name), Some(number), "{name}: Rust's on the left, C's on the right");
    }
    assert_eq!(ours.len(), theirs.len(), "Rust knows more names than C");
    // 8 structs with 48 fields; the tables must not have shrunk together.
    assert_eq!(ours.len(), 8 * 2 + 48 * 2 + 3 + 14 + 3 + 3);
}

#[test]
fn every_statistics_key_is_the_c_compilers() {
    macro_rules! keys {
        ($($name:ident),+ $(,)?) => { BTreeMap::from([$((stringify!($name), $name.to_str().expect("ASCII"))),+]) };
    }
    let ours: BTreeMap<&str, &str> = keys![
        ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT,
        ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE,
        ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT,
        ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE,
        ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT,
        ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE,
        ARROW_STATISTICS_KEY_MAX_VALUE_EXACT,
        ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE,
        ARROW_STATISTICS_KEY_MIN_VALUE_EXACT,
        ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE,
        ARROW_STATISTICS_KEY_NULL_COUNT_EXACT,
        ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE,
        ARROW_STATISTICS_KEY_ROW_COUNT_EXACT,
        ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE,
    ];
    assert_eq!(ours, c_layout::texts());
    // The specification's rule for them, which is in neither table.
    for (name, value) in ours {
        let what = name.strip_prefix("ARROW_STATISTICS_KEY_").expect("one prefix").to_lowercase();
        let (what, how) = what.rsplit_once('_').expect("_EXACT or _APPROXIMATE");
        assert_eq!(value, format!("ARROW:{what}:{how}"), "{name}");
    }
}

/// The specification's numbers, so that header and crate cannot be wrong together.
#[test]
fn constants_are_the_specifications() {
    let values = DEVICE_TYPES.map(|(_, device_type, _)| device_type.0);
    assert_eq!(values, [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    assert_eq!(FLAGS.map(|(_, flag)| flag), [1, 2, 4]);
}

/// C31: usable where the structs want them, without a cast.
#[test]
fn constants_have_the_types_of_their_fields() {
    let t: ArrowDeviceType = ARROW_DEVICE_CUDA;
    let f: i64 = ARROW_FLAG_NULLABLE;
    let array = ArrowDeviceArray { device_type: t, ..ArrowDeviceArray::released() };
    let stream = ArrowDeviceArrayStream { device_type: t, ..ArrowDeviceArrayStream::released() };
    let schema = ArrowSchema { flags: f | ARROW_FLAG_DICTIONARY_ORDERED, ..ArrowSchema::released() };
    assert_eq!(
        (array.device_type, stream.device_type, schema.flags),
        (ArrowDeviceType(2), ArrowDeviceType(2), 3)
    );
    // As patterns too, under either name.
    assert!(matches!(array.device_type, ARROW_DEVICE_CUDA));
    assert!(matches!(array.device_type, ArrowDeviceType::CUDA));
}

/// B10.
#[test]
#[cfg(any(unix, windows))]
fn error_codes_are_the_platforms() {
    assert_eq!(CODES.map(|(_, code)| code), [libc::EINVAL, libc::EIO, libc::ENOMEM]);
}

#[test]
fn device_types_have_the_names_of_their_macros() {
    assert_eq!(ArrowDeviceType::NAMED, DEVICE_TYPES.map(|(_, device_type, _)| device_type));
    for (name, device_type, _) in DEVICE_TYPES {
        let name = name.strip_prefix("ARROW_DEVICE_");
        assert_eq!(device_type.name(), name);
        assert_eq!(Some(&*device_type.to_string()), name);
    }
    assert_eq!(format!("{:?}", ArrowDeviceType::CUDA_HOST), "ArrowDeviceType(CUDA_HOST)");
    assert_eq!(format!("{:>6}|{:<6}|", ArrowDeviceType::CUDA, ArrowDeviceType::CPU), "  CUDA|CPU   |");
}

/// Values that Arrow does not define pass through and are printed as numbers: 5 and 6 are DLPack's gaps, 17 and 18 its
/// own, the rest hostile.
#[test]
fn unknown_device_types_are_kept() {
    for value in [0, 5, 6, 17, 18, -1, i32::MIN, i32::MAX] {
        let device_type = ArrowDeviceType(value);
        assert_eq!(device_type.0, value);
        assert_eq!(device_type.name(), None);
        assert_eq!(device_type.to_string(), value.to_string());
        assert_eq!(format!("{device_type:?}"), format!("ArrowDeviceType({value})"));
        assert!(!device_type.is_host_readable());
    }
    assert_eq!(format!("{:>6}", ArrowDeviceType(17)), "    17");
}

/// C19: these four, and no others.
#[test]
fn host_readable_device_types() {
    let readable: Vec<i32> = ArrowDeviceType::NAMED
        .iter()
        .filter(|device_type| device_type.is_host_readable())
        .map(|t| t.0)
        .collect();
    assert_eq!(readable, [1, 3, 11, 13]);
}

/// All zero: what C calls `memset(&s, 0, sizeof s)`, and what a producer that looks before it writes may rely on (C5).
#[test]
fn released_structs_are_zero() {
    macro_rules! zero {
        ($($name:ident),+) => { $(
            let released = $name::released();
            assert!(released.is_released());
            // SAFETY: zero is a value of every field: a number, a null pointer, or `None` of a callback.
            let zeroed: $name = unsafe { std::mem::zeroed() };
            assert_eq!(format!("{released:?}"), format!("{zeroed:?}"), stringify!($name));
        )+ };
    }
    zero!(
        ArrowSchema,
        ArrowArray,
        ArrowArrayStream,
        ArrowDeviceArray,
        ArrowDeviceArrayStream,
        ArrowAsyncDeviceStreamHandler
    );
}

/// `release` alone decides (B1), and that of the array inside for a device array (D16).
#[test]
fn a_struct_with_a_release_is_not_released() {
    macro_rules! live {
        ($($name:ident $(. $inner:ident)?),+) => { $({
            unsafe extern "C" fn release(_: *mut live!(@callee $name $($inner)?)) {}
            let mut live = $name::released();
            live $(. $inner)? .release = Some(release);
            assert!(!live.is_released(), stringify!($name));
        })+ };
        (@callee $name:ident array) => { ArrowArray };
        (@callee $name:ident) => { $name };
    }
    live!(
        ArrowSchema,
        ArrowArray,
        ArrowArrayStream,
        ArrowDeviceArray.array,
        ArrowDeviceArrayStream,
        ArrowAsyncDeviceStreamHandler
    );
}
