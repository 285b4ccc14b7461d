// nanoarrow's C library and its device extension as the peer: device streams, both directions.
//
// nanoarrow compares with its own ArrowArrayViewCompare what it gave and what comes back. Ends with 1 at the
// first difference; leaks are valgrind's to find.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpp_peer.h"
#include "nanoarrow/nanoarrow.h"
#include "nanoarrow/nanoarrow_device.h"

// Whole bytes of bits: nanoarrow leaves those behind the last row uninitialised, which cannot be compared.
enum { kBatches = 3, kRows = 48 };

static struct ArrowError error;
// Added to what is expected, to prove that a difference is seen.
static int spoil = 0;

static void Check(int good, const char* what, int line) {
  if (good) return;
  fprintf(stderr, "nanoarrow_c.c:%d: %s: %s\n", line, what, error.message);
  exit(1);
}
#define CHECK(condition) Check((condition), #condition, __LINE__)
#define OK(call) CHECK((call) == NANOARROW_OK)

// Keeps what fits: only messages are looked at here.
static void Append(void* context, const char* bytes, size_t length) {
  (void)context;
  const size_t used = strlen(error.message);
  const size_t room = sizeof error.message - 1 - used;
  memcpy(error.message + used, bytes, length < room ? length : room);
  error.message[used + (length < room ? length : room)] = 0;
}

static struct PeerText Text(void) {
  error.message[0] = 0;
  memset(error.message, 0, sizeof error.message);
  const struct PeerText text = {NULL, Append};
  return text;
}

static void MakeSchema(struct ArrowSchema* schema) {
  const struct {
    const char* name;
    enum ArrowType type;
  } fields[] = {{"n", NANOARROW_TYPE_INT64},
                {"b", NANOARROW_TYPE_BOOL},
                {"s", NANOARROW_TYPE_STRING},
                {"v", NANOARROW_TYPE_STRING_VIEW},
                {"l", NANOARROW_TYPE_LIST}};
  ArrowSchemaInit(schema);
  OK(ArrowSchemaSetTypeStruct(schema, 5));
  for (int i = 0; i < 5; ++i) {
    OK(ArrowSchemaSetType(schema->children[i], fields[i].type));
    OK(ArrowSchemaSetName(schema->children[i], fields[i].name));
  }
  OK(ArrowSchemaSetType(schema->children[4]->children[0], NANOARROW_TYPE_INT32));
}

static void MakeBatch(const struct ArrowSchema* schema, int number, struct ArrowArray* batch) {
  OK(ArrowArrayInitFromSchema(batch, schema, &error));
  OK(ArrowArrayStartAppending(batch));
  for (int row = 0; row < kRows; ++row) {
    const int value = number * kRows + row;
    char text[64];
    // Every other one is too long to stand in a view itself.
    snprintf(text, sizeof text, row % 2 == 0 ? "row %d" : "row %d, told at some length", value);
    for (int column = 0; column < 5; ++column) {
      struct ArrowArray* child = batch->children[column];
      if ((row + column) % 7 == 0) {
        OK(ArrowArrayAppendNull(child, 1));
        continue;
      }
      switch (column) {
        case 0:
        case 1:
          OK(ArrowArrayAppendInt(child, column == 0 ? value : value % 2));
          break;
        case 2:
        case 3:
          OK(ArrowArrayAppendString(child, ArrowCharView(text)));
          break;
        default:
          for (int i = 0; i < row % 4; ++i) OK(ArrowArrayAppendInt(child->children[0], value + i));
          OK(ArrowArrayFinishElement(child));
      }
    }
    OK(ArrowArrayFinishElement(batch));
  }
  OK(ArrowArrayFinishBuildingDefault(batch, &error));
}

static void MakeStream(struct ArrowDeviceArrayStream* stream) {
  struct ArrowSchema schema;
  struct ArrowArrayStream host;
  MakeSchema(&schema);
  struct ArrowSchema copy;
  OK(ArrowSchemaDeepCopy(&schema, &copy));
  OK(ArrowBasicArrayStreamInit(&host, &copy, kBatches));
  for (int i = 0; i < kBatches; ++i) {
    struct ArrowArray batch;
    MakeBatch(&schema, i, &batch);
    ArrowBasicArrayStreamSetArray(&host, i, &batch);
  }
  ArrowSchemaRelease(&schema);
  OK(ArrowDeviceBasicArrayStreamInit(stream, &host, ArrowDeviceCpu()));
}

// Compares a batch that came back with one made anew.
static void CheckBatch(struct ArrowDeviceArray* seen, int number) {
  struct ArrowSchema schema;
  struct ArrowArray batch;
  MakeSchema(&schema);
  MakeBatch(&schema, number + spoil, &batch);
  struct ArrowDeviceArrayView actual;
  ArrowDeviceArrayViewInit(&actual);
  OK(ArrowArrayViewInitFromSchema(&actual.array_view, &schema, &error));
  OK(ArrowDeviceArrayViewSetArray(&actual, seen, &error));
  OK(ArrowArrayViewValidate(&actual.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &error));
  CHECK(actual.device == ArrowDeviceCpu());
  struct ArrowArrayView expected;
  OK(ArrowArrayViewInitFromSchema(&expected, &schema, &error));
  OK(ArrowArrayViewSetArray(&expected, &batch, &error));
  int equal = 0;
  OK(ArrowArrayViewCompare(&actual.array_view, &expected, NANOARROW_COMPARE_IDENTICAL, &equal, &error));
  CHECK(equal);
  ArrowArrayViewReset(&expected);
  ArrowDeviceArrayViewReset(&actual);
  ArrowArrayRelease(&batch);
  ArrowSchemaRelease(&schema);
}

static void BatchesThroughRust(void) {
  struct ArrowDeviceArrayStream stream;
  MakeStream(&stream);
  const struct PeerWait no_wait = {NULL, NULL};
  struct PeerReader* peer = peer_open(&stream, no_wait, Text());
  CHECK(peer != NULL && stream.release == NULL);
  struct ArrowSchema schema;
  OK(peer_schema(peer, &schema, Text()));
  struct ArrowSchema expected;
  MakeSchema(&expected);
  // A schema that is nanoarrow's own can be compared by its printed form.
  char seen_text[256], expected_text[256];
  ArrowSchemaToString(&schema, seen_text, sizeof seen_text, 1);
  ArrowSchemaToString(&expected, expected_text, sizeof expected_text, 1);
  CHECK(strcmp(seen_text, expected_text) == 0);
  ArrowSchemaRelease(&expected);
  ArrowSchemaRelease(&schema);
  int code = 0;
  for (int i = 0; i < kBatches; ++i) {
    struct ArrowDeviceArray batch;
    CHECK(peer_next(peer, &batch, &code, Text()) == kPeerBatch);
    CheckBatch(&batch, i);
    ArrowArrayRelease(&batch.array);
  }
  struct ArrowDeviceArray batch;
  CHECK(peer_next(peer, &batch, &code, Text()) == kPeerEnd);
  peer_close(peer);
}

// nanoarrow has no helper that drains a device stream.
static int Next(struct ArrowDeviceArrayStream* stream, struct ArrowDeviceArray* out) {
  const int code = stream->get_next(stream, out);
  if (code != 0) ArrowErrorSet(&error, "%s", stream->get_last_error(stream));
  return code;
}

static void Drain(struct ArrowDeviceArrayStream* stream, int batches) {
  struct ArrowDeviceArray batch;
  for (int i = 0; i < batches; ++i) {
    OK(Next(stream, &batch));
    CHECK(batch.array.release != NULL);
    CheckBatch(&batch, i);
    ArrowArrayRelease(&batch.array);
  }
  if (batches == kBatches) {
    OK(Next(stream, &batch));
    CHECK(batch.array.release == NULL);
  }
}

static void StreamsThroughRust(void) {
  for (int batches = 0; batches <= kBatches; ++batches) {
    struct ArrowDeviceArrayStream stream, out;
    MakeStream(&stream);
    OK(peer_pass_on(&stream, &out, Text()));
    CHECK(stream.release == NULL);
    Drain(&out, batches);
    out.release(&out);
    MakeStream(&stream);
    OK(peer_relay(&stream, -1, 0, &out, Text()));
    Drain(&out, batches);
    out.release(&out);
  }
  struct ArrowDeviceArrayStream stream, out;
  MakeStream(&stream);
  OK(peer_relay(&stream, 1, EINVAL, &out, Text()));
  Drain(&out, 1);
  struct ArrowDeviceArray batch;
  CHECK(Next(&out, &batch) == EINVAL);
  CHECK(strstr(error.message, "stopped after 1 batches") != NULL);
  out.release(&out);
  CHECK(peer_live() == 0);
}

static void MadeInRust(void) {
  struct ArrowDeviceArrayStream stream;
  OK(peer_produce(2, kRows, &stream));
  struct ArrowSchema schema;
  OK(stream.get_schema(&stream, &schema));
  struct ArrowDeviceArrayView view;
  ArrowDeviceArrayViewInit(&view);
  OK(ArrowArrayViewInitFromSchema(&view.array_view, &schema, &error));
  ArrowSchemaRelease(&schema);
  for (int64_t row = 0; row < 2 * kRows; row += kRows) {
    struct ArrowDeviceArray batch;
    OK(Next(&stream, &batch));
    OK(ArrowDeviceArrayViewSetArray(&view, &batch, &error));
    OK(ArrowArrayViewValidate(&view.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &error));
    const struct ArrowArrayView* n = view.array_view.children[0];
    const struct ArrowArrayView* s = view.array_view.children[1];
    CHECK(n->length == kRows && s->length == kRows);
    for (int64_t i = 0; i < kRows; ++i) {
      CHECK(ArrowArrayViewIsNull(n, i) == ((row + i) % 3 == 0));
      CHECK(ArrowArrayViewIsNull(n, i) || ArrowArrayViewGetIntUnsafe(n, i) == row + i);
      char text[32];
      snprintf(text, sizeof text, "row %lld", (long long)(row + i));
      const struct ArrowStringView seen = ArrowArrayViewGetStringUnsafe(s, i);
      CHECK(seen.size_bytes == (int64_t)strlen(text) && memcmp(seen.data, text, strlen(text)) == 0);
    }
    ArrowArrayRelease(&batch.array);
  }
  ArrowDeviceArrayViewReset(&view);
  stream.release(&stream);
  CHECK(peer_live() == 0);
}

static void EarlyDrop(void) {
  const struct PeerWait no_wait = {NULL, NULL};
  for (int batches = 0; batches < 2; ++batches) {
    struct ArrowDeviceArrayStream stream;
    MakeStream(&stream);
    struct PeerReader* peer = peer_open(&stream, no_wait, Text());
    CHECK(peer != NULL);
    if (batches == 1) CHECK(peer_discard(peer, Text()) == kPeerBatch);
    peer_close(peer);
  }
}

// With an argument it expects other values and must fail.
int main(int argc, char** argv) {
  (void)argv;
  spoil = argc - 1;
  BatchesThroughRust();
  StreamsThroughRust();
  MadeInRust();
  EarlyDrop();
  printf(
      "peer: nanoarrow %s in C, C -> Rust -> C: device streams of %d batches with 5 layouts, batch by batch, "
      "whole and through Rust's callbacks: equal; an error; early drops\n",
      ArrowNanoarrowVersion(), kBatches);
  printf("peer: nanoarrow %s in C, Rust -> C: a device stream made in Rust: every value read\n",
         ArrowNanoarrowVersion());
  return 0;
}
