/* Consumers: they move, read, drain and release what they are given. */

#include "peers.h"

#include <string.h>

#define MOVE(function, type, member)                                    \
  void peer_move_##function(struct type* source, struct type* target) { \
    memcpy(target, source, sizeof *target);                             \
    source->member = NULL;                                              \
  }

MOVE(schema, ArrowSchema, release)
MOVE(array, ArrowArray, release)
MOVE(device_array, ArrowDeviceArray, array.release)
MOVE(stream, ArrowArrayStream, release)
MOVE(device_stream, ArrowDeviceArrayStream, release)

int peer_release_schema(struct ArrowSchema* schema) {
  schema->release(schema);
  return schema->release == NULL;
}

int peer_release_array(struct ArrowArray* array) {
  array->release(array);
  return array->release == NULL;
}

int64_t peer_sum(const struct ArrowArray* array) {
  const struct ArrowArray* ints = array->children[0];
  const uint8_t* validity = ints->buffers[0];
  const int32_t* values = ints->buffers[1];
  int64_t sum = 0;
  for (int64_t i = ints->offset; i < ints->offset + ints->length; ++i) {
    if (validity == NULL || (validity[i / 8] >> (i % 8) & 1) != 0) sum += values[i];
  }
  return sum;
}

/* 0xAA in every byte of an out-struct: a producer may not look at what is there (C5). */
#define DRAIN(function, type, array_type, base)                                                   \
  int peer_drain_##function(struct type* stream, int64_t* arrays, int64_t* rows, char text[64]) { \
    struct ArrowSchema schema;                                                                    \
    struct array_type array;                                                                      \
    int code;                                                                                     \
    *arrays = *rows = 0;                                                                          \
    text[0] = 0;                                                                                  \
    memset(&schema, 0xAA, sizeof schema);                                                         \
    code = stream->get_schema(stream, &schema);                                                   \
    if (code == 0) schema.release(&schema);                                                       \
    while (code == 0) {                                                                           \
      memset(&array, 0xAA, sizeof array);                                                         \
      code = stream->get_next(stream, &array);                                                    \
      if (code != 0 || array base.release == NULL) break;                                         \
      ++*arrays;                                                                                  \
      *rows += array base.length;                                                                 \
      array base.release(&array base);                                                            \
    }                                                                                             \
    if (code != 0) {                                                                              \
      const char* message = stream->get_last_error(stream);                                       \
      if (message != NULL) strncat(text, message, 63);                                            \
    }                                                                                             \
    stream->release(stream);                                                                      \
    return code;                                                                                  \
  }

DRAIN(stream, ArrowArrayStream, ArrowArray, )
DRAIN(device_stream, ArrowDeviceArrayStream, ArrowDeviceArray, .array)
