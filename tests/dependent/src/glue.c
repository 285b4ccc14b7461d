/* A producer in C, compiled twice: the names of its functions end in WAY. */

#include "arrow_device_abi.h"

#include <stddef.h>
#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(name, WAY)

static void release(struct ArrowArray* array) {
  ++*(int*)array->private_data;
  array->release = NULL;
}

/* `out` need not be initialised. */
void NAME(produce_)(struct ArrowDeviceArray* out, int* releases) {
  memset(out, 0, sizeof(*out));
  out->array.length = 5;
  out->array.null_count = -1;
  out->array.release = release;
  out->array.private_data = releases;
  out->device_type = ARROW_DEVICE_CUDA;
  out->device_id = 7;
}

size_t NAME(size_)(void) { return sizeof(struct ArrowDeviceArray); }
