// What the batches of made/mod.rs hold: built by nanoarrow, and read by nanoarrow.
#ifndef NANOARROW_VALUES_H
#define NANOARROW_VALUES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nanoarrow/nanoarrow.h"

enum Variant { kSomeNulls, kNoNulls, kAllNull, kSliced, kEmpty, kVariants };
enum { kRows = 10, kSliceStart = 3, kSliceRows = 6 };

static struct ArrowError error;

static void Check(int good, const char* what, int line) {
  if (good) return;
  fprintf(stderr, "nanoarrow_c: line %d: %s: %s\n", line, what, error.message);
  exit(1);
}
#define CHECK(condition) Check((condition), #condition, __LINE__)
#define OK(call) CHECK((call) == NANOARROW_OK)

// ---- the rule of made/mod.rs, into nanoarrow's builders

static int64_t Number(int64_t row) { return 11 * row - 50; }

static int IsNull(const struct ArrowSchema* schema, enum Variant variant, int64_t row) {
  // Unions and run-end encoded arrays have their nulls in a child.
  if (strncmp(schema->format, "+u", 2) == 0 || strcmp(schema->format, "+r") == 0) return 0;
  if ((schema->flags & ARROW_FLAG_NULLABLE) == 0 || variant == kNoNulls) return 0;
  return variant == kAllNull || row % 4 == 1;
}

// Elements of all lists before this row's.
static int64_t Before(int64_t row) {
  int64_t count = 0;
  for (int64_t i = 0; i < row; ++i) count += i % 4;
  return count;
}

static void Append(const struct ArrowSchema* schema, struct ArrowArray* array, enum Variant variant,
                   int64_t row, int64_t rows) {
  struct ArrowSchemaView type;
  OK(ArrowSchemaViewInit(&type, schema, &error));
  if (IsNull(schema, variant, row)) {
    OK(ArrowArrayAppendNull(array, 1));
    return;
  }
  if (schema->dictionary != NULL) {
    for (int64_t i = array->dictionary->length; i < (rows < 3 ? rows : 3); ++i)
      Append(schema->dictionary, array->dictionary, variant, i, rows);
    OK(ArrowArrayAppendInt(array, row % 3));
    return;
  }
  char text[64];
  int64_t first = 0, count = 0;
  struct ArrowDecimal decimal;
  struct ArrowInterval interval;
  switch (type.storage_type) {
    case NANOARROW_TYPE_NA:
      OK(ArrowArrayAppendNull(array, 1));
      return;
    case NANOARROW_TYPE_BOOL:
      OK(ArrowArrayAppendInt(array, row % 3 == 0));
      return;
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_INT32:
      OK(ArrowArrayAppendInt(array, type.type == type.storage_type ? Number(row) : 11 * row));
      return;
    case NANOARROW_TYPE_UINT8:
    case NANOARROW_TYPE_UINT16:
    case NANOARROW_TYPE_UINT32:
      OK(ArrowArrayAppendInt(array, 11 * row));
      return;
    case NANOARROW_TYPE_INT64:
      OK(ArrowArrayAppendInt(array, type.type == NANOARROW_TYPE_DATE64   ? 86400000 * row
                                    : type.type == NANOARROW_TYPE_TIME64 ? 11 * row
                                                                         : 1000000007 * Number(row)));
      return;
    case NANOARROW_TYPE_UINT64:
      OK(ArrowArrayAppendUInt(array, ((uint64_t)1 << 63) + (uint64_t)(11 * row)));
      return;
    case NANOARROW_TYPE_HALF_FLOAT:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DOUBLE:
      OK(ArrowArrayAppendDouble(array, (double)row / 2 - 2));
      return;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      ArrowDecimalInit(&decimal, type.decimal_bitwidth, type.decimal_precision, type.decimal_scale);
      ArrowDecimalSetInt(&decimal, (1111 * row - 5000) * (type.decimal_bitwidth < 128 ? 1 : 1000000000000));
      OK(ArrowArrayAppendDecimal(array, &decimal));
      return;
    case NANOARROW_TYPE_INTERVAL_MONTHS:
    case NANOARROW_TYPE_INTERVAL_DAY_TIME:
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO:
      ArrowIntervalInit(&interval, type.type);
      interval.months = (int32_t)(type.type == NANOARROW_TYPE_INTERVAL_MONTHS ? Number(row) : row);
      interval.days = (int32_t)(type.type == NANOARROW_TYPE_INTERVAL_DAY_TIME ? row : Number(row));
      interval.ms = (int32_t)Number(row);
      interval.ns = 1000000007 * row;
      OK(ArrowArrayAppendInterval(array, &interval));
      return;
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      snprintf(text, sizeof text, "%0*lld", type.fixed_size, (long long)row);
      OK(ArrowArrayAppendBytes(array, (struct ArrowBufferView){{text}, type.fixed_size}));
      return;
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_BINARY_VIEW:
      snprintf(text, sizeof text,
               row % 3 == 0   ? ""
               : row % 3 == 1 ? "ø%lld"
                              : "row %lld, told at some length",
               (long long)row);
      OK(ArrowArrayAppendString(array, ArrowCharView(text)));
      return;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_MAP:
      first = Before(row), count = row % 4;
      break;
    case NANOARROW_TYPE_LIST_VIEW:
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      first = kRows - row, count = row % 4;
      break;
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      first = row * type.fixed_size, count = type.fixed_size;
      break;
    case NANOARROW_TYPE_STRUCT:
      for (int64_t i = 0; i < schema->n_children; ++i)
        Append(schema->children[i], array->children[i], variant, row, rows);
      break;
    case NANOARROW_TYPE_SPARSE_UNION:
    case NANOARROW_TYPE_DENSE_UNION: {
      const int64_t child = row % schema->n_children;
      const int64_t index = type.storage_type == NANOARROW_TYPE_SPARSE_UNION ? row : row / schema->n_children;
      Append(schema->children[child], array->children[child], variant, index, rows);
      OK(ArrowArrayFinishUnionElement(array, (int8_t)child));
      return;
    }
    case NANOARROW_TYPE_RUN_END_ENCODED:
      if (row % 2 == 0) {
        OK(ArrowArrayAppendInt(array->children[0], row + 2 < rows ? row + 2 : rows));
        Append(schema->children[1], array->children[1], variant, row / 2, rows);
      }
      array->length += 1;
      return;
    default:
      CHECK(!"a type without a rule");
  }
  for (int64_t i = 0; i < count; ++i)
    Append(schema->children[0], array->children[0], variant, first + i, rows);
  OK(ArrowArrayFinishElement(array));
}

// nanoarrow leaves the bits behind the last row as they were in memory; they take part in its comparison.
static void ClearPadding(struct ArrowArray* array) {
  const struct ArrowArrayPrivateData* private_data = array->private_data;
  for (int64_t i = 0; i < array->n_buffers && i < NANOARROW_MAX_FIXED_BUFFERS; ++i) {
    if (private_data->layout.element_size_bits[i] == 1 && array->buffers[i] != NULL && array->length % 8 != 0)
      ArrowArrayBuffer(array, i)->data[array->length / 8] &= (uint8_t)((1 << array->length % 8) - 1);
  }
  for (int64_t i = 0; i < array->n_children; ++i) ClearPadding(array->children[i]);
  if (array->dictionary != NULL) ClearPadding(array->dictionary);
}

static void BuildBatch(const struct ArrowSchema* schema, enum Variant variant, struct ArrowArray* batch) {
  const int64_t rows = variant == kEmpty ? 0 : kRows;
  OK(ArrowArrayInitFromSchema(batch, schema, &error));
  OK(ArrowArrayStartAppending(batch));
  for (int64_t row = 0; row < rows; ++row) Append(schema, batch, variant, row, rows);
  OK(ArrowArrayFinishBuildingDefault(batch, &error));
  ClearPadding(batch);
  if (variant != kSliced) return;
  batch->length = kSliceRows;
  for (int64_t i = 0; i < batch->n_children; ++i) {
    struct ArrowArray* column = batch->children[i];
    column->offset = kSliceStart;
    column->length = kSliceRows;
    // Without a bitmap there is nothing to count.
    if (column->null_count != 0) column->null_count = column->null_count == kRows ? kSliceRows : -1;
  }
}

// ---- values as text, through nanoarrow's views

#define PUT(...)                                                \
  do {                                                          \
    char piece[64];                                             \
    snprintf(piece, sizeof piece, __VA_ARGS__);                 \
    OK(ArrowBufferAppendStringView(out, ArrowCharView(piece))); \
  } while (0)

static void Print(const struct ArrowArrayView* view, int64_t row, struct ArrowBuffer* out);

static void PrintAll(const struct ArrowArrayView* view, int64_t first, int64_t count,
                     struct ArrowBuffer* out) {
  PUT("[");
  for (int64_t i = 0; i < count; ++i) {
    Print(view, first + i, out);
    PUT(",");
  }
  PUT("]");
}

static void Print(const struct ArrowArrayView* view, int64_t row, struct ArrowBuffer* out) {
  const int64_t place = view->offset + row;
  if (ArrowArrayViewIsNull(view, row)) {
    PUT("null");
    return;
  }
  if (view->dictionary != NULL) {
    Print(view->dictionary, ArrowArrayViewGetIntUnsafe(view, row), out);
    return;
  }
  int64_t first = 0;
  switch (view->storage_type) {
    case NANOARROW_TYPE_HALF_FLOAT:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DOUBLE:
      PUT("%g", ArrowArrayViewGetDoubleUnsafe(view, row));
      return;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256: {
      struct ArrowDecimal decimal;
      ArrowDecimalInit(&decimal, (int32_t)view->layout.element_size_bits[1], 0, 0);
      ArrowArrayViewGetDecimalUnsafe(view, row, &decimal);
      OK(ArrowDecimalAppendDigitsToBuffer(&decimal, out));
      return;
    }
    case NANOARROW_TYPE_INTERVAL_MONTHS:
    case NANOARROW_TYPE_INTERVAL_DAY_TIME:
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO: {
      struct ArrowInterval interval;
      ArrowIntervalInit(&interval, view->storage_type);
      ArrowArrayViewGetIntervalUnsafe(view, row, &interval);
      PUT("%ld %ld %ld %lld", (long)interval.months, (long)interval.days, (long)interval.ms,
          (long long)interval.ns);
      return;
    }
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_BINARY_VIEW:
      PUT("\"");
      OK(ArrowBufferAppendStringView(out, ArrowArrayViewGetStringUnsafe(view, row)));
      PUT("\"");
      return;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_MAP:
      first = ArrowArrayViewListChildOffset(view, place);
      PrintAll(view->children[0], first, ArrowArrayViewListChildOffset(view, place + 1) - first, out);
      return;
    case NANOARROW_TYPE_LIST_VIEW:
      first = ArrowArrayViewListChildOffset(view, place);
      PrintAll(view->children[0], first, view->buffer_views[2].data.as_int32[place], out);
      return;
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      first = ArrowArrayViewListChildOffset(view, place);
      PrintAll(view->children[0], first, view->buffer_views[2].data.as_int64[place], out);
      return;
    case NANOARROW_TYPE_FIXED_SIZE_LIST: {
      const int64_t size = view->layout.child_size_elements;
      PrintAll(view->children[0], place * size, size, out);
      return;
    }
    case NANOARROW_TYPE_STRUCT:
      PUT("{");
      for (int64_t i = 0; i < view->n_children; ++i) {
        Print(view->children[i], place, out);
        PUT(",");
      }
      PUT("}");
      return;
    case NANOARROW_TYPE_SPARSE_UNION:
    case NANOARROW_TYPE_DENSE_UNION: {
      const int child = ArrowArrayViewUnionChildIndex(view, row);
      PUT("%d:", child);
      Print(view->children[child], ArrowArrayViewUnionChildOffset(view, row), out);
      return;
    }
    case NANOARROW_TYPE_RUN_END_ENCODED:
      while (ArrowArrayViewGetIntUnsafe(view->children[0], first) <= place) ++first;
      Print(view->children[1], first, out);
      return;
    default:
      PUT("%lld", (long long)ArrowArrayViewGetIntUnsafe(view, row));
  }
}

#endif
