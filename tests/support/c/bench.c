/* What benches/export.rs measures itself against: a cheap stream, and C's own loops over it. */

#include "arrow_device_abi.h"

#include <stddef.h>
#include <string.h>

static const void* const no_buffers[1] = {NULL};

static void release_array(struct ArrowArray* array) { array->release = NULL; }

static void release_schema(struct ArrowSchema* schema) { schema->release = NULL; }

static void release_stream(struct ArrowArrayStream* stream) { stream->release = NULL; }

static int get_schema(struct ArrowArrayStream* stream, struct ArrowSchema* out) {
  (void)stream;
  memset(out, 0, sizeof *out);
  out->format = "+s";
  out->release = release_schema;
  return 0;
}

/* private_data counts down the arrays that are left. Each is a struct of one row without columns. */
static int get_next(struct ArrowArrayStream* stream, struct ArrowArray* out) {
  int64_t* left = stream->private_data;
  memset(out, 0, sizeof *out);
  if (*left == 0) {
    return 0;
  }
  --*left;
  out->length = 1;
  out->n_buffers = 1;
  out->buffers = (const void**)no_buffers;
  out->release = release_array;
  return 0;
}

static const char* get_last_error(struct ArrowArrayStream* stream) {
  (void)stream;
  return NULL;
}

void bench_stream(struct ArrowArrayStream* out, int64_t* left) {
  out->get_schema = get_schema;
  out->get_next = get_next;
  out->get_last_error = get_last_error;
  out->release = release_stream;
  out->private_data = left;
}

int64_t bench_drain(struct ArrowArrayStream* stream) {
  int64_t rows = 0;
  for (;;) {
    struct ArrowArray array;
    memset(&array, 0, sizeof array);
    if (stream->get_next(stream, &array) != 0 || array.release == NULL) {
      break;
    }
    rows += array.length;
    array.release(&array);
  }
  if (stream->release != NULL) {
    stream->release(stream);
  }
  return rows;
}

void bench_device_array(struct ArrowDeviceArray* out) {
  memset(out, 0, sizeof *out);
  out->array.length = 1;
  out->array.n_buffers = 1;
  out->array.buffers = (const void**)no_buffers;
  out->array.release = release_array;
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
}

/* A move as the specification words it. Null or released sources are refused, as ours refuses them. */
int bench_move(struct ArrowDeviceArray* from, struct ArrowDeviceArray* to) {
  if (from == NULL || from->array.release == NULL) {
    return 1;
  }
  memcpy(to, from, sizeof *to);
  from->array.release = NULL;
  return 0;
}
