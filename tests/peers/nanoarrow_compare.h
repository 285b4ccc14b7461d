// What the tests of nanoarrow_c.c compare, and what they do wrong on purpose.
#ifndef NANOARROW_COMPARE_H
#define NANOARROW_COMPARE_H

#include "nanoarrow/nanoarrow_device.h"
#include "nanoarrow_values.h"

// What to do wrong on purpose, to prove that it is seen: the argument of the program.
static const char* spoil = "";
static int columns_copied = 0;

static int Spoil(const char* what) { return strcmp(spoil, what) == 0; }

static struct ArrowArray* Column(const struct ArrowSchema* schema, const struct ArrowArray* batch,
                                 const char* name) {
  for (int64_t i = 0; i < schema->n_children; ++i)
    if (strcmp(schema->children[i]->name, name) == 0) return batch->children[i];
  CHECK(!"a column of that name");
  return NULL;
}

// Does to what Rust made what a wrong producer would do.
static void Tamper(const struct ArrowSchema* schema, struct ArrowArray* batch) {
  struct ArrowArray* numbers = Column(schema, batch, "int64");
  struct ArrowArray* text = Column(schema, batch, "string ø");
  const struct ArrowArray bytes = *Column(schema, batch, "int8");
  if (batch->length == 0) return;
  if (Spoil("buffer")) numbers->buffers[1] = (const char*)numbers->buffers[1] + sizeof(int64_t);
  if (Spoil("buffers")) {
    const void* offsets = text->buffers[1];
    text->buffers[1] = text->buffers[2];
    text->buffers[2] = offsets;
  }
  if (Spoil("offset")) numbers->offset = 0;
  if (Spoil("nulls") && numbers->null_count > 0) numbers->null_count -= 1;
  if (Spoil("bitmap")) numbers->buffers[0] = NULL;
  if (Spoil("children")) Column(schema, batch, "struct")->n_children -= 1;
  if (Spoil("order")) {
    *Column(schema, batch, "int8") = *Column(schema, batch, "uint8");
    *Column(schema, batch, "uint8") = bytes;
  }
  if (Spoil("dictionary")) Column(schema, batch, "dictionary")->dictionary = NULL;
}

static int SameText(const char* one, const char* other) {
  if (one == NULL || other == NULL) return (one == NULL ? 0 : *one) == (other == NULL ? 0 : *other);
  return strcmp(one, other) == 0;
}

static int SameSchema(const struct ArrowSchema* one, const struct ArrowSchema* other) {
  const int64_t metadata = ArrowMetadataSizeOf(other->metadata);
  if (!SameText(one->format, other->format) || !SameText(one->name, other->name) ||
      one->flags != other->flags || one->n_children != other->n_children ||
      ArrowMetadataSizeOf(one->metadata) != metadata ||
      (metadata > 0 && memcmp(one->metadata, other->metadata, (size_t)metadata) != 0) ||
      (one->dictionary == NULL) != (other->dictionary == NULL))
    return 0;
  for (int64_t i = 0; i < one->n_children; ++i)
    if (!SameSchema(one->children[i], other->children[i])) return 0;
  return one->dictionary == NULL || SameSchema(one->dictionary, other->dictionary);
}

static void InitViews(const struct ArrowSchema* schema, struct ArrowDeviceArrayView* actual,
                      struct ArrowArrayView* expected) {
  ArrowDeviceArrayViewInit(actual);
  OK(ArrowArrayViewInitFromSchema(&actual->array_view, schema, &error));
  OK(ArrowArrayViewInitFromSchema(expected, schema, &error));
}

static void CheckIdentical(const struct ArrowArrayView* actual, const struct ArrowArrayView* expected) {
  int equal = 0;
  OK(ArrowArrayViewCompare(actual, expected, NANOARROW_COMPARE_IDENTICAL, &equal, &error));
  CHECK(equal);
}

static void CheckValues(const struct ArrowArrayView* actual, const struct ArrowArrayView* expected) {
  struct ArrowBuffer texts[2];
  ArrowBufferInit(&texts[0]);
  ArrowBufferInit(&texts[1]);
  CHECK(actual->length == expected->length);
  PrintAll(actual, 0, actual->length, &texts[0]);
  PrintAll(expected, 0, expected->length, &texts[1]);
  if (texts[0].size_bytes != texts[1].size_bytes ||
      memcmp(texts[0].data, texts[1].data, (size_t)texts[0].size_bytes) != 0) {
    fprintf(stderr, "seen:     %.*s\nexpected: %.*s\n", (int)texts[0].size_bytes, (char*)texts[0].data,
            (int)texts[1].size_bytes, (char*)texts[1].data);
    CHECK(!"equal values");
  }
  ArrowBufferReset(&texts[0]);
  ArrowBufferReset(&texts[1]);
}

static void CheckColumns(const struct ArrowArrayView* actual, const struct ArrowArrayView* expected) {
  CHECK(actual->length == expected->length && actual->n_children == expected->n_children);
  for (int64_t i = 0; i < actual->n_children; ++i) CheckValues(actual->children[i], expected->children[i]);
}

// nanoarrow's device extension copies neither the data buffers of a string view nor the sizes of a list view.
static int CanBeCopied(const struct ArrowArrayView* view) {
  int can = view->n_variadic_buffers == 0 && view->storage_type != NANOARROW_TYPE_LIST_VIEW &&
            view->storage_type != NANOARROW_TYPE_LARGE_LIST_VIEW;
  for (int64_t i = 0; i < view->n_children; ++i) can &= CanBeCopied(view->children[i]);
  return can;
}

static void CheckCopy(const struct ArrowSchema* schema, struct ArrowArrayView* column,
                      const struct ArrowArrayView* expected) {
  if (!CanBeCopied(column)) return;
  struct ArrowDeviceArrayView source = {ArrowDeviceCpu(), *column, NULL}, view;
  struct ArrowDeviceArray copy;
  OK(ArrowDeviceArrayViewCopy(&source, ArrowDeviceCpu(), &copy));
  ArrowDeviceArrayViewInit(&view);
  OK(ArrowArrayViewInitFromSchema(&view.array_view, schema, &error));
  OK(ArrowDeviceArrayViewSetArray(&view, &copy, &error));
  CheckValues(&view.array_view, expected);
  ArrowDeviceArrayViewReset(&view);
  ArrowArrayRelease(&copy.array);
  ++columns_copied;
}

#endif
