// What `cpp_peer.rs` exports to C and C++: a consumer, relays and a producer built on the crate.
//
// Every function that can fail says why through its `PeerText`. Nothing here shares a type with Rust beyond
// the crate's own header and the two small structs below.
#ifndef CPP_PEER_H
#define CPP_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "arrow_device_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where text goes: descriptions, error texts. UTF-8, not terminated.
struct PeerText {
  void* context;
  void (*append)(void* context, const char* bytes, size_t length);
};

// How to wait for the event of another runtime: `handle` is the `sync_event` as received. 0 means it has
// fired.
struct PeerWait {
  void* context;
  int (*wait)(void* context, int32_t device_type, int64_t device_id, void* handle);
};

struct PeerReader;

enum {
  kPeerBatch = 1,
  kPeerEnd = 0,
  kPeerFailed = -1,   // the stream failed: the code and the text are the producer's
  kPeerRefused = -2,  // the consumer refused what came, or the caller misused this interface
};

// How something leaves Rust again.
enum PeerHow {
  kPeerAsItCame = 0,  // moved
  kPeerAnew = 1,      // described, and made anew in one allocation; buffers are shared and what came is kept
  kPeerCloned = 2,    // copied whole; schemas only
};

// What goes wrong with a stream made in Rust, after so many batches.
enum {
  kPeerNothing = 0,
  kPeerFails = 1,             // with `code` and the text "relé stopped after N batches"
  kPeerFailsAsTheSystem = 2,  // with an error of the operating system
  kPeerPanics = 3,            // with the text "relé panicked after N batches"
  kPeerLeavesTheDevice = 4,   // the next batch is on a device that is not the stream's
};
struct PeerFailure {
  int64_t after;
  int kind;
  int code;
};

// Takes the stream. A null `wait.wait` means that only null events are accepted.
struct PeerReader* peer_open(struct ArrowDeviceArrayStream* stream, struct PeerWait wait,
                             struct PeerText text);
// Gives the schema away, and describes what is given.
int peer_schema(struct PeerReader* reader, int how, struct ArrowSchema* out, struct PeerText text);
// Waits for the next batch, gives it away, and describes what is given.
int peer_next(struct PeerReader* reader, int how, struct ArrowDeviceArray* out, int* code,
              struct PeerText text);
// The next batch, of which one column is moved out (B5) and given away; the rest is released at once.
int peer_next_column(struct PeerReader* reader, int64_t column, struct ArrowArray* out, struct PeerText text);
// Takes the next batch and drops it without having waited for it.
int peer_discard(struct PeerReader* reader, struct PeerText text);
void peer_close(struct PeerReader* reader);

// Moves a whole stream on without looking into it.
int peer_pass_on(struct ArrowDeviceArrayStream* stream, struct ArrowDeviceArrayStream* out,
                 struct PeerText text);
// Reads a stream to its end on a thread of Rust's.
int peer_drain_on_thread(struct ArrowDeviceArrayStream* stream, int64_t* batches, int64_t* rows,
                         struct PeerText text);
// The host form of the stream: takes it, describes schema and batches, one after the other.
int peer_describe_host(struct ArrowArrayStream* stream, struct PeerText text);

// A stream made in Rust, whose batches come from `stream`. A failure of `stream` is passed on as it is.
int peer_relay(struct ArrowDeviceArrayStream* stream, int how, struct PeerFailure failure,
               struct ArrowDeviceArrayStream* out, struct PeerText text);
int peer_relay_host(struct ArrowArrayStream* stream, int how, struct PeerFailure failure,
                    struct ArrowArrayStream* out, struct PeerText text);
// A stream of data made in Rust: the five batches of made/mod.rs.
int peer_produce(struct ArrowDeviceArrayStream* out, struct PeerText text);
// How many arrays and relays made in Rust are not released yet.
int64_t peer_live(void);

#ifdef __cplusplus
}
#endif
#endif
