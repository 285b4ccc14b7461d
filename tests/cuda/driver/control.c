/* What the tests ask of the driver: counts, failures, what is alive. And the state that all parts share. */

#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t driver_changed = PTHREAD_COND_INITIALIZER;

enum { CALLS = 64, NAME = 48 };

static struct {
  char name[NAME];
  int64_t count;
  /* Fails the call that makes this 0. */
  int64_t countdown;
  CUresult failure;
} calls[CALLS];

static struct object* live[KINDS];
static bool initialised;
static bool pageable_is_staged = true;
static bool gone;

static int slot_of(const char* name) {
  for (int i = 0; i < CALLS; i++) {
    if (calls[i].name[0] == '\0') {
      strncpy(calls[i].name, name, NAME - 1);
      return i;
    }
    if (strcmp(calls[i].name, name) == 0) return i;
  }
  abort();
}

CUresult entered(const char* name) {
  CUresult result = SUCCESS;
  pthread_mutex_lock(&driver_lock);
  int i = slot_of(name);
  calls[i].count++;
  if (calls[i].countdown > 0 && --calls[i].countdown == 0) {
    result = calls[i].failure;
  } else if (gone) {
    result = DEINITIALIZED;
  } else if (!initialised && strncmp(name, "cuInit", 6) != 0 && strncmp(name, "cuGetError", 10) != 0) {
    result = NOT_INITIALIZED;
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}

CUresult cuInit(unsigned flags) {
  ENTER();
  if (flags != 0) return INVALID_VALUE;
  pthread_mutex_lock(&driver_lock);
  initialised = true;
  pthread_mutex_unlock(&driver_lock);
  return SUCCESS;
}

/* A real driver answers like this to calls that come after its own exit handler. */
__attribute__((destructor)) static void at_exit(void) {
  pthread_mutex_lock(&driver_lock);
  gone = true;
  pthread_mutex_unlock(&driver_lock);
}

void adopt(struct object* object, enum kind kind) {
  object->kind = kind;
  object->previous = NULL;
  object->next = live[kind];
  if (object->next != NULL) object->next->previous = object;
  live[kind] = object;
}

void disown(struct object* object) {
  if (object->next != NULL) object->next->previous = object->previous;
  if (object->previous != NULL) {
    object->previous->next = object->next;
  } else {
    live[object->kind] = object->next;
  }
}

bool is_live(const void* handle, enum kind kind) {
  for (const struct object* object = live[kind]; object != NULL; object = object->next) {
    if (object == handle) return true;
  }
  return false;
}

struct object* objects(enum kind kind) { return live[kind]; }

/* How often a function was called since the last reset. */
int64_t test_calls(const char* name) {
  pthread_mutex_lock(&driver_lock);
  int64_t count = calls[slot_of(name)].count;
  pthread_mutex_unlock(&driver_lock);
  return count;
}

/* Calls of all functions since the last reset. */
int64_t test_all_calls(void) {
  int64_t count = 0;
  pthread_mutex_lock(&driver_lock);
  for (int i = 0; i < CALLS; i++) count += calls[i].count;
  pthread_mutex_unlock(&driver_lock);
  return count;
}

/* The nth call of this function from now on fails, once, without doing anything. */
void test_fail(const char* name, int64_t nth, CUresult failure) {
  pthread_mutex_lock(&driver_lock);
  int i = slot_of(name);
  calls[i].countdown = nth;
  calls[i].failure = failure;
  pthread_mutex_unlock(&driver_lock);
}

/* Whether a failure that was told has not happened yet. */
bool test_fail_is_pending(void) {
  bool pending = false;
  pthread_mutex_lock(&driver_lock);
  for (int i = 0; i < CALLS; i++) pending = pending || calls[i].countdown > 0;
  pthread_mutex_unlock(&driver_lock);
  return pending;
}

/* Forgets counts and failures; what is alive stays so. */
void test_reset(void) {
  pthread_mutex_lock(&driver_lock);
  for (int i = 0; i < CALLS; i++) {
    calls[i].count = 0;
    calls[i].countdown = 0;
  }
  pthread_mutex_unlock(&driver_lock);
}

/* How many objects of a kind (1 contexts, 2 streams, 3 events, 4 allocations) are alive. */
int64_t test_live(int kind) {
  int64_t count = 0;
  pthread_mutex_lock(&driver_lock);
  for (const struct object* object = live[kind]; object != NULL; object = object->next) count++;
  pthread_mutex_unlock(&driver_lock);
  return count;
}

/* Lets the driver answer as at the exit of the process, or as ever. */
void test_gone(bool is_gone) {
  pthread_mutex_lock(&driver_lock);
  gone = is_gone;
  pthread_mutex_unlock(&driver_lock);
}

bool stages_pageable(void) {
  pthread_mutex_lock(&driver_lock);
  bool staged = pageable_is_staged;
  pthread_mutex_unlock(&driver_lock);
  return staged;
}

/* Whether copies of pageable memory are done with it when the call returns, as most are; nobody may count on it. */
void test_stage_pageable(bool staged) {
  pthread_mutex_lock(&driver_lock);
  pageable_is_staged = staged;
  pthread_mutex_unlock(&driver_lock);
}

/* The flags of a live event; -1 if it is none. */
int64_t test_event_flags(void* event) {
  pthread_mutex_lock(&driver_lock);
  int64_t flags = is_live(event, EVENT) ? (int64_t)((struct event*)event)->flags : -1;
  pthread_mutex_unlock(&driver_lock);
  return flags;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  ENTER();
  static _Thread_local char name[32];
  snprintf(name, sizeof name, "error %d", error);
  *text = name;
  return SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  ENTER();
  static _Thread_local char string[48];
  snprintf(string, sizeof string, "the test driver's error %d", error);
  *text = string;
  return SUCCESS;
}
