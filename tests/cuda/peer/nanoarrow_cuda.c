/* nanoarrow's CUDA device as a producer whose event is waited for, and as a consumer that waits: for tests/nanoarrow.rs.
 *
 * What fails leaves its reason for peer_error, and what it had made: the test ends there.
 */

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nanoarrow/nanoarrow_device.h"

/* A whole number of bytes of a bitmap. */
enum { ROWS = 96 };

static _Thread_local struct ArrowError error;

static int failed(const char* call, int code) {
  char reason[sizeof error.message];
  memcpy(reason, error.message, sizeof reason);
  ArrowErrorSet(&error, "%s: %d: %s", call, code, reason);
  return code;
}
#define TRY(call)                                \
  do {                                           \
    int code = (call);                           \
    if (code != 0) return failed(#call, code);   \
  } while (0)

const char* peer_error(void) { return error.message; }

/* Makes nanoarrow retain the primary contexts of all devices, which it never lets go of. */
int peer_start(void) { return ArrowDeviceResolve(ARROW_DEVICE_CUDA, 0) == NULL ? ENODEV : 0; }

/* The same rule stands in tests/nanoarrow.rs. */
static int append(struct ArrowArray* array, enum ArrowType type, int row) {
  if (row % 5 == 3) return ArrowArrayAppendNull(array, 1);
  int number = 1001 * row - 7;
  if (type == NANOARROW_TYPE_INT32) return ArrowArrayAppendInt(array, number);
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  return ArrowArrayAppendString(array, ArrowCharView(text));
}

/* The array of a format, `i` or `u`, in host memory, and a view of it. */
static int build(const char* format, struct ArrowDeviceArray* out, struct ArrowDeviceArrayView* view) {
  struct ArrowSchema schema;
  struct ArrowArray array;
  ArrowErrorInit(&error);
  ArrowSchemaInit(&schema);
  TRY(ArrowSchemaSetFormat(&schema, format));
  ArrowDeviceArrayViewInit(view);
  TRY(ArrowArrayViewInitFromSchema(&view->array_view, &schema, &error));
  TRY(ArrowArrayInitFromSchema(&array, &schema, &error));
  ArrowSchemaRelease(&schema);
  TRY(ArrowArrayStartAppending(&array));
  for (int row = 0; row < ROWS; row++) TRY(append(&array, view->array_view.storage_type, row));
  TRY(ArrowArrayFinishBuildingDefault(&array, &error));
  TRY(ArrowDeviceArrayInit(ArrowDeviceCpu(), out, &array, NULL));
  return ArrowDeviceArrayViewSetArray(view, out, &error);
}

struct late {
  void* to;
  size_t bytes;
  unsigned char from[];
};

static void write_late(void* data) {
  struct late* late = data;
  memcpy(late->to, late->from, late->bytes);
  free(late);
}

/* nanoarrow copies to pinned memory at once, whatever its stream is doing. This lets the contents come in the stream's
 * order, as those of device memory do. */
static int rewrite_late(const struct ArrowArrayView* contents, struct ArrowArray* array, CUstream stream) {
  for (int i = 0; i < array->n_buffers; i++) {
    size_t bytes = (size_t)contents->buffer_views[i].size_bytes;
    struct late* late = malloc(sizeof *late + bytes);
    late->to = (void*)array->buffers[i];
    late->bytes = bytes;
    memcpy(late->from, contents->buffer_views[i].data.data, bytes);
    memset(late->to, 0xCD, bytes);
    TRY(cuLaunchHostFunc(stream, write_late, late));
  }
  return 0;
}

/* Copies an array to the device in the stream's order, and exports it with an event of that stream. */
int peer_produce(const char* format, ArrowDeviceType device_type, int64_t device_id, CUstream stream,
                 struct ArrowDeviceArray* out) {
  struct ArrowDevice* device = ArrowDeviceResolve(device_type, device_id);
  struct ArrowDeviceArray host, copy;
  struct ArrowDeviceArrayView view;
  if (device == NULL) return failed("ArrowDeviceResolve", ENODEV);
  TRY(build(format, &host, &view));
  TRY(ArrowDeviceArrayViewCopyAsync(&view, device, &copy, &stream));
  if (device_type == ARROW_DEVICE_CUDA_HOST) TRY(rewrite_late(&view.array_view, &copy.array, stream));
  /* The copy's own event does not cover what was queued after it. */
  TRY(ArrowDeviceArrayInitAsync(device, out, &copy.array, NULL, &stream));
  ArrowDeviceArrayViewReset(&view);
  ArrowArrayRelease(&host.array);
  return 0;
}

/* Device memory: the stream waits, and copies. */
static int fetch(struct ArrowDeviceArrayView* view, struct ArrowDeviceArray* array, CUstream stream,
                 struct ArrowDeviceArray* out) {
  TRY(ArrowDeviceArrayViewSetArrayAsync(view, array, &stream, &error));
  /* That has made the stream wait only if it had to read how long a data buffer is: otherwise it is up to us. */
  TRY(view->device->synchronize_event(view->device, view->sync_event, &stream, &error));
  TRY(ArrowDeviceArrayViewCopyAsync(view, ArrowDeviceCpu(), out, &stream));
  /* nanoarrow means to do this, but its synchronize_event does nothing when there is no event. */
  TRY(cuStreamSynchronize(stream));
  ArrowArrayRelease(&array->array);
  return 0;
}

/* Takes the array, and says whether it is what nanoarrow would have built. */
int peer_consume(const char* format, struct ArrowDeviceArray* array, CUstream stream) {
  struct ArrowDeviceArray expected, actual;
  struct ArrowDeviceArrayView expected_view, view;
  int equal = 0;
  TRY(build(format, &expected, &expected_view));
  ArrowDeviceArrayViewInit(&view);
  ArrowArrayViewInitFromType(&view.array_view, expected_view.array_view.storage_type);
  if (array->device_type == ARROW_DEVICE_CUDA_HOST) {
    /* The host waits, and nothing is copied: a copy of pinned memory would not wait for the stream. */
    TRY(ArrowDeviceArrayMoveToDevice(array, ArrowDeviceCpu(), &actual));
  } else {
    TRY(fetch(&view, array, stream, &actual));
  }
  TRY(ArrowDeviceArrayViewSetArray(&view, &actual, &error));
  TRY(ArrowArrayViewValidate(&view.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &error));
  TRY(ArrowArrayViewCompare(&view.array_view, &expected_view.array_view, NANOARROW_COMPARE_IDENTICAL, &equal, &error));
  ArrowDeviceArrayViewReset(&view);
  ArrowDeviceArrayViewReset(&expected_view);
  ArrowArrayRelease(&actual.array);
  ArrowArrayRelease(&expected.array);
  return equal ? 0 : failed("ArrowArrayViewCompare", EINVAL);
}
