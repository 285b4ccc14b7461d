/* What rust_side.rs exports to C and C++. Functions return 0 or an errno value; `rust_error` says more. */
#ifndef RUST_SIDE_H
#define RUST_SIDE_H

#include "arrow_device_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until the event behind a handle has fired: 0, or an errno value. */
struct RustWait {
  int (*wait)(void* context, void* handle);
  void* context;
};

/* Writes a batch with one column "value", int64, of the numbers from `first` on. `schema` and `array` need not be
 * initialised; the caller releases each of them. */
int rust_make_batch(int64_t first, int64_t length, struct ArrowSchema* schema, struct ArrowDeviceArray* array);

/* Writes a stream of such batches of two rows each. If `fails`, it ends with an error. The caller releases it. */
int rust_make_stream(int64_t batches, int fails, struct ArrowDeviceArrayStream* stream);

/* Moves schema and array in, waits if there is an event, adds up the column "value" and releases both. */
int rust_sum_batch(struct ArrowSchema* schema, struct ArrowDeviceArray* array, struct RustWait wait, int64_t* sum);

/* Moves the stream in, adds up all of its batches and releases everything. */
int rust_sum_stream(struct ArrowDeviceArrayStream* stream, struct RustWait wait, int64_t* sum);

/* Batches made here whose memory is still alive. */
int64_t rust_alive(void);

/* The text of this thread's last error, valid until its next one. */
const char* rust_error(void);

#ifdef __cplusplus
}
#endif

#endif
