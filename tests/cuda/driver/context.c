/* Devices, contexts, and the stack of current contexts that each thread has. */

#include "driver.h"

#include <stdlib.h>

static struct context* primary[DEVICES];

enum { DEPTH = 16 };
static _Thread_local struct context* stack[DEPTH];
static _Thread_local int depth;

CUresult cuDeviceGetCount(int* count) {
  ENTER();
  *count = DEVICES;
  return SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= DEVICES) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

enum { MEMORY_POOLS_SUPPORTED = 115 };
static bool has_pools;

/* Whether contexts that are made from now on allocate in the order of streams. nanoarrow does not ask. */
void test_pools(bool are_there) {
  pthread_mutex_lock(&driver_lock);
  has_pools = are_there;
  pthread_mutex_unlock(&driver_lock);
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  ENTER();
  if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
  pthread_mutex_lock(&driver_lock);
  *value = attribute == MEMORY_POOLS_SUPPORTED && has_pools;
  pthread_mutex_unlock(&driver_lock);
  return SUCCESS;
}

static struct context* new_context(CUdevice device, bool is_primary) {
  struct context* context = calloc(1, sizeof *context);
  context->device = device;
  context->primary = is_primary;
  adopt(&context->object, CONTEXT);
  return context;
}

static void destroy_context(struct context* context) {
  if (context->legacy != NULL) close_stream(context->legacy);
  while (context->per_thread != NULL) {
    struct stream* stream = context->per_thread;
    context->per_thread = stream->next_per_thread;
    close_stream(stream);
  }
  disown(&context->object);
  free(context);
}

CUresult cuDevicePrimaryCtxRetain(struct context** context, CUdevice device) {
  ENTER();
  if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
  pthread_mutex_lock(&driver_lock);
  if (primary[device] == NULL) primary[device] = new_context(device, true);
  primary[device]->retained++;
  *context = primary[device];
  pthread_mutex_unlock(&driver_lock);
  return SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER();
  if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
  pthread_mutex_lock(&driver_lock);
  struct context* context = primary[device];
  CUresult result = context == NULL ? INVALID_CONTEXT : SUCCESS;
  if (context != NULL && --context->retained == 0) {
    primary[device] = NULL;
    destroy_context(context);
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}

CUresult cuCtxCreate_v3(struct context** context, void* params, int n_params, unsigned flags, CUdevice device) {
  ENTER();
  (void)params, (void)flags;
  if (device < 0 || device >= DEVICES || n_params != 0) return INVALID_VALUE;
  pthread_mutex_lock(&driver_lock);
  *context = new_context(device, false);
  pthread_mutex_unlock(&driver_lock);
  if (depth < DEPTH) stack[depth++] = *context;
  return SUCCESS;
}

CUresult cuCtxDestroy_v2(struct context* context) {
  ENTER();
  pthread_mutex_lock(&driver_lock);
  bool live = is_live(context, CONTEXT);
  if (live) destroy_context(context);
  pthread_mutex_unlock(&driver_lock);
  /* One that is current on the calling thread leaves its stack. */
  if (depth > 0 && stack[depth - 1] == context) depth--;
  return live ? SUCCESS : INVALID_CONTEXT;
}

/* The current context, if it is still alive. */
struct context* current_context(void) {
  struct context* context = depth == 0 ? NULL : stack[depth - 1];
  pthread_mutex_lock(&driver_lock);
  bool live = context != NULL && is_live(context, CONTEXT);
  pthread_mutex_unlock(&driver_lock);
  return live ? context : NULL;
}

CUresult cuCtxGetCurrent(struct context** context) {
  ENTER();
  *context = depth == 0 ? NULL : stack[depth - 1];
  return SUCCESS;
}

CUresult cuCtxSetCurrent(struct context* context) {
  ENTER();
  if (context == NULL) {
    if (depth > 0) depth--;
    return SUCCESS;
  }
  pthread_mutex_lock(&driver_lock);
  bool live = is_live(context, CONTEXT);
  pthread_mutex_unlock(&driver_lock);
  if (!live) return INVALID_CONTEXT;
  if (depth == 0) depth = 1;
  stack[depth - 1] = context;
  return SUCCESS;
}

CUresult cuCtxPushCurrent_v2(struct context* context) {
  ENTER();
  if (depth == DEPTH) return OUT_OF_MEMORY;
  stack[depth++] = context;
  return SUCCESS;
}

CUresult cuCtxPopCurrent_v2(struct context** context) {
  ENTER();
  if (depth == 0) return INVALID_CONTEXT;
  depth--;
  if (context != NULL) *context = stack[depth];
  return SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  ENTER_CONTEXT(context);
  *device = context->device;
  return SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  ENTER_CONTEXT(context);
  pthread_mutex_lock(&driver_lock);
  drain_context(context);
  pthread_mutex_unlock(&driver_lock);
  return SUCCESS;
}

/* How deep the calling thread's stack of contexts is. */
int test_depth(void) { return depth; }
