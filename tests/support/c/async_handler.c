/* An asynchronous handler that keeps to the rules, and notes what its producer does against them. */

#include "async_peers.h"

#include <stdlib.h>
#include <string.h>

struct handler {
  struct ArrowAsyncDeviceStreamHandler base;
  struct async_answers answers;
  struct async_counts* counts;
  int busy;
  int over; /* nothing may follow but release */
};

static struct handler* enter(struct ArrowAsyncDeviceStreamHandler* self) {
  struct handler* handler = self->private_data;
  if (handler->busy || handler->over || self->producer == NULL) handler->counts->faults++;
  handler->busy = 1;
  return handler;
}

static int leave(struct handler* handler, int code) {
  handler->busy = 0;
  if (code != 0) {
    handler->over = 1;
    handler->counts->refused = code;
  }
  return code;
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowSchema* schema) {
  struct handler* handler = enter(self);
  struct ArrowSchema moved;
  if (handler->counts->schemas++ != 0) handler->counts->faults++;
  peer_move_schema(schema, &moved);
  moved.release(&moved);
  if (handler->answers.refuses_schema) return leave(handler, handler->answers.code);
  if (handler->answers.first != 0) {
    handler->counts->requested += handler->answers.first;
    self->producer->request(self->producer, handler->answers.first);
  }
  return leave(handler, 0);
}

static void extract(struct handler* handler, struct ArrowAsyncTask* task) {
  /* The target is not initialised (C5). */
  struct ArrowDeviceArray array;
  memset(&array, 0xAA, sizeof array);
  if (task->extract_data(task, &array) != 0) {
    handler->counts->faults++;
    return;
  }
  handler->counts->extracted++;
  handler->counts->rows += array.array.length;
  if (array.device_type != handler->base.producer->device_type) handler->counts->faults++;
  array.array.release(&array.array);
  if (array.array.release != NULL) handler->counts->faults++;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowAsyncTask* task, const char* metadata) {
  struct handler* handler = enter(self);
  struct async_counts* counts = handler->counts;
  if (counts->schemas != 1 || metadata != NULL) counts->faults++;
  if (task == NULL) {
    counts->ends++;
    handler->over = 1;
    return leave(handler, 0);
  }
  if (++counts->tasks > counts->requested) counts->faults++;
  if (counts->tasks == handler->answers.refuse_at) {
    if (!handler->answers.leaves_refused) extract(handler, task);
    return leave(handler, handler->answers.code);
  }
  if (counts->tasks % 2 == 0) {
    /* Every other one is discarded, by a copy. */
    struct ArrowAsyncTask copy = *task;
    memset(task, 0xDD, sizeof *task);
    counts->discarded++;
    if (copy.extract_data(&copy, NULL) != 0) counts->faults++;
  } else {
    extract(handler, task);
  }
  if (counts->tasks == handler->answers.cancel_at) {
    for (int i = 0; i < 3; ++i) {
      counts->cancels++;
      self->producer->cancel(self->producer);
    }
  }
  if (handler->answers.each != 0) {
    counts->requested += handler->answers.each;
    self->producer->request(self->producer, handler->answers.each);
  }
  return leave(handler, 0);
}

static void on_error(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message, const char* metadata) {
  struct handler* handler = enter(self);
  if (metadata != NULL) handler->counts->faults++;
  handler->counts->errors++;
  handler->counts->refused = code;
  if (message != NULL) strncat(handler->counts->text, message, sizeof handler->counts->text - 1);
  leave(handler, 0);
  handler->over = 1;
}

static void release(struct ArrowAsyncDeviceStreamHandler* self) {
  struct handler* handler = self->private_data;
  if (handler->busy) handler->counts->faults++;
  handler->counts->released++;
  memset(handler, 0xDD, sizeof *handler);
  free(handler);
}

struct ArrowAsyncDeviceStreamHandler* async_make_handler(const struct async_answers* answers,
                                                         struct async_counts* counts) {
  struct handler* handler = malloc(sizeof *handler);
  if (handler == NULL) abort();
  memset(handler, 0xAA, sizeof *handler);
  handler->base.on_schema = on_schema;
  handler->base.on_next_task = on_next_task;
  handler->base.on_error = on_error;
  handler->base.release = release;
  handler->base.producer = NULL;
  handler->base.private_data = handler;
  handler->answers = *answers;
  handler->counts = counts;
  handler->busy = 0;
  handler->over = 0;
  return &handler->base;
}
