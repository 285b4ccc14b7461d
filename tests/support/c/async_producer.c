/* An asynchronous producer that keeps to the rules, and notes what its consumer does against them. */

#include "async_peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct producer {
  struct ArrowAsyncProducer base;
  pthread_mutex_t lock;
  pthread_cond_t asked;
  int64_t allowed;
  int cancelled;
  struct async_counts* counts;
};

struct task {
  struct async_counts* counts;
  struct peer_counts* arrays;
  int64_t number;
  int fails;
};

/* Tasks are extracted on any thread, also when their producer is gone. */
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

static void* allocate(size_t size) {
  void* memory = malloc(size);
  if (memory == NULL) abort();
  return memory;
}

static void request(struct ArrowAsyncProducer* self, int64_t n) {
  struct producer* producer = self->private_data;
  pthread_mutex_lock(&producer->lock);
  producer->counts->requests++;
  if (n <= 0 || producer->cancelled) producer->counts->faults++;
  producer->counts->requested += n;
  producer->allowed += n;
  pthread_cond_signal(&producer->asked);
  pthread_mutex_unlock(&producer->lock);
}

static void cancel(struct ArrowAsyncProducer* self) {
  struct producer* producer = self->private_data;
  pthread_mutex_lock(&producer->lock);
  producer->counts->cancels++;
  producer->cancelled = 1;
  pthread_cond_signal(&producer->asked);
  pthread_mutex_unlock(&producer->lock);
}

/* 1: a batch may be passed. 0: cancelled. */
static int wait_for_request(struct producer* producer) {
  int may;
  pthread_mutex_lock(&producer->lock);
  while (producer->allowed == 0 && !producer->cancelled) pthread_cond_wait(&producer->asked, &producer->lock);
  may = !producer->cancelled;
  if (may) producer->allowed--;
  pthread_mutex_unlock(&producer->lock);
  return may;
}

static int extract_data(struct ArrowAsyncTask* self, struct ArrowDeviceArray* out) {
  struct task* task = self->private_data;
  int code = 0;
  pthread_mutex_lock(&books);
  if (out == NULL) {
    task->counts->discarded++;
  } else {
    task->counts->extracted++;
    if (task->fails) {
      memset(out, 0xAA, sizeof *out);
      code = EIO;
    } else {
      peer_make_device_array(out, ARROW_DEVICE_CUDA, task->number, task->arrays);
    }
  }
  pthread_mutex_unlock(&books);
  memset(task, 0xDD, sizeof *task);
  free(task);
  memset(self, 0xDD, sizeof *self);
  return code;
}

/* 0: the handler took it. */
static int pass_task(struct ArrowAsyncDeviceStreamHandler* handler, struct task contents) {
  struct task* task = allocate(sizeof *task);
  struct ArrowAsyncTask passed;
  int code;
  *task = contents;
  passed.extract_data = extract_data;
  passed.private_data = task;
  contents.counts->tasks++;
  code = handler->on_next_task(handler, &passed, NULL);
  /* Valid during the call only. */
  memset(&passed, 0xDD, sizeof passed);
  if (code != 0) free(task);
  return code;
}

static void report(struct ArrowAsyncDeviceStreamHandler* handler, const struct async_script* script) {
  size_t size = strlen(script->message) + 1;
  char* message = allocate(size);
  memcpy(message, script->message, size);
  handler->on_error(handler, script->code, message, NULL);
  memset(message, '#', size);
  free(message);
}

void async_produce(struct ArrowAsyncDeviceStreamHandler* handler, const struct async_script* script,
                   struct async_counts* counts, struct peer_counts* arrays) {
  struct producer* producer = allocate(sizeof *producer);
  struct ArrowSchema schema;
  int code, may = 1;

  producer->base.device_type = ARROW_DEVICE_CUDA;
  producer->base.request = request;
  producer->base.cancel = cancel;
  producer->base.additional_metadata = NULL;
  producer->base.private_data = producer;
  pthread_mutex_init(&producer->lock, NULL);
  pthread_cond_init(&producer->asked, NULL);
  producer->allowed = 0;
  producer->cancelled = 0;
  producer->counts = counts;
  handler->producer = &producer->base;

  peer_make_schema(&schema, arrays);
  counts->schemas++;
  code = handler->on_schema(handler, &schema);
  if (schema.release != NULL) counts->faults++;

  for (int64_t number = 1; code == 0 && may && number <= script->batches; ++number) {
    may = wait_for_request(producer);
    if (may) {
      struct task task = {counts, arrays, number, number == script->bad_task};
      code = pass_task(handler, task);
    }
  }
  if (code == 0 && may && script->code != 0) {
    counts->errors++;
    report(handler, script);
  } else if (code == 0 && may) {
    counts->ends++;
    code = handler->on_next_task(handler, NULL, NULL);
  }
  counts->refused = code;
  counts->released++;
  handler->release(handler);

  pthread_cond_destroy(&producer->asked);
  pthread_mutex_destroy(&producer->lock);
  memset(producer, 0xDD, sizeof *producer);
  free(producer);
}
