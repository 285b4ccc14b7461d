/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The Apache Arrow C Data, C Stream, C Device Data, C Device Stream and asynchronous C Device Stream
 * Interface, as one C99 / C++11 header.
 *
 * Each part stands behind Arrow's own guard, so this header can be included beside any other that carries
 * the same structs, in either order: the first one wins and they are the same. Struct, field and macro names,
 * field order and guards are fixed by the specification:
 *   https://arrow.apache.org/docs/format/CDataInterface.html
 *   https://arrow.apache.org/docs/format/CStreamInterface.html
 *   https://arrow.apache.org/docs/format/CDeviceDataInterface.html
 *
 * In all of them a null `release` means: released, or moved away. Check it before any other field.
 */

#ifndef ARROW_DEVICE_ABI_H
#define ARROW_DEVICE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of the statistics schema. In Arrow's header they stand inside the guard of the C Data Interface: whoever includes
 * another header with that guard first, this one or nanoarrow's, would take them away from Arrow's. So they have a
 * condition of their own here. */
#ifndef ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT
#define ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT "ARROW:average_byte_width:exact"
#define ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE "ARROW:average_byte_width:approximate"
#define ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT "ARROW:distinct_count:exact"
#define ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE "ARROW:distinct_count:approximate"
#define ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT "ARROW:max_byte_width:exact"
#define ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE "ARROW:max_byte_width:approximate"
#define ARROW_STATISTICS_KEY_MAX_VALUE_EXACT "ARROW:max_value:exact"
#define ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE "ARROW:max_value:approximate"
#define ARROW_STATISTICS_KEY_MIN_VALUE_EXACT "ARROW:min_value:exact"
#define ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE "ARROW:min_value:approximate"
#define ARROW_STATISTICS_KEY_NULL_COUNT_EXACT "ARROW:null_count:exact"
#define ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE "ARROW:null_count:approximate"
#define ARROW_STATISTICS_KEY_ROW_COUNT_EXACT "ARROW:row_count:exact"
#define ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE "ARROW:row_count:approximate"
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

/* Bits of ArrowSchema.flags. */
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/* The type of an array, and its name and metadata. Always in host memory. */
struct ArrowSchema {
  const char* format;           /* never null */
  const char* name;             /* UTF-8, or null */
  const char* metadata;         /* int32 count, then length-prefixed keys and values; or null */
  int64_t flags;                /* ARROW_FLAG_* */
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary; /* type of the dictionary's values, or null */

  void (*release)(struct ArrowSchema*);
  void* private_data;           /* the producer's */
};

/* The data of an array. The struct and its pointer arrays are in host memory; what the buffers point to
 * is wherever the surrounding interface says. */
struct ArrowArray {
  int64_t length;
  int64_t null_count;           /* -1: not computed */
  int64_t offset;               /* in elements, counted from the start of the buffers */
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;

  void (*release)(struct ArrowArray*);
  void* private_data;           /* the producer's */
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE

/* A kind of device. An integer of fixed width with macros for its values, so that its size does not hang
 * on a compiler's idea of an enum. The values are DLPack's; 5 and 6 are not used. */
typedef int32_t ArrowDeviceType;

#define ARROW_DEVICE_CPU 1           /* host memory */
#define ARROW_DEVICE_CUDA 2          /* CUDA device memory */
#define ARROW_DEVICE_CUDA_HOST 3     /* pinned host memory of CUDA */
#define ARROW_DEVICE_OPENCL 4
#define ARROW_DEVICE_VULKAN 7
#define ARROW_DEVICE_METAL 8
#define ARROW_DEVICE_VPI 9           /* Verilog simulator buffers */
#define ARROW_DEVICE_ROCM 10         /* ROCm device memory */
#define ARROW_DEVICE_ROCM_HOST 11    /* pinned host memory of ROCm */
#define ARROW_DEVICE_EXT_DEV 12      /* for extension by others */
#define ARROW_DEVICE_CUDA_MANAGED 13 /* CUDA managed (unified) memory */
#define ARROW_DEVICE_ONEAPI 14       /* unified shared memory of oneAPI */
#define ARROW_DEVICE_WEBGPU 15
#define ARROW_DEVICE_HEXAGON 16

/* An array whose buffers are on a device. Only what `array.buffers` points to is there. */
struct ArrowDeviceArray {
  struct ArrowArray array;      /* its release frees everything, the event too */
  int64_t device_id;            /* -1 where the device type has no ids */
  ArrowDeviceType device_type;
  void* sync_event;             /* pointer TO an event handle to wait for, or null: ready */
  int64_t reserved[3];          /* the producer writes zeros */
};

#endif /* ARROW_C_DEVICE_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* A source of arrays of one schema. Callbacks return 0 or an errno value, and are never called at once
 * from two threads. */
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  /* success with a released array: the end */
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  /* only after a failure; valid until the next call; may return null */
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

#ifndef ARROW_C_DEVICE_STREAM_INTERFACE
#define ARROW_C_DEVICE_STREAM_INTERFACE

/* As ArrowArrayStream, for arrays that are all on one type of device. */
struct ArrowDeviceArrayStream {
  ArrowDeviceType device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowDeviceArrayStream*, struct ArrowDeviceArray* out);
  const char* (*get_last_error)(struct ArrowDeviceArrayStream*);
  void (*release)(struct ArrowDeviceArrayStream*);
  void* private_data;
};

#endif /* ARROW_C_DEVICE_STREAM_INTERFACE */

#ifndef ARROW_C_ASYNC_STREAM_INTERFACE
#define ARROW_C_ASYNC_STREAM_INTERFACE

/* One batch that is on its way. Valid during on_next_task only: a consumer that keeps it copies it. */
struct ArrowAsyncTask {
  /* exactly once a task; a null `out` discards the batch */
  int (*extract_data)(struct ArrowAsyncTask* self, struct ArrowDeviceArray* out);
  void* private_data;
};

/* The producer as its consumer sees it. There is no release here: it lives until the handler's. */
struct ArrowAsyncProducer {
  ArrowDeviceType device_type;
  void (*request)(struct ArrowAsyncProducer* self, int64_t n);
  void (*cancel)(struct ArrowAsyncProducer* self);
  const char* additional_metadata; /* encoded as ArrowSchema.metadata, or null */
  void* private_data;
};

/* What a consumer fills in and a producer calls, one call at a time, from any thread. */
struct ArrowAsyncDeviceStreamHandler {
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowSchema* stream_schema);
  /* a null task: the end */
  int (*on_next_task)(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowAsyncTask* task,
                      const char* metadata);
  void (*on_error)(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                   const char* metadata);
  /* always the last call */
  void (*release)(struct ArrowAsyncDeviceStreamHandler* self);
  struct ArrowAsyncProducer* producer; /* set by the producer before its first call */
  void* private_data;
};

#endif /* ARROW_C_ASYNC_STREAM_INTERFACE */

#ifdef __cplusplus
}
#endif

#endif /* ARROW_DEVICE_ABI_H */
