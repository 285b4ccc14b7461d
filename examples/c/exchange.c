/* C and Rust exchange batches and streams, in both directions, by the structs of arrow_device_abi.h alone.
 *
 *     cargo build --example rust_side
 *     cc -I include examples/c/exchange.c -L target/debug/examples -lrust_side -lpthread -o exchange
 *     LD_LIBRARY_PATH=target/debug/examples ./exchange
 *
 * Who owns what at each step is drawn in docs/ffi.md. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rust_side.h"

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);       \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

/* ---- What a consumer does */

/* Moving: the bytes are copied, the source is marked released, and nothing is called. */
static void move_array(struct ArrowDeviceArray* from, struct ArrowDeviceArray* to) {
  memcpy(to, from, sizeof(*to));
  from->array.release = NULL;
}

static const int64_t* values_of(const struct ArrowArray* column) {
  return (const int64_t*)column->buffers[1] + column->offset;
}

static void a_batch_of_rust(void) {
  struct ArrowSchema schema;
  struct ArrowDeviceArray array, moved;
  struct ArrowArray column;

  CHECK(rust_make_batch(10, 3, &schema, &array) == 0);
  CHECK(rust_alive() == 1);
  CHECK(strcmp(schema.format, "+s") == 0 && strcmp(schema.children[0]->name, "value") == 0);
  CHECK(array.device_type == ARROW_DEVICE_CPU && array.sync_event == NULL);

  move_array(&array, &moved);
  CHECK(array.array.release == NULL && moved.array.length == 3);

  /* A child can be moved out too, and lives on when its parent is released. */
  column = *moved.array.children[0];
  moved.array.children[0]->release = NULL;
  moved.array.release(&moved.array);
  CHECK(moved.array.release == NULL && rust_alive() == 1);
  CHECK(values_of(&column)[0] == 10 && values_of(&column)[2] == 12);
  column.release(&column);
  schema.release(&schema);
  CHECK(rust_alive() == 0);
}

static void a_stream_of_rust(void) {
  struct ArrowDeviceArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  int64_t sum = 0;
  int fails, code;

  for (fails = 0; fails < 2; fails++) {
    CHECK(rust_make_stream(3, fails, &stream) == 0);
    CHECK(stream.device_type == ARROW_DEVICE_CPU);
    CHECK(stream.get_schema(&stream, &schema) == 0);
    /* A released array is the end; the code alone says whether there is one. */
    while ((code = stream.get_next(&stream, &array)) == 0 && array.array.release != NULL) {
      sum += values_of(array.array.children[0])[1];
      array.array.release(&array.array);
    }
    CHECK(code == (fails ? EIO : 0));
    /* Only after a failure, and only until the next call. */
    if (fails) CHECK(strcmp(stream.get_last_error(&stream), "the last batch got lost") == 0);
    stream.release(&stream);
    /* What came out of a stream outlives it. */
    CHECK(schema.n_children == 1);
    schema.release(&schema);
  }
  CHECK(sum == 2 * (1 + 3 + 5) && rust_alive() == 0);
}

/* ---- What a producer does */

/* The memory of a batch of ours; its structs point into it. Their addresses are ours as long as nobody released them,
 * though the base struct may be moved anywhere. */
struct Batch {
  int64_t values[4];
  const void* buffers[1];
  const void* value_buffers[2];
  struct ArrowArray value;
  struct ArrowArray* children[1];
  void* event; /* the handle; `sync_event` is the address of this */
  pthread_t writer;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int fired;
};

static int batches_alive = 0;

static void release_child(struct ArrowArray* child) {
  child->release = NULL; /* its memory is its parent's */
}

/* Frees everything, the event included; may be called on any thread, for a struct at any address. */
static void release_batch(struct ArrowArray* array) {
  struct Batch* batch = array->private_data;
  if (array->children[0]->release != NULL) array->children[0]->release(array->children[0]);
  pthread_join(batch->writer, NULL);
  pthread_mutex_destroy(&batch->lock);
  pthread_cond_destroy(&batch->changed);
  free(batch);
  batches_alive--;
  array->release = NULL;
}

/* The work that fills the buffer. It is done before the event fires. */
static void* write_values(void* argument) {
  static const struct timespec a_while = {0, 20 * 1000 * 1000};
  struct Batch* batch = argument;
  int row;
  nanosleep(&a_while, NULL);
  for (row = 0; row < 4; row++) batch->values[row] = 100 + row;
  pthread_mutex_lock(&batch->lock);
  batch->fired = 1;
  pthread_cond_broadcast(&batch->changed);
  pthread_mutex_unlock(&batch->lock);
  return NULL;
}

static int wait_for(void* context, void* handle) {
  struct Batch* batch = handle;
  pthread_mutex_lock(&batch->lock);
  while (!batch->fired) pthread_cond_wait(&batch->changed, &batch->lock);
  pthread_mutex_unlock(&batch->lock);
  ++*(int*)context;
  return 0;
}

/* Stands for pinned memory that a GPU writes: exported at once, to be read when the event has fired. */
static void make_batch(struct ArrowDeviceArray* out) {
  struct Batch* batch = calloc(1, sizeof(*batch));
  CHECK(batch != NULL);
  batch->value_buffers[1] = batch->values;
  batch->value.length = 4;
  batch->value.n_buffers = 2;
  batch->value.buffers = batch->value_buffers;
  batch->value.release = release_child;
  batch->children[0] = &batch->value;
  batch->event = batch;
  pthread_mutex_init(&batch->lock, NULL);
  pthread_cond_init(&batch->changed, NULL);

  memset(out, 0, sizeof(*out)); /* `reserved` too */
  out->array.length = 4;
  out->array.n_buffers = 1;
  out->array.buffers = batch->buffers;
  out->array.n_children = 1;
  out->array.children = batch->children;
  out->array.release = release_batch;
  out->array.private_data = batch;
  out->device_type = ARROW_DEVICE_CUDA_HOST;
  out->device_id = 0;
  out->sync_event = &batch->event;
  batches_alive++;
  CHECK(pthread_create(&batch->writer, NULL, write_values, batch) == 0);
}

/* Its texts are literals, and its child static: there is nothing to free. */
static void release_schema(struct ArrowSchema* schema) { schema->release = NULL; }

static void make_schema(struct ArrowSchema* out) {
  static struct ArrowSchema value;
  static struct ArrowSchema* children[] = {&value};
  memset(&value, 0, sizeof(value));
  value.format = "l";
  value.name = "value";
  value.release = release_schema;
  memset(out, 0, sizeof(*out));
  out->format = "+s";
  out->n_children = 1;
  out->children = children;
  out->release = release_schema;
}

static void a_batch_of_c(void) {
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  int waits = 0;
  int64_t sum = 0;
  const struct RustWait wait = {wait_for, &waits}, cannot_wait = {NULL, NULL};

  make_schema(&schema);
  make_batch(&array);
  CHECK(rust_sum_batch(&schema, &array, wait, &sum) == 0);
  /* Rust has moved both out and released them. The structs themselves are ours. */
  CHECK(schema.release == NULL && array.array.release == NULL && batches_alive == 0);
  CHECK(sum == 100 + 101 + 102 + 103 && waits == 1);

  /* Who cannot wait for the event does not get at the buffers, and releases all the same. */
  make_schema(&schema);
  make_batch(&array);
  CHECK(rust_sum_batch(&schema, &array, cannot_wait, &sum) == EINVAL);
  CHECK(strstr(rust_error(), "no way to wait") != NULL && batches_alive == 0);

  /* A released struct is no batch. */
  CHECK(rust_sum_batch(&schema, &array, wait, &sum) == EINVAL);
  CHECK(strstr(rust_error(), "released") != NULL);
}

/* ---- A producer of streams */

struct Source {
  int left;
  int fails;
};

static int get_schema(struct ArrowDeviceArrayStream* stream, struct ArrowSchema* out) {
  (void)stream;
  make_schema(out);
  return 0;
}

/* `out` is only written: what is there may be anything. */
static int get_next(struct ArrowDeviceArrayStream* stream, struct ArrowDeviceArray* out) {
  struct Source* source = stream->private_data;
  if (source->left-- > 0) {
    make_batch(out);
  } else if (source->fails) {
    return ENOSPC;
  } else {
    memset(out, 0, sizeof(*out));
  }
  return 0;
}

static const char* get_last_error(struct ArrowDeviceArrayStream* stream) {
  (void)stream;
  return "the disk is full";
}

static void release_stream(struct ArrowDeviceArrayStream* stream) {
  free(stream->private_data);
  stream->release = NULL;
}

static void a_stream_of_c(void) {
  int fails, waits = 0;
  int64_t sum = 0;
  const struct RustWait wait = {wait_for, &waits};

  for (fails = 0; fails < 2; fails++) {
    struct ArrowDeviceArrayStream stream;
    struct Source* source = malloc(sizeof(*source));
    CHECK(source != NULL);
    source->left = 2;
    source->fails = fails;
    stream.device_type = ARROW_DEVICE_CUDA_HOST;
    stream.get_schema = get_schema;
    stream.get_next = get_next;
    stream.get_last_error = get_last_error;
    stream.release = release_stream;
    stream.private_data = source;
    CHECK(rust_sum_stream(&stream, wait, &sum) == (fails ? ENOSPC : 0));
    CHECK(stream.release == NULL && batches_alive == 0);
  }
  CHECK(sum == 2 * (100 + 101 + 102 + 103) && waits == 4);
  CHECK(strstr(rust_error(), "the disk is full") != NULL);
}

int main(void) {
  a_batch_of_rust();
  a_stream_of_rust();
  a_batch_of_c();
  a_stream_of_c();
  printf("C and Rust: batches, events and streams, in both directions\n");
  return 0;
}
