/* Memory: of the host, filled with 0xCD when it is allocated and with 0xDD when it is freed. */

#include "driver.h"

#include <stdlib.h>
#include <string.h>

static CUresult allocate(struct context* context, void** base, size_t bytes, bool in_order) {
  if (bytes == 0) return INVALID_VALUE;
  struct memory* memory = calloc(1, sizeof *memory);
  memory->context = context;
  memory->bytes = bytes;
  memory->in_order = in_order;
  if (posix_memalign(&memory->base, 256, bytes) != 0) {
    free(memory);
    return OUT_OF_MEMORY;
  }
  memset(memory->base, 0xCD, bytes);
  pthread_mutex_lock(&driver_lock);
  adopt(&memory->object, MEMORY);
  pthread_mutex_unlock(&driver_lock);
  *base = memory->base;
  return SUCCESS;
}

/* With driver_lock held. */
static struct memory* find_memory(const void* base) {
  struct object* object = objects(MEMORY);
  while (object != NULL && ((struct memory*)object)->base != base) object = object->next;
  return (struct memory*)object;
}

static CUresult release(void* base) {
  pthread_mutex_lock(&driver_lock);
  struct memory* memory = find_memory(base);
  if (memory != NULL) {
    disown(&memory->object);
    memset(base, 0xDD, memory->bytes);
    free(base);
    free(memory);
  }
  pthread_mutex_unlock(&driver_lock);
  return memory == NULL ? INVALID_VALUE : SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  ENTER_CONTEXT(context);
  void* base = NULL;
  CUresult result = allocate(context, &base, bytes, false);
  *pointer = (CUdeviceptr)(uintptr_t)base;
  return result;
}

/* Memory in the order of a stream. It is there at once, which no right program can tell. */
CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, void* handle) {
  ENTER_CONTEXT(context);
  pthread_mutex_lock(&driver_lock);
  struct stream* stream = find_stream(handle, context);
  pthread_mutex_unlock(&driver_lock);
  void* base = NULL;
  CUresult result = stream == NULL ? INVALID_HANDLE : allocate(context, &base, bytes, true);
  *pointer = (CUdeviceptr)(uintptr_t)base;
  return result;
}

/* Waits for the whole context, as a real driver may; but takes memory in the order of a stream to be out of use, as a
 * real one does. */
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  ENTER_CONTEXT(context);
  void* base = (void*)(uintptr_t)pointer;
  pthread_mutex_lock(&driver_lock);
  const struct memory* memory = find_memory(base);
  if (memory == NULL || !memory->in_order) drain_context(context);
  pthread_mutex_unlock(&driver_lock);
  return release(base);
}

static void run_free(struct work* work) { release((void*)(uintptr_t)work->to); }

CUresult cuMemFreeAsync(CUdeviceptr pointer, void* stream) {
  ENTER_CONTEXT(context);
  pthread_mutex_lock(&driver_lock);
  const struct memory* memory = find_memory((void*)(uintptr_t)pointer);
  bool in_order = memory != NULL && memory->in_order;
  pthread_mutex_unlock(&driver_lock);
  return in_order ? launch(stream, context, (struct work){.run = run_free, .to = pointer}) : INVALID_VALUE;
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  ENTER_CONTEXT(context);
  return allocate(context, pointer, bytes, false);
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(context);
  (void)flags;
  return allocate(context, pointer, bytes, false);
}

CUresult cuMemFreeHost(void* pointer) {
  ENTER_CONTEXT(context);
  (void)context;
  return release(pointer);
}

static void run_copy(struct work* work) {
  memcpy((void*)(uintptr_t)work->to, (const void*)(uintptr_t)work->from, work->bytes);
  free(work->data);
}

/* Whether the driver allocated it: memory of the device, or pinned memory of the host. */
static bool is_ours(CUdeviceptr address) {
  bool found = false;
  pthread_mutex_lock(&driver_lock);
  for (struct object* object = objects(MEMORY); object != NULL && !found; object = object->next) {
    const struct memory* memory = (const struct memory*)object;
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)memory->base;
    found = address >= base && address - base < memory->bytes;
  }
  pthread_mutex_unlock(&driver_lock);
  return found;
}

static void run_fill(struct work* work) { memset((void*)(uintptr_t)work->to, work->value, work->bytes); }

static CUresult copy(void* stream, struct context* context, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return launch(stream, context, (struct work){.run = run_copy, .to = to, .from = from, .bytes = bytes});
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, void* stream) {
  ENTER_CONTEXT(context);
  return launch(stream, context, (struct work){.run = run_fill, .to = to, .value = value, .bytes = bytes});
}

/* Pageable memory is read before the call returns, as a real driver stages it, unless a test wants it otherwise. */
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, void* stream) {
  ENTER_CONTEXT(context);
  CUdeviceptr source = (CUdeviceptr)(uintptr_t)from;
  if (is_ours(source) || !stages_pageable()) return copy(stream, context, to, source, bytes);
  void* staged = malloc(bytes);
  memcpy(staged, from, bytes);
  source = (CUdeviceptr)(uintptr_t)staged;
  struct work work = {.run = run_copy, .to = to, .from = source, .bytes = bytes, .data = staged};
  CUresult result = launch(stream, context, work);
  if (result != SUCCESS) free(staged);
  return result;
}

/* Pageable memory is written before the call returns, unless a test wants it otherwise. */
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, void* stream) {
  ENTER_CONTEXT(context);
  CUdeviceptr target = (CUdeviceptr)(uintptr_t)to;
  CUresult result = copy(stream, context, target, from, bytes);
  if (result == SUCCESS && !is_ours(target) && stages_pageable()) {
    pthread_mutex_lock(&driver_lock);
    drain(find_stream(stream, context));
    pthread_mutex_unlock(&driver_lock);
  }
  return result;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void* stream) {
  ENTER_CONTEXT(context);
  return copy(stream, context, to, from, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, struct context* to_context, CUdeviceptr from, struct context* from_context,
                           size_t bytes, void* stream) {
  ENTER_CONTEXT(context);
  (void)to_context, (void)from_context;
  return copy(stream, context, to, from, bytes);
}

/* A kernel that takes its time: after `delay_us` it sets `bytes` bytes. */
CUresult test_slow_fill(void* stream, CUdeviceptr to, unsigned char value, size_t bytes, unsigned delay_us) {
  ENTER_CONTEXT(context);
  return launch(stream, context,
                (struct work){.run = run_fill, .to = to, .value = value, .bytes = bytes, .delay_us = delay_us});
}
