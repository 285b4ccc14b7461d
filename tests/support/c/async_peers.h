/* An asynchronous producer and handler in C, for tests/async/tests/c_peer.rs, which declares the same in Rust. */
#ifndef ARROW_DEVICE_ABI_TESTS_ASYNC_PEERS_H
#define ARROW_DEVICE_ABI_TESTS_ASYNC_PEERS_H

#include "peers.h"

/* What a producer does. */
struct async_script {
  int64_t batches;     /* that it passes before the end, if it is not cancelled */
  const char* message; /* of the error */
  int32_t code;        /* of an error in place of the end; 0 for none */
  int32_t bad_task;    /* the task, counted from 1, whose extracting fails with the code EIO, and then an error; 0 for none */
};

/* The books of a producer or of a handler. They outlive it; to be read when its threads have ended. */
struct async_counts {
  int64_t requested; /* the sum of all requests */
  int64_t requests;
  int64_t cancels;
  int64_t schemas;
  int64_t tasks; /* passed, or seen by a handler */
  int64_t extracted;
  int64_t discarded;
  int64_t ends;
  int64_t errors;
  int64_t released;
  int64_t rows; /* that a handler has seen */
  int64_t faults; /* what the specification forbids */
  int32_t refused; /* the code with which a handler refused */
  char text[64]; /* of the error */
};

/* Drives the handler on this thread to its release, waiting for requests that other threads make. The producer is freed
 * then, and so spoiled that a call afterwards is seen. The schema and the arrays are those of peer_make_schema and
 * peer_make_array, on CUDA. */
void async_produce(struct ArrowAsyncDeviceStreamHandler* handler, const struct async_script* script,
                   struct async_counts* counts, struct peer_counts* arrays);

/* What a handler does. */
struct async_answers {
  int64_t first;        /* to request when the schema comes; 0 for nothing */
  int64_t each;         /* to request with each task; 0 for nothing */
  int64_t cancel_at;    /* the task, counted from 1, at which to cancel three times; 0 for none */
  int64_t refuse_at;    /* the task at which to answer with `code`, having extracted it or not */
  int32_t code;
  int32_t refuses_schema; /* with `code` */
  int32_t leaves_refused; /* does not extract the task that it refuses */
};

/* A live handler in its own memory, which its release spoils and frees. */
struct ArrowAsyncDeviceStreamHandler* async_make_handler(const struct async_answers* answers,
                                                         struct async_counts* counts);

#endif
