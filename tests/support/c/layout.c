/* What this compiler makes of the header: the other side of tests/layout.rs. */

#include "arrow_device_abi.h"

#include <errno.h>
#include <stddef.h>

struct layout_number {
  const char* name;
  int64_t value;
};

struct layout_text {
  const char* name;
  const char* value;
};

/* C99 has no alignof: where a member of the type lies after one byte. */
#define AFTER_A_BYTE(name, type) \
  struct name##_after_a_byte {   \
    char byte;                   \
    type member;                 \
  }
AFTER_A_BYTE(ArrowSchema, struct ArrowSchema);
AFTER_A_BYTE(ArrowArray, struct ArrowArray);
AFTER_A_BYTE(ArrowArrayStream, struct ArrowArrayStream);
AFTER_A_BYTE(ArrowDeviceArray, struct ArrowDeviceArray);
AFTER_A_BYTE(ArrowDeviceArrayStream, struct ArrowDeviceArrayStream);
AFTER_A_BYTE(ArrowAsyncTask, struct ArrowAsyncTask);
AFTER_A_BYTE(ArrowAsyncProducer, struct ArrowAsyncProducer);
AFTER_A_BYTE(ArrowAsyncDeviceStreamHandler, struct ArrowAsyncDeviceStreamHandler);
AFTER_A_BYTE(ArrowDeviceType, ArrowDeviceType);

#define TYPE(name, type)              \
  {"size of " #name, sizeof(type)}, { \
    "alignment of " #name, offsetof(struct name##_after_a_byte, member) }
#define STRUCT(name) TYPE(name, struct name)
#define FIELD(name, field)                                        \
  {"offset of " #name "::" #field, offsetof(struct name, field)}, \
      {"size of " #name "::" #field, sizeof(((struct name*)0)->field)}
#define VALUE(name) {#name, name}

static const struct layout_number numbers[] = {
    STRUCT(ArrowSchema),
    FIELD(ArrowSchema, format),
    FIELD(ArrowSchema, name),
    FIELD(ArrowSchema, metadata),
    FIELD(ArrowSchema, flags),
    FIELD(ArrowSchema, n_children),
    FIELD(ArrowSchema, children),
    FIELD(ArrowSchema, dictionary),
    FIELD(ArrowSchema, release),
    FIELD(ArrowSchema, private_data),

    STRUCT(ArrowArray),
    FIELD(ArrowArray, length),
    FIELD(ArrowArray, null_count),
    FIELD(ArrowArray, offset),
    FIELD(ArrowArray, n_buffers),
    FIELD(ArrowArray, n_children),
    FIELD(ArrowArray, buffers),
    FIELD(ArrowArray, children),
    FIELD(ArrowArray, dictionary),
    FIELD(ArrowArray, release),
    FIELD(ArrowArray, private_data),

    STRUCT(ArrowArrayStream),
    FIELD(ArrowArrayStream, get_schema),
    FIELD(ArrowArrayStream, get_next),
    FIELD(ArrowArrayStream, get_last_error),
    FIELD(ArrowArrayStream, release),
    FIELD(ArrowArrayStream, private_data),

    STRUCT(ArrowDeviceArray),
    FIELD(ArrowDeviceArray, array),
    FIELD(ArrowDeviceArray, device_id),
    FIELD(ArrowDeviceArray, device_type),
    FIELD(ArrowDeviceArray, sync_event),
    FIELD(ArrowDeviceArray, reserved),

    STRUCT(ArrowDeviceArrayStream),
    FIELD(ArrowDeviceArrayStream, device_type),
    FIELD(ArrowDeviceArrayStream, get_schema),
    FIELD(ArrowDeviceArrayStream, get_next),
    FIELD(ArrowDeviceArrayStream, get_last_error),
    FIELD(ArrowDeviceArrayStream, release),
    FIELD(ArrowDeviceArrayStream, private_data),

    STRUCT(ArrowAsyncTask),
    FIELD(ArrowAsyncTask, extract_data),
    FIELD(ArrowAsyncTask, private_data),

    STRUCT(ArrowAsyncProducer),
    FIELD(ArrowAsyncProducer, device_type),
    FIELD(ArrowAsyncProducer, request),
    FIELD(ArrowAsyncProducer, cancel),
    FIELD(ArrowAsyncProducer, additional_metadata),
    FIELD(ArrowAsyncProducer, private_data),

    STRUCT(ArrowAsyncDeviceStreamHandler),
    FIELD(ArrowAsyncDeviceStreamHandler, on_schema),
    FIELD(ArrowAsyncDeviceStreamHandler, on_next_task),
    FIELD(ArrowAsyncDeviceStreamHandler, on_error),
    FIELD(ArrowAsyncDeviceStreamHandler, release),
    FIELD(ArrowAsyncDeviceStreamHandler, producer),
    FIELD(ArrowAsyncDeviceStreamHandler, private_data),

    TYPE(ArrowDeviceType, ArrowDeviceType),
    {"ArrowDeviceType is signed", (ArrowDeviceType)-1 < 0},

    VALUE(ARROW_FLAG_DICTIONARY_ORDERED),
    VALUE(ARROW_FLAG_NULLABLE),
    VALUE(ARROW_FLAG_MAP_KEYS_SORTED),

    VALUE(ARROW_DEVICE_CPU),
    VALUE(ARROW_DEVICE_CUDA),
    VALUE(ARROW_DEVICE_CUDA_HOST),
    VALUE(ARROW_DEVICE_OPENCL),
    VALUE(ARROW_DEVICE_VULKAN),
    VALUE(ARROW_DEVICE_METAL),
    VALUE(ARROW_DEVICE_VPI),
    VALUE(ARROW_DEVICE_ROCM),
    VALUE(ARROW_DEVICE_ROCM_HOST),
    VALUE(ARROW_DEVICE_EXT_DEV),
    VALUE(ARROW_DEVICE_CUDA_MANAGED),
    VALUE(ARROW_DEVICE_ONEAPI),
    VALUE(ARROW_DEVICE_WEBGPU),
    VALUE(ARROW_DEVICE_HEXAGON),

    VALUE(EINVAL),
    VALUE(EIO),
    VALUE(ENOMEM),
};
static const struct layout_text texts[] = {
    VALUE(ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT),
    VALUE(ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE),
    VALUE(ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT),
    VALUE(ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE),
    VALUE(ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT),
    VALUE(ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE),
    VALUE(ARROW_STATISTICS_KEY_MAX_VALUE_EXACT),
    VALUE(ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE),
    VALUE(ARROW_STATISTICS_KEY_MIN_VALUE_EXACT),
    VALUE(ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE),
    VALUE(ARROW_STATISTICS_KEY_NULL_COUNT_EXACT),
    VALUE(ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE),
    VALUE(ARROW_STATISTICS_KEY_ROW_COUNT_EXACT),
    VALUE(ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE),
};

const struct layout_number* layout_numbers(size_t* count);
const struct layout_number* layout_numbers(size_t* count) {
  *count = sizeof(numbers) / sizeof(numbers[0]);
  return numbers;
}

const struct layout_text* layout_texts(size_t* count);
const struct layout_text* layout_texts(size_t* count) {
  *count = sizeof(texts) / sizeof(texts[0]);
  return texts;
}
