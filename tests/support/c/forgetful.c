/* Structs whose release counts, and forgets to set itself to null (C4). */

#include "peers.h"

#include <string.h>

#define FORGETFUL(function, type)                                                     \
  static void count_##function(struct type* self) {                                   \
    ((struct peer_counts*)self->private_data)->released[NODE_ROOT]++;                 \
  }                                                                                   \
  void peer_make_forgetful_##function(struct type* out, struct peer_counts* counts) { \
    memset(out, 0, sizeof *out);                                                      \
    out->release = count_##function;                                                  \
    out->private_data = counts;                                                       \
  }

FORGETFUL(schema, ArrowSchema)
FORGETFUL(array, ArrowArray)
FORGETFUL(stream, ArrowArrayStream)
FORGETFUL(device_stream, ArrowDeviceArrayStream)

void peer_make_forgetful_device_array(struct ArrowDeviceArray* out, struct peer_counts* counts) {
  memset(out, 0, sizeof *out);
  peer_make_forgetful_array(&out->array, counts);
}
