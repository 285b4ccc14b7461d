// What `async_peer.rs` exports to C++: a receiver and a driver of asynchronous device streams, built on the crate.
#ifndef ASYNC_PEER_H
#define ASYNC_PEER_H

#include "cpp_peer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct AsyncPeer;

// Fills the caller's handler, for a producer. `prefetch` 0: by hand.
struct AsyncPeer* async_receive(struct ArrowAsyncDeviceStreamHandler* handler, uint32_t prefetch);
// Waits for the schema and gives it away: 0, or kPeerFailed.
int async_schema(struct AsyncPeer* peer, struct ArrowSchema* out, int* code, struct PeerText text);
// Waits for the next batch and gives it away: kPeerBatch, kPeerEnd, kPeerFailed.
int async_next(struct AsyncPeer* peer, struct ArrowDeviceArray* out, int* code, struct PeerText text);
// From any thread, once the schema came.
void async_request(struct AsyncPeer* peer, uint32_t n);
void async_cancel(struct AsyncPeer* peer);
void async_close(struct AsyncPeer* peer);

struct AsyncDriver;

// What drives a handler, on a thread of Rust's.
struct AsyncPlan {
  int64_t fails_after;    // batches; then an error, once `taken` is as many. -1: no error
  int code;               // of that error, whose text is "relé stopped"
  int delay_microseconds; // before each batch
  int64_t dropped_after;  // batches; then the driver is dropped. -1: it is not
  int on_tokio;           // polled by an executor, or by the thread itself
};
// Drives the batches of a synchronous stream, which it takes, into the handler, which is released at last.
struct AsyncDriver* async_drive(struct ArrowAsyncDeviceStreamHandler* handler,
                                struct ArrowDeviceArrayStream* stream, struct AsyncPlan plan);
// Tells the driver how many batches have come out at the other end.
void async_taken(struct AsyncDriver* driver, int64_t taken);
// Waits for the driver's end, frees it, and says how it was: Debug of `Driven`, or "dropped".
void async_join(struct AsyncDriver* driver, struct PeerText text);

#ifdef __cplusplus
}
#endif
#endif
