// nanoarrow's C library and its device extension as the peer, both directions, over every layout.
//
// nanoarrow compares with its own ArrowArrayViewCompare what it gave and what comes back, and value by value
// what Rust made with what it would have made itself. Ends with 1 at the first difference; leaks are
// valgrind's to find.

#include "cpp_peer.h"
#include "nanoarrow/nanoarrow_device.h"
#include "nanoarrow_compare.h"
#include "nanoarrow_types.h"
#include "nanoarrow_values.h"

static int batches_given_back = 0;

// Keeps what fits: only messages are looked at here.
static void AppendText(void* context, const char* bytes, size_t length) {
  (void)context;
  const size_t used = strlen(error.message);
  const size_t room = sizeof error.message - 1 - used;
  memcpy(error.message + used, bytes, length < room ? length : room);
  error.message[used + (length < room ? length : room)] = 0;
}

static struct PeerText Text(void) {
  memset(error.message, 0, sizeof error.message);
  const struct PeerText text = {NULL, AppendText};
  return text;
}

// ---- what nanoarrow makes

// The type of the batches, with unions whose type ids are the children's indices: others nanoarrow reads but
// does not build.
static void MakeSchema(struct ArrowSchema* schema) {
  struct ArrowDeviceArrayStream stream;
  struct ArrowSchema made;
  OK(peer_produce(&stream, Text()));
  OK(stream.get_schema(&stream, &made));
  stream.release(&stream);
  OK(ArrowSchemaDeepCopy(&made, schema));
  ArrowSchemaRelease(&made);
  for (int64_t i = 0; i < schema->n_children; ++i) {
    struct ArrowSchema* field = schema->children[i];
    if (strcmp(field->format, "+us:4,9") == 0) OK(ArrowSchemaSetFormat(field, "+us:0,1"));
    if (strcmp(field->format, "+ud:4,9") == 0) OK(ArrowSchemaSetFormat(field, "+ud:0,1"));
  }
}

static void MakeHostStream(struct ArrowArrayStream* stream) {
  struct ArrowSchema schema, copy;
  MakeSchema(&schema);
  OK(ArrowSchemaDeepCopy(&schema, &copy));
  OK(ArrowBasicArrayStreamInit(stream, &copy, kVariants));
  for (int i = 0; i < kVariants; ++i) {
    struct ArrowArray batch;
    BuildBatch(&schema, (enum Variant)i, &batch);
    ArrowBasicArrayStreamSetArray(stream, i, &batch);
  }
  ArrowSchemaRelease(&schema);
}

static void MakeStream(struct ArrowDeviceArrayStream* stream) {
  struct ArrowArrayStream host;
  MakeHostStream(&host);
  OK(ArrowDeviceBasicArrayStreamInit(stream, &host, ArrowDeviceCpu()));
}

// A batch that Rust gave: as nanoarrow sees it, copied and moved by its device extension, against one made
// anew.
static void CheckBatch(struct ArrowDeviceArray* seen, enum Variant variant, int identical) {
  struct ArrowSchema schema;
  struct ArrowArray batch;
  MakeSchema(&schema);
  BuildBatch(&schema, Spoil("expected") && variant == kSomeNulls ? kNoNulls : variant, &batch);
  struct ArrowDeviceArrayView actual;
  struct ArrowArrayView expected;
  InitViews(&schema, &actual, &expected);
  OK(ArrowArrayViewSetArray(&expected, &batch, &error));

  OK(ArrowDeviceArrayViewSetArray(&actual, seen, &error));
  OK(ArrowArrayViewValidate(&actual.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &error));
  CHECK(actual.device == ArrowDeviceCpu() && actual.sync_event == NULL);
  if (identical) CheckIdentical(&actual.array_view, &expected);
  CheckColumns(&actual.array_view, &expected);

  for (int64_t i = 0; i < schema.n_children; ++i)
    CheckCopy(schema.children[i], actual.array_view.children[i], expected.children[i]);

  struct ArrowDeviceArray moved;
  OK(ArrowDeviceArrayMoveToDevice(seen, ArrowDeviceCpu(), &moved));
  CHECK(seen->array.release == NULL && moved.device_id == -1 && moved.device_type == ARROW_DEVICE_CPU);
  OK(ArrowDeviceArrayViewSetArray(&actual, &moved, &error));
  CheckColumns(&actual.array_view, &expected);
  // Back to where the caller releases it.
  ArrowDeviceArrayMove(&moved, seen);

  ArrowArrayViewReset(&expected);
  ArrowDeviceArrayViewReset(&actual);
  ArrowArrayRelease(&batch);
  ArrowSchemaRelease(&schema);
}

// ---- batch by batch

static void BatchesThroughRust(enum PeerHow how) {
  struct ArrowDeviceArrayStream stream;
  struct ArrowSchema expected, schema;
  MakeStream(&stream);
  MakeSchema(&expected);
  const struct PeerWait no_wait = {NULL, NULL};
  struct PeerReader* peer = peer_open(&stream, no_wait, Text());
  CHECK(peer != NULL && stream.release == NULL);
  for (int schema_how = kPeerAsItCame; schema_how <= kPeerCloned; ++schema_how) {
    OK(peer_schema(peer, schema_how, &schema, Text()));
    if (Spoil("flags")) schema.children[0]->flags = 0;
    if (Spoil("metadata")) schema.children[6]->metadata = NULL;
    CHECK(SameSchema(&schema, &expected));
    ArrowSchemaRelease(&schema);
  }
  int code = 0;
  struct ArrowDeviceArray batch;
  for (int i = 0; i < kVariants; ++i) {
    CHECK(peer_next(peer, how, &batch, &code, Text()) == kPeerBatch);
    if (how == kPeerAnew) Tamper(&expected, &batch.array);
    CheckBatch(&batch, (enum Variant)i, 1);
    batch.array.release(&batch.array);
    CHECK(batch.array.release == NULL && peer_live() == 0);
    ++batches_given_back;
  }
  CHECK(peer_next(peer, how, &batch, &code, Text()) == kPeerEnd);
  peer_close(peer);
  ArrowSchemaRelease(&expected);
}

// ---- whole streams

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
    CheckBatch(&batch, (enum Variant)i, 1);
    ArrowArrayRelease(&batch.array);
  }
  for (int again = 0; batches == kVariants && again < 2; ++again) {
    OK(Next(stream, &batch));
    CHECK(batch.array.release == NULL);
  }
}

static void StreamsThroughRust(void) {
  const struct PeerFailure nothing = {0, kPeerNothing, 0};
  struct ArrowDeviceArrayStream stream, out;
  for (int batches = 0; batches <= kVariants; batches += kVariants) {
    MakeStream(&stream);
    OK(peer_pass_on(&stream, &out, Text()));
    CHECK(stream.release == NULL);
    Drain(&out, batches);
    out.release(&out);
    for (int how = kPeerAsItCame; how <= kPeerAnew; ++how) {
      MakeStream(&stream);
      OK(peer_relay(&stream, how, nothing, &out, Text()));
      Drain(&out, batches);
      out.release(&out);
    }
  }
  const struct {
    struct PeerFailure failure;
    int code;
    const char* text;
  } cases[] = {{{1, kPeerFails, EINVAL}, EINVAL, "stopped after 1 batches"},
               {{1, kPeerFailsAsTheSystem, ENOSYS}, ENOSYS, "os error"},
               {{1, kPeerPanics, 0}, EIO, "panicked after 1 batches"},
               {{1, kPeerLeavesTheDevice, 0}, EINVAL, "EXT_DEV"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    MakeStream(&stream);
    OK(peer_relay(&stream, kPeerAnew, cases[i].failure, &out, Text()));
    Drain(&out, 1);
    for (int again = 0; again < 2; ++again) {
      struct ArrowDeviceArray batch;
      CHECK(Next(&out, &batch) == cases[i].code);
      CHECK(strstr(error.message, cases[i].text) != NULL);
    }
    out.release(&out);
  }
  CHECK(peer_live() == 0);
}

static void HostStreamThroughRust(void) {
  const struct PeerFailure nothing = {0, kPeerNothing, 0};
  struct ArrowArrayStream stream, out;
  struct ArrowSchema expected_schema, schema;
  struct ArrowArray batch;
  MakeHostStream(&stream);
  MakeSchema(&expected_schema);
  OK(peer_relay_host(&stream, kPeerAnew, nothing, &out, Text()));
  OK(ArrowArrayStreamGetSchema(&out, &schema, &error));
  CHECK(SameSchema(&schema, &expected_schema));
  for (int i = 0; i < kVariants; ++i) {
    OK(ArrowArrayStreamGetNext(&out, &batch, &error));
    struct ArrowArray made;
    struct ArrowArrayView actual, expected;
    BuildBatch(&expected_schema, (enum Variant)i, &made);
    OK(ArrowArrayViewInitFromSchema(&actual, &schema, &error));
    OK(ArrowArrayViewInitFromSchema(&expected, &expected_schema, &error));
    OK(ArrowArrayViewSetArray(&actual, &batch, &error));
    OK(ArrowArrayViewSetArray(&expected, &made, &error));
    OK(ArrowArrayViewValidate(&actual, NANOARROW_VALIDATION_LEVEL_FULL, &error));
    CheckIdentical(&actual, &expected);
    CheckColumns(&actual, &expected);
    ArrowArrayViewReset(&actual);
    ArrowArrayViewReset(&expected);
    ArrowArrayRelease(&made);
    ArrowArrayRelease(&batch);
  }
  OK(ArrowArrayStreamGetNext(&out, &batch, &error));
  CHECK(batch.release == NULL);
  ArrowSchemaRelease(&schema);
  ArrowSchemaRelease(&expected_schema);
  ArrowArrayStreamRelease(&out);
  CHECK(peer_live() == 0);
}

// ---- what Rust makes

static void MadeInRust(void) {
  struct ArrowDeviceArrayStream stream;
  struct ArrowDeviceArray batch;
  struct ArrowSchema schema, own_schema;
  OK(peer_produce(&stream, Text()));
  OK(stream.get_schema(&stream, &schema));
  MakeSchema(&own_schema);
  CHECK(schema.n_children == kTypes && (schema.flags & ARROW_FLAG_NULLABLE) == 0);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    const struct ArrowSchema* field = schema.children[i];
    char text[256];
    ArrowSchemaToString(field, text, sizeof text, 1);
    ArrowErrorSet(&error, "%s: %s, flags %d", field->name, text, (int)field->flags);
    CHECK(strcmp(field->name, types[i].name) == 0 && strcmp(text, types[i].text) == 0);
    const int64_t flags = strcmp(field->name, "not null") == 0 ? 0 : ARROW_FLAG_NULLABLE;
    const int64_t ordered = strcmp(field->name, "ordered") == 0 ? ARROW_FLAG_DICTIONARY_ORDERED : 0;
    const int64_t sorted = strcmp(field->name, "map, sorted") == 0 ? ARROW_FLAG_MAP_KEYS_SORTED : 0;
    CHECK(field->flags == (flags | ordered | sorted));
  }
  for (int i = 0; i < kVariants; ++i) {
    struct ArrowArray own;
    struct ArrowDeviceArrayView actual;
    struct ArrowArrayView expected;
    OK(Next(&stream, &batch));
    BuildBatch(&own_schema, (enum Variant)i, &own);
    ArrowDeviceArrayViewInit(&actual);
    OK(ArrowArrayViewInitFromSchema(&actual.array_view, &schema, &error));
    OK(ArrowArrayViewInitFromSchema(&expected, &own_schema, &error));
    OK(ArrowArrayViewSetArray(&expected, &own, &error));
    OK(ArrowDeviceArrayViewSetArray(&actual, &batch, &error));
    OK(ArrowArrayViewValidate(&actual.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &error));
    CheckColumns(&actual.array_view, &expected);
    ArrowArrayViewReset(&expected);
    ArrowDeviceArrayViewReset(&actual);

    // Each column moved out (B5), and read when the batch is gone.
    struct ArrowArray columns[kTypes];
    for (int64_t k = 0; k < kTypes; ++k) ArrowArrayMove(batch.array.children[k], &columns[k]);
    ArrowArrayRelease(&batch.array);
    for (int64_t k = kTypes - 1; k >= 0; --k) {
      struct ArrowArrayView column;
      CHECK(peer_live() == 1);
      OK(ArrowArrayViewInitFromSchema(&column, schema.children[k], &error));
      OK(ArrowArrayViewInitFromSchema(&expected, own_schema.children[k], &error));
      OK(ArrowArrayViewSetArray(&column, &columns[k], &error));
      OK(ArrowArrayViewSetArray(&expected, own.children[k], &error));
      CheckValues(&column, &expected);
      ArrowArrayViewReset(&column);
      ArrowArrayViewReset(&expected);
      ArrowArrayRelease(&columns[k]);
    }
    CHECK(peer_live() == 0);
    ArrowArrayRelease(&own);
  }
  OK(Next(&stream, &batch));
  CHECK(batch.array.release == NULL);
  ArrowSchemaRelease(&schema);
  ArrowSchemaRelease(&own_schema);
  stream.release(&stream);
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

int main(int argc, char** argv) {
  if (argc > 1) spoil = argv[1];
  BatchesThroughRust(kPeerAsItCame);
  BatchesThroughRust(kPeerAnew);
  StreamsThroughRust();
  HostStreamThroughRust();
  MadeInRust();
  EarlyDrop();
  const char* version = ArrowNanoarrowVersion();
  printf(
      "peer: nanoarrow %s in C -> Rust -> nanoarrow %s in C: %d batches of %d layouts, as they came and "
      "anew, one by "
      "one and as device and host streams: identical; %d columns copied by its device extension; schemas "
      "built and "
      "cloned; errors; early drops\n",
      version, version, batches_given_back, kTypes, columns_copied);
  printf(
      "peer: Rust -> nanoarrow %s in C: every layout, with nulls, without, all null, sliced and empty: "
      "valid, every "
      "value read, also from columns that outlive their batch\n",
      version);
  return 0;
}
