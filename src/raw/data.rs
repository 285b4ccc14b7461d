//! The C Data Interface.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// The type of an array: its format, name, metadata and the types of its children.
///
/// Always in host memory, whatever device the data is on
/// ([structure](https://arrow.apache.org/docs/format/CDataInterface.html#the-arrowschema-structure)).
/// Owns nothing by itself: [`OwnedSchema`](crate::OwnedSchema) does.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    /// Format string, NUL-terminated, never null in a live struct.
    pub format: *const c_char,
    /// Field name, NUL-terminated UTF-8, or null.
    pub name: *const c_char,
    /// Key-value pairs in the interface's binary encoding (native endianness, any alignment), or null.
    pub metadata: *const c_char,
    /// Bits of `ARROW_FLAG_*`; unknown bits are kept.
    pub flags: i64,
    /// Number of children.
    pub n_children: i64,
    /// Array of [`n_children`](Self::n_children) pointers, or null if there are none.
    pub children: *mut *mut ArrowSchema,
    /// Type of the dictionary's values, or null if not dictionary-encoded.
    pub dictionary: *mut ArrowSchema,
    /// Frees the struct's contents and sets itself to null; null in a released struct.
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

impl ArrowSchema {
    /// A struct that holds nothing: every field zero, so already released.
    #[must_use]
    pub const fn released() -> Self {
        Self {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// Whether `release` is null: nothing else in the struct may be read then.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

/// The data of an array: counts, and pointers to buffers, children and dictionary.
///
/// The struct and its pointer arrays are in host memory; what the buffers point to is in host memory too unless the
/// struct sits in an [`ArrowDeviceArray`](crate::raw::ArrowDeviceArray)
/// ([structure](https://arrow.apache.org/docs/format/CDataInterface.html#the-arrowarray-structure)).
/// Owns nothing by itself: [`OwnedArray`](crate::OwnedArray) does.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    /// Number of elements, not counting [`offset`](Self::offset).
    pub length: i64,
    /// Number of null elements, or −1 if not computed.
    pub null_count: i64,
    /// Number of elements to skip at the start of the buffers, and of a struct's children.
    pub offset: i64,
    /// Number of buffers, given by the format.
    pub n_buffers: i64,
    /// Number of children, given by the format.
    pub n_children: i64,
    /// Array of [`n_buffers`](Self::n_buffers) pointers. A validity bitmap may be null if there are no nulls, any
    /// buffer may be null if it has no bytes.
    pub buffers: *mut *const c_void,
    /// Array of [`n_children`](Self::n_children) pointers, or null if there are none.
    pub children: *mut *mut ArrowArray,
    /// The dictionary's values, or null if not dictionary-encoded.
    pub dictionary: *mut ArrowArray,
    /// Frees the struct's contents and sets itself to null; null in a released struct.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

impl ArrowArray {
    /// A struct that holds nothing: every field zero, so already released.
    #[must_use]
    pub const fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// Whether `release` is null: nothing else in the struct may be read then.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

/// One table for the flags: the definitions here and their proof in `layout.rs` come from it.
macro_rules! for_each_flag {
    ($callback:ident) => {
        $callback! {
            /// Bit of [`ArrowSchema::flags`]: the order of the dictionary's values means something.
            "ARROW_FLAG_DICTIONARY_ORDERED" ARROW_FLAG_DICTIONARY_ORDERED = 1;
            /// Bit of [`ArrowSchema::flags`]: the field may hold nulls.
            "ARROW_FLAG_NULLABLE" ARROW_FLAG_NULLABLE = 2;
            /// Bit of [`ArrowSchema::flags`]: the keys within each map value are sorted.
            "ARROW_FLAG_MAP_KEYS_SORTED" ARROW_FLAG_MAP_KEYS_SORTED = 4;
        }
    };
}
pub(super) use for_each_flag;

macro_rules! define_flags {
    ($($(#[$doc:meta])* $lit:literal $name:ident = $value:literal;)+) => { $(
        $(#[$doc])*
        pub const $name: i64 = $value;
    )+ };
}
for_each_flag!(define_flags);

/// One table for the statistics keys: the definitions here and their proof in `layout.rs` come from it.
macro_rules! for_each_statistics_key {
    ($callback:ident) => {
        $callback! {
            "ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT" ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT = c"ARROW:average_byte_width:exact";
            "ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE" ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE = c"ARROW:average_byte_width:approximate";
            "ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT" ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT = c"ARROW:distinct_count:exact";
            "ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE" ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE = c"ARROW:distinct_count:approximate";
            "ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT" ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT = c"ARROW:max_byte_width:exact";
            "ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE" ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE = c"ARROW:max_byte_width:approximate";
            "ARROW_STATISTICS_KEY_MAX_VALUE_EXACT" ARROW_STATISTICS_KEY_MAX_VALUE_EXACT = c"ARROW:max_value:exact";
            "ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE" ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE = c"ARROW:max_value:approximate";
            "ARROW_STATISTICS_KEY_MIN_VALUE_EXACT" ARROW_STATISTICS_KEY_MIN_VALUE_EXACT = c"ARROW:min_value:exact";
            "ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE" ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE = c"ARROW:min_value:approximate";
            "ARROW_STATISTICS_KEY_NULL_COUNT_EXACT" ARROW_STATISTICS_KEY_NULL_COUNT_EXACT = c"ARROW:null_count:exact";
            "ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE" ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE = c"ARROW:null_count:approximate";
            "ARROW_STATISTICS_KEY_ROW_COUNT_EXACT" ARROW_STATISTICS_KEY_ROW_COUNT_EXACT = c"ARROW:row_count:exact";
            "ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE" ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE = c"ARROW:row_count:approximate";
        }
    };
}
pub(super) use for_each_statistics_key;

macro_rules! define_statistics_keys {
    ($($lit:literal $name:ident = $value:literal;)+) => { $(
        #[doc = concat!("Key of Arrow's [statistics schema](https://arrow.apache.org/docs/format/StatisticsSchema.html), macro `", $lit, "` of the C header.")]
        pub const $name: &CStr = $value;
    )+ };
}
for_each_statistics_key!(define_statistics_keys);
