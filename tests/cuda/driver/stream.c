/* Streams: a thread each, which does its work in order. */

#include "driver.h"

#include <stdlib.h>
#include <unistd.h>

/* Streams that are alive, for cuCtxSynchronize. */
static struct stream* streams[256];

static void* serve(void* argument) {
  struct stream* stream = argument;
  pthread_mutex_lock(&driver_lock);
  for (;;) {
    while (stream->first == NULL && !stream->closing) pthread_cond_wait(&driver_changed, &driver_lock);
    struct work* work = stream->first;
    if (work == NULL) break;
    stream->first = work->next;
    pthread_mutex_unlock(&driver_lock);
    if (work->delay_us > 0) usleep(work->delay_us);
    work->run(work);
    free(work);
    pthread_mutex_lock(&driver_lock);
    stream->pending--;
    pthread_cond_broadcast(&driver_changed);
  }
  pthread_mutex_unlock(&driver_lock);
  free(stream);
  return NULL;
}

static struct stream* open_stream(struct context* context) {
  struct stream* stream = calloc(1, sizeof *stream);
  stream->context = context;
  stream->owner = pthread_self();
  adopt(&stream->object, STREAM);
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_create(&stream->thread, &detached, serve, stream);
  pthread_attr_destroy(&detached);
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
    if (streams[i] == NULL) {
      streams[i] = stream;
      return stream;
    }
  }
  abort();
}

/* The thread finishes what is queued, and frees the stream. */
void close_stream(struct stream* stream) {
  disown(&stream->object);
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
    if (streams[i] == stream) streams[i] = NULL;
  }
  stream->closing = true;
  pthread_cond_broadcast(&driver_changed);
}

/* The stream of a handle: 0 and 1 are the legacy one of the current context, 2 the calling thread's in it. */
struct stream* find_stream(void* handle, struct context* context) {
  if ((uintptr_t)handle > 2) return is_live(handle, STREAM) ? handle : NULL;
  if ((uintptr_t)handle < 2) {
    if (context->legacy == NULL) context->legacy = open_stream(context);
    return context->legacy;
  }
  struct stream* stream = context->per_thread;
  while (stream != NULL && !pthread_equal(stream->owner, pthread_self())) stream = stream->next_per_thread;
  if (stream == NULL) {
    stream = open_stream(context);
    stream->next_per_thread = context->per_thread;
    context->per_thread = stream;
  }
  return stream;
}

void queue(struct stream* stream, struct work work) {
  struct work* queued = malloc(sizeof *queued);
  *queued = work;
  queued->next = NULL;
  if (stream->first == NULL) {
    stream->first = queued;
  } else {
    stream->last->next = queued;
  }
  stream->last = queued;
  stream->pending++;
  pthread_cond_broadcast(&driver_changed);
}

/* Waits until the stream has nothing to do; it may be closed by another thread meanwhile. */
void drain(struct stream* stream) {
  while (is_live(stream, STREAM) && stream->pending > 0) pthread_cond_wait(&driver_changed, &driver_lock);
}

void drain_context(struct context* context) {
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
    if (streams[i] != NULL && streams[i]->context == context) drain(streams[i]);
  }
}

CUresult cuStreamCreate(struct stream** stream, unsigned flags) {
  ENTER_CONTEXT(context);
  if (flags > 1) return INVALID_VALUE;
  pthread_mutex_lock(&driver_lock);
  *stream = open_stream(context);
  pthread_mutex_unlock(&driver_lock);
  return SUCCESS;
}

CUresult cuStreamDestroy_v2(struct stream* stream) {
  ENTER_CONTEXT(context);
  (void)context;
  pthread_mutex_lock(&driver_lock);
  bool live = is_live(stream, STREAM);
  if (live) close_stream(stream);
  pthread_mutex_unlock(&driver_lock);
  return live ? SUCCESS : INVALID_HANDLE;
}

CUresult cuStreamGetCtx(void* handle, struct context** of) {
  ENTER();
  struct context* context = current_context();
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = (uintptr_t)handle > 2 || context != NULL ? find_stream(handle, context) : NULL;
  if (stream != NULL) *of = stream->context;
  pthread_mutex_unlock(&driver_lock);
  return stream == NULL ? INVALID_HANDLE : SUCCESS;
}

static bool capturing;

/* Whether every stream says that it captures a graph, and the driver refuses to wait, though work goes on. */
void test_capture(bool is_on) {
  pthread_mutex_lock(&driver_lock);
  capturing = is_on;
  pthread_mutex_unlock(&driver_lock);
}

bool is_capturing(void) {
  pthread_mutex_lock(&driver_lock);
  bool is_on = capturing;
  pthread_mutex_unlock(&driver_lock);
  return is_on;
}

CUresult cuStreamIsCapturing(void* handle, int* status) {
  ENTER_CONTEXT(context);
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  *status = capturing;
  pthread_mutex_unlock(&driver_lock);
  return stream == NULL ? INVALID_HANDLE : SUCCESS;
}

CUresult cuStreamSynchronize(void* handle) {
  ENTER_CONTEXT(context);
  if (is_capturing()) return CAPTURE_UNSUPPORTED;
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  if (stream != NULL) drain(stream);
  pthread_mutex_unlock(&driver_lock);
  return stream == NULL ? INVALID_HANDLE : SUCCESS;
}

CUresult cuStreamQuery(void* handle) {
  ENTER_CONTEXT(context);
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  CUresult result = stream == NULL ? INVALID_HANDLE : stream->pending > 0 ? NOT_READY : SUCCESS;
  pthread_mutex_unlock(&driver_lock);
  return result;
}

static void run_function(struct work* work) { work->function(work->data); }

CUresult launch(void* handle, struct context* context, struct work work) {
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  if (stream != NULL) queue(stream, work);
  pthread_mutex_unlock(&driver_lock);
  return stream == NULL ? INVALID_HANDLE : SUCCESS;
}

CUresult cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  ENTER_CONTEXT(context);
  return launch(stream, context, (struct work){.run = run_function, .function = function, .data = data});
}

static void run_nothing(struct work* work) { (void)work; }

/* Keeps the stream busy. */
CUresult test_delay(void* stream, unsigned delay_us) {
  ENTER_CONTEXT(context);
  return launch(stream, context, (struct work){.run = run_nothing, .delay_us = delay_us});
}
