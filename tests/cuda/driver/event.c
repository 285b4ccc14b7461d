/* Events. Whoever waits holds the recording, not the event: it may be recorded anew or destroyed meanwhile. */

#include "driver.h"

#include <stdlib.h>

void let_go(struct recording* recording) {
  if (recording != NULL && --recording->references == 0) free(recording);
}

static void run_record(struct work* work) {
  pthread_mutex_lock(&driver_lock);
  work->recording->done = true;
  pthread_cond_broadcast(&driver_changed);
  let_go(work->recording);
  pthread_mutex_unlock(&driver_lock);
}

static void run_wait(struct work* work) {
  pthread_mutex_lock(&driver_lock);
  while (!work->recording->done) pthread_cond_wait(&driver_changed, &driver_lock);
  let_go(work->recording);
  pthread_mutex_unlock(&driver_lock);
}

CUresult cuEventCreate(struct event** out, unsigned flags) {
  ENTER_CONTEXT(context);
  struct event* event = calloc(1, sizeof *event);
  event->context = context;
  event->flags = flags;
  pthread_mutex_lock(&driver_lock);
  adopt(&event->object, EVENT);
  pthread_mutex_unlock(&driver_lock);
  *out = event;
  return SUCCESS;
}

CUresult cuEventDestroy_v2(struct event* event) {
  ENTER_CONTEXT(context);
  (void)context;
  pthread_mutex_lock(&driver_lock);
  bool live = is_live(event, EVENT);
  if (live) {
    disown(&event->object);
    let_go(event->recording);
    free(event);
  }
  pthread_mutex_unlock(&driver_lock);
  return live ? SUCCESS : INVALID_HANDLE;
}

CUresult cuEventRecord(struct event* event, void* handle) {
  ENTER_CONTEXT(context);
  CUresult result = INVALID_HANDLE;
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  /* An event can only be recorded in its own context. */
  if (stream != NULL && is_live(event, EVENT) && event->context == stream->context) {
    struct recording* recording = calloc(1, sizeof *recording);
    recording->references = 2;
    let_go(event->recording);
    event->recording = recording;
    queue(stream, (struct work){.run = run_record, .recording = recording});
    result = SUCCESS;
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}

CUresult cuStreamWaitEvent(void* handle, struct event* event, unsigned flags) {
  ENTER_CONTEXT(context);
  CUresult result = flags > 1 ? INVALID_VALUE : INVALID_HANDLE;
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  if (result == INVALID_HANDLE && stream != NULL && is_live(event, EVENT)) {
    /* One that was never recorded holds nobody back. */
    if (event->recording != NULL) {
      event->recording->references++;
      queue(stream, (struct work){.run = run_wait, .recording = event->recording});
    }
    result = SUCCESS;
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}

CUresult cuEventQuery(struct event* event) {
  ENTER_CONTEXT(context);
  (void)context;
  CUresult result = INVALID_HANDLE;
  pthread_mutex_lock(&driver_lock);
  if (is_live(event, EVENT)) result = event->recording == NULL || event->recording->done ? SUCCESS : NOT_READY;
  pthread_mutex_unlock(&driver_lock);
  return result;
}

CUresult cuEventSynchronize(struct event* event) {
  ENTER_CONTEXT(context);
  (void)context;
  if (is_capturing()) return CAPTURE_UNSUPPORTED;
  CUresult result = INVALID_HANDLE;
  pthread_mutex_lock(&driver_lock);
  if (is_live(event, EVENT)) {
    struct recording* recording = event->recording;
    if (recording != NULL) {
      recording->references++;
      while (!recording->done) pthread_cond_wait(&driver_changed, &driver_lock);
      let_go(recording);
    }
    result = SUCCESS;
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}

/* Events with timing disabled (flag 2) have none; the others' is not kept here either. */
CUresult cuEventElapsedTime(float* ms, struct event* start, struct event* end) {
  ENTER_CONTEXT(context);
  (void)context;
  CUresult result = INVALID_HANDLE;
  pthread_mutex_lock(&driver_lock);
  if (is_live(start, EVENT) && is_live(end, EVENT) && !((start->flags | end->flags) & 2)) {
    *ms = 1;
    result = SUCCESS;
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}
