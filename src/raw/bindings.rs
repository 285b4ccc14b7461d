pub const ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT: &::core::ffi::CStr = c"ARROW:average_byte_width:exact";
pub const ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE: &::core::ffi::CStr = c"ARROW:average_byte_width:approximate";
pub const ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT: &::core::ffi::CStr = c"ARROW:distinct_count:exact";
pub const ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE: &::core::ffi::CStr = c"ARROW:distinct_count:approximate";
pub const ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT: &::core::ffi::CStr = c"ARROW:max_byte_width:exact";
pub const ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE: &::core::ffi::CStr = c"ARROW:max_byte_width:approximate";
pub const ARROW_STATISTICS_KEY_MAX_VALUE_EXACT: &::core::ffi::CStr = c"ARROW:max_value:exact";
pub const ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE: &::core::ffi::CStr = c"ARROW:max_value:approximate";
pub const ARROW_STATISTICS_KEY_MIN_VALUE_EXACT: &::core::ffi::CStr = c"ARROW:min_value:exact";
pub const ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE: &::core::ffi::CStr = c"ARROW:min_value:approximate";
pub const ARROW_STATISTICS_KEY_NULL_COUNT_EXACT: &::core::ffi::CStr = c"ARROW:null_count:exact";
pub const ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE: &::core::ffi::CStr = c"ARROW:null_count:approximate";
pub const ARROW_STATISTICS_KEY_ROW_COUNT_EXACT: &::core::ffi::CStr = c"ARROW:row_count:exact";
pub const ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE: &::core::ffi::CStr = c"ARROW:row_count:approximate";
pub const ARROW_FLAG_DICTIONARY_ORDERED: i32 = 1;
pub const ARROW_FLAG_NULLABLE: i32 = 2;
pub const ARROW_FLAG_MAP_KEYS_SORTED: i32 = 4;
pub const ARROW_DEVICE_CPU: i32 = 1;
pub const ARROW_DEVICE_CUDA: i32 = 2;
pub const ARROW_DEVICE_CUDA_HOST: i32 = 3;
pub const ARROW_DEVICE_OPENCL: i32 = 4;
pub const ARROW_DEVICE_VULKAN: i32 = 7;
pub const ARROW_DEVICE_METAL: i32 = 8;
pub const ARROW_DEVICE_VPI: i32 = 9;
pub const ARROW_DEVICE_ROCM: i32 = 10;
pub const ARROW_DEVICE_ROCM_HOST: i32 = 11;
pub const ARROW_DEVICE_EXT_DEV: i32 = 12;
pub const ARROW_DEVICE_CUDA_MANAGED: i32 = 13;
pub const ARROW_DEVICE_ONEAPI: i32 = 14;
pub const ARROW_DEVICE_WEBGPU: i32 = 15;
pub const ARROW_DEVICE_HEXAGON: i32 = 16;
#[repr(C)]
pub struct ArrowSchema {
    pub format: *const ::core::ffi::c_char,
    pub name: *const ::core::ffi::c_char,
    pub metadata: *const ::core::ffi::c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    pub release: ::core::option::Option<unsafe extern "C" fn(arg1: *mut ArrowSchema)>,
    pub private_data: *mut ::core::ffi::c_void,
}
#[repr(C)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const ::core::ffi::c_void,
    pub children: *mut *mut ArrowArray,
    pub dictionary: *mut ArrowArray,
    pub release: ::core::option::Option<unsafe extern "C" fn(arg1: *mut ArrowArray)>,
    pub private_data: *mut ::core::ffi::c_void,
}
pub type ArrowDeviceType = i32;
#[repr(C)]
pub struct ArrowDeviceArray {
    pub array: ArrowArray,
    pub device_id: i64,
    pub device_type: ArrowDeviceType,
    pub sync_event: *mut ::core::ffi::c_void,
    pub reserved: [i64; 3usize],
}
#[repr(C)]
pub struct ArrowArrayStream {
    pub get_schema: ::core::option::Option<
        unsafe extern "C" fn(
            arg1: *mut ArrowArrayStream,
            out: *mut ArrowSchema,
        ) -> ::core::ffi::c_int,
    >,
    pub get_next: ::core::option::Option<
        unsafe extern "C" fn(
            arg1: *mut ArrowArrayStream,
            out: *mut ArrowArray,
        ) -> ::core::ffi::c_int,
    >,
    pub get_last_error: ::core::option::Option<
        unsafe extern "C" fn(arg1: *mut ArrowArrayStream) -> *const ::core::ffi::c_char,
    >,
    pub release: ::core::option::Option<
        unsafe extern "C" fn(arg1: *mut ArrowArrayStream),
    >,
    pub private_data: *mut ::core::ffi::c_void,
}
#[repr(C)]
pub struct ArrowDeviceArrayStream {
    pub device_type: ArrowDeviceType,
    pub get_schema: ::core::option::Option<
        unsafe extern "C" fn(
            arg1: *mut ArrowDeviceArrayStream,
            out: *mut ArrowSchema,
        ) -> ::core::ffi::c_int,
    >,
    pub get_next: ::core::option::Option<
        unsafe extern "C" fn(
            arg1: *mut ArrowDeviceArrayStream,
            out: *mut ArrowDeviceArray,
        ) -> ::core::ffi::c_int,
    >,
    pub get_last_error: ::core::option::Option<
        unsafe extern "C" fn(
            arg1: *mut ArrowDeviceArrayStream,
        ) -> *const ::core::ffi::c_char,
    >,
    pub release: ::core::option::Option<
        unsafe extern "C" fn(arg1: *mut ArrowDeviceArrayStream),
    >,
    pub private_data: *mut ::core::ffi::c_void,
}
#[repr(C)]
pub struct ArrowAsyncTask {
    pub extract_data: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncTask,
            out: *mut ArrowDeviceArray,
        ) -> ::core::ffi::c_int,
    >,
    pub private_data: *mut ::core::ffi::c_void,
}
#[repr(C)]
pub struct ArrowAsyncProducer {
    pub device_type: ArrowDeviceType,
    pub request: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ArrowAsyncProducer, n: i64),
    >,
    pub cancel: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ArrowAsyncProducer),
    >,
    pub additional_metadata: *const ::core::ffi::c_char,
    pub private_data: *mut ::core::ffi::c_void,
}
#[repr(C)]
pub struct ArrowAsyncDeviceStreamHandler {
    pub on_schema: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncDeviceStreamHandler,
            stream_schema: *mut ArrowSchema,
        ) -> ::core::ffi::c_int,
    >,
    pub on_next_task: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncDeviceStreamHandler,
            task: *mut ArrowAsyncTask,
            metadata: *const ::core::ffi::c_char,
        ) -> ::core::ffi::c_int,
    >,
    pub on_error: ::core::option::Option<
        unsafe extern "C" fn(
            self_: *mut ArrowAsyncDeviceStreamHandler,
            code: ::core::ffi::c_int,
            message: *const ::core::ffi::c_char,
            metadata: *const ::core::ffi::c_char,
        ),
    >,
    pub release: ::core::option::Option<
        unsafe extern "C" fn(self_: *mut ArrowAsyncDeviceStreamHandler),
    >,
    pub producer: *mut ArrowAsyncProducer,
    pub private_data: *mut ::core::ffi::c_void,
}
