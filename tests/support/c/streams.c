/* Streams that answer from a script, and note every call that the specification forbids. */

#include "peers.h"

#include <stdlib.h>
#include <string.h>

struct stream {
  struct peer_script script;
  struct peer_counts* counts;
  int64_t given;
  char* text;           /* what get_last_error gives; valid until the next call */
  int failed_just_now;
};

static void* make_stream(const struct peer_script* script, struct peer_counts* counts) {
  struct stream* stream = malloc(sizeof *stream);
  if (stream == NULL) abort();
  stream->script = *script;
  stream->counts = counts;
  stream->given = 0;
  stream->text = NULL;
  stream->failed_just_now = 0;
  return stream;
}

static void forget_text(struct stream* stream) {
  if (stream->text != NULL) memset(stream->text, '#', strlen(stream->text));
  free(stream->text);
  stream->text = NULL;
}

/* Every call of get_schema and get_next starts here. */
static void enter(struct stream* stream, const void* out_release, const void* out_private_data) {
  forget_text(stream);
  stream->failed_just_now = 0;
  if (out_release != NULL || out_private_data != NULL) stream->counts->faults++;
}

static int fail(struct stream* stream, void* out, size_t size) {
  const char* message = stream->script.message;
  memset(out, 0xAA, size);
  if (message != NULL) {
    stream->text = malloc(strlen(message) + 1);
    if (stream->text == NULL) abort();
    strcpy(stream->text, message);
  }
  stream->failed_just_now = 1;
  return stream->script.code;
}

static int get_schema(struct stream* stream, struct ArrowSchema* out) {
  stream->counts->get_schema++;
  enter(stream, out->format, out->private_data);
  if (out->release != NULL) stream->counts->faults++;
  if (stream->script.fails_in_get_schema) return fail(stream, out, sizeof *out);
  peer_make_schema(out, stream->counts);
  return 0;
}

/* 1: a batch is to be given. 0: the end. -1: a failure. */
static int next(struct stream* stream, const struct ArrowArray* out) {
  stream->counts->get_next++;
  enter(stream, out->buffers, out->private_data);
  if (out->release != NULL) stream->counts->faults++;
  if (stream->given < stream->script.batches) {
    stream->given++;
    return 1;
  }
  return stream->script.code != 0 && !stream->script.fails_in_get_schema ? -1 : 0;
}

static const char* get_last_error(struct stream* stream) {
  stream->counts->get_last_error++;
  if (!stream->failed_just_now) stream->counts->faults++;
  return stream->text;
}

static void release(struct stream* stream) {
  stream->counts->streams_released++;
  forget_text(stream);
  memset(stream, 0xDD, sizeof *stream);
  free(stream);
}

static int next_array(struct ArrowArrayStream* self, struct ArrowArray* out) {
  struct stream* stream = self->private_data;
  switch (next(stream, out)) {
    case 1:
      peer_make_array(out, stream->counts);
      return 0;
    case 0:
      /* Nothing but release tells the end. */
      memset(out, 0xAA, sizeof *out);
      out->release = NULL;
      return 0;
    default:
      return fail(stream, out, sizeof *out);
  }
}

static int next_device_array(struct ArrowDeviceArrayStream* self, struct ArrowDeviceArray* out) {
  struct stream* stream = self->private_data;
  ArrowDeviceType type = self->device_type;
  switch (next(stream, &out->array)) {
    case 1:
      if (stream->given == stream->script.batches && stream->script.last_device_type != 0) {
        type = stream->script.last_device_type;
      }
      peer_make_device_array(out, type, stream->given, stream->counts);
      return 0;
    case 0:
      memset(out, 0xAA, sizeof *out);
      out->array.release = NULL;
      return 0;
    default:
      return fail(stream, out, sizeof *out);
  }
}

#define CALLBACKS(prefix, type)                                                                                \
  static int prefix##_get_schema(struct type* self, struct ArrowSchema* out) {                                 \
    return get_schema(self->private_data, out);                                                                \
  }                                                                                                            \
  static const char* prefix##_get_last_error(struct type* self) { return get_last_error(self->private_data); } \
  static void prefix##_release(struct type* self) {                                                            \
    release(self->private_data);                                                                               \
    memset(self, 0xDD, sizeof *self);                                                                          \
    self->release = NULL;                                                                                      \
  }

CALLBACKS(host, ArrowArrayStream)
CALLBACKS(device, ArrowDeviceArrayStream)

void peer_make_stream(struct ArrowArrayStream* out, const struct peer_script* script, struct peer_counts* counts) {
  out->get_schema = host_get_schema;
  out->get_next = next_array;
  out->get_last_error = script->has_no_message_callback ? NULL : host_get_last_error;
  out->release = host_release;
  out->private_data = make_stream(script, counts);
}

void peer_make_device_stream(struct ArrowDeviceArrayStream* out, const struct peer_script* script,
                             struct peer_counts* counts) {
  out->device_type = ARROW_DEVICE_CUDA_HOST;
  out->get_schema = device_get_schema;
  out->get_next = next_device_array;
  out->get_last_error = script->has_no_message_callback ? NULL : device_get_last_error;
  out->release = device_release;
  out->private_data = make_stream(script, counts);
}
