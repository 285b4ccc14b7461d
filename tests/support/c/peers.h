/* C producers and consumers for tests/c_peer.rs, which declares the same in Rust. */
#ifndef ARROW_DEVICE_ABI_TESTS_PEERS_H
#define ARROW_DEVICE_ABI_TESTS_PEERS_H

#include "arrow_device_abi.h"

/* Nodes of the tree that peer_make_array and peer_make_schema make. */
enum { NODE_ROOT, NODE_INTS, NODE_KINDS, NODE_DICTIONARY, NODES };

/* The books of one producer. Its owner is the test, and it outlives all structs. */
struct peer_counts {
  int64_t released[NODES]; /* calls of release, by node */
  int64_t events_destroyed;
  int64_t streams_released;
  int64_t get_schema;
  int64_t get_next;
  int64_t get_last_error;
  int64_t faults; /* calls that the specification forbids */
};

/* What a stream does: so many batches of the tree, then a failure, or the end if `code` is 0. */
struct peer_script {
  int64_t batches;
  const char* message; /* may be null */
  int32_t code;
  int32_t has_no_message_callback;
  int32_t fails_in_get_schema; /* with `code`, instead of after the batches */
  ArrowDeviceType last_device_type; /* of the last batch; 0: the stream's */
};

/* The handle of every event. */
#define PEER_HANDLE ((void*)(uintptr_t)0xDEADBEE8u)

/* The tree: `+s` of 4 rows, with `i` [1, null, 3, 4] and a dictionary-encoded `c` of `u` [b, a, b, null]. `out` may be
 * uninitialised, in all of these. */
void peer_make_array(struct ArrowArray* out, struct peer_counts* counts);
void peer_make_schema(struct ArrowSchema* out, struct peer_counts* counts);
/* With an event; padding and `reserved` are left as garbage. */
void peer_make_device_array(struct ArrowDeviceArray* out, ArrowDeviceType type, int64_t id, struct peer_counts* counts);
/* Its release moves the first child to `kept` before it releases the rest. */
void peer_make_hoarder(struct ArrowArray* out, struct ArrowArray* kept, struct peer_counts* counts);

/* Structs whose release counts NODE_ROOT and forgets to set itself to null. */
void peer_make_forgetful_schema(struct ArrowSchema* out, struct peer_counts* counts);
void peer_make_forgetful_array(struct ArrowArray* out, struct peer_counts* counts);
void peer_make_forgetful_stream(struct ArrowArrayStream* out, struct peer_counts* counts);
void peer_make_forgetful_device_array(struct ArrowDeviceArray* out, struct peer_counts* counts);
void peer_make_forgetful_device_stream(struct ArrowDeviceArrayStream* out, struct peer_counts* counts);

void peer_make_stream(struct ArrowArrayStream* out, const struct peer_script* script, struct peer_counts* counts);
void peer_make_device_stream(struct ArrowDeviceArrayStream* out, const struct peer_script* script,
                             struct peer_counts* counts);

/* A move as the specification has it. The target may be uninitialised. */
void peer_move_schema(struct ArrowSchema* source, struct ArrowSchema* target);
void peer_move_array(struct ArrowArray* source, struct ArrowArray* target);
void peer_move_device_array(struct ArrowDeviceArray* source, struct ArrowDeviceArray* target);
void peer_move_stream(struct ArrowArrayStream* source, struct ArrowArrayStream* target);
void peer_move_device_stream(struct ArrowDeviceArrayStream* source, struct ArrowDeviceArrayStream* target);

/* Releases a live struct; 1 if its release set itself to null, as it has to. */
int peer_release_schema(struct ArrowSchema* schema);
int peer_release_array(struct ArrowArray* array);

/* The sum of the tree's `i`, without its nulls. */
int64_t peer_sum(const struct ArrowArray* array);

/* Reads a stream to its end into out-structs that hold garbage, and releases all. Gives the code of the failure or 0,
 * the number of arrays and of their rows, and the text of the failure, cut to fit. */
int peer_drain_stream(struct ArrowArrayStream* stream, int64_t* arrays, int64_t* rows, char text[64]);
int peer_drain_device_stream(struct ArrowDeviceArrayStream* stream, int64_t* arrays, int64_t* rows, char text[64]);

#endif
