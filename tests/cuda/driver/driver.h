/* A CUDA driver for tests: the calls that cudarc and nanoarrow make for contexts, streams, events, memory and copies,
 * over host memory. Each stream is a thread with a queue, so that what does not wait comes too early. It checks more
 * than a real one: handles that are not live, calls without a current context, work in another context's stream.
 *
 * Every call is counted by name and can be told to fail. The functions that begin with test_ are for the tests.
 */
#ifndef TEST_DRIVER_H
#define TEST_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  DEINITIALIZED = 4,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  CAPTURE_UNSUPPORTED = 900,
};

enum { DEVICES = 2 };

/* What a live object is; also tells that it is one. */
enum kind { CONTEXT = 1, STREAM, EVENT, MEMORY, KINDS };

struct object {
  enum kind kind;
  struct object* next;
  struct object* previous;
};

struct context {
  struct object object;
  CUdevice device;
  /* Of a primary context: how often it is retained. */
  int retained;
  bool primary;
  /* The stream of the handles 0 and 1, and those of 2, one a thread. */
  struct stream* legacy;
  struct stream* per_thread;
};

/* One recording of an event: what is waited for. Events are recorded anew and destroyed while others still wait. */
struct recording {
  int references;
  bool done;
};

struct event {
  struct object object;
  struct context* context;
  unsigned flags;
  struct recording* recording;
};

struct work {
  void (*run)(struct work*);
  struct work* next;
  struct recording* recording;
  void (*function)(void*);
  void* data;
  CUdeviceptr to;
  CUdeviceptr from;
  size_t bytes;
  unsigned char value;
  unsigned delay_us;
};

struct stream {
  struct object object;
  struct context* context;
  pthread_t thread;
  pthread_t owner;
  struct stream* next_per_thread;
  struct work* first;
  struct work* last;
  /* Work that is queued or running. */
  int pending;
  bool closing;
};

struct memory {
  struct object object;
  struct context* context;
  void* base;
  size_t bytes;
  /* Allocated in the order of a stream. */
  bool in_order;
};

/* One lock for everything but the work itself, and one condition that says that something changed. */
extern pthread_mutex_t driver_lock;
extern pthread_cond_t driver_changed;

/* Counts the call; gives the failure that it was told to, or SUCCESS. Every function of the driver begins with it. */
CUresult entered(const char* name);
#define ENTER()                                \
  do {                                         \
    CUresult told = entered(__func__);         \
    if (told != SUCCESS) return told;          \
  } while (0)

/* For functions that need a current context. */
#define ENTER_CONTEXT(context)                 \
  ENTER();                                     \
  struct context* context = current_context(); \
  if (context == NULL) return INVALID_CONTEXT

/* With driver_lock held. */
void adopt(struct object* object, enum kind kind);
void disown(struct object* object);
bool is_live(const void* handle, enum kind kind);
struct object* objects(enum kind kind);

struct stream* find_stream(void* handle, struct context* context);
void close_stream(struct stream* stream);
void queue(struct stream* stream, struct work work);
void let_go(struct recording* recording);
void drain(struct stream* stream);
void drain_context(struct context* context);

/* Without it. */
struct context* current_context(void);
bool stages_pageable(void);
bool is_capturing(void);
CUresult launch(void* stream, struct context* context, struct work work);

#endif
