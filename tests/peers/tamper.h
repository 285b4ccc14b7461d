// Does to what Rust made what a wrong producer would do, for the runs that must fail.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "arrow/api.h"
#include "audit.h"

namespace peers {

template <typename Struct>
Struct* Named(const arrow::Schema& schema, const Struct& batch, const std::string& name) {
  for (int i = 0; i < schema.num_fields(); ++i)
    if (schema.field(i)->name() == name) return batch.children[i];
  throw std::runtime_error("no column " + name);
}

inline void Tamper(const arrow::Schema& schema, ArrowArray* batch) {
  if (spoil.empty() || batch->n_children < 50 || batch->length == 0) return;
  const auto column = [&](const char* name) { return Named(schema, *batch, name); };
  ArrowArray* numbers = column("int64 ø");
  if (spoil == "buffer") numbers->buffers[1] = static_cast<const int64_t*>(numbers->buffers[1]) + 1;
  if (spoil == "buffers") std::swap(column("string ø")->buffers[1], column("string ø")->buffers[2]);
  if (spoil == "offset") numbers->offset = 0;
  if (spoil == "nulls" && numbers->null_count > 0) numbers->null_count -= 1;
  if (spoil == "bitmap") numbers->buffers[0] = nullptr;
  if (spoil == "children") column("struct ø")->n_children -= 1;
  if (spoil == "order") std::swap(*column("int8 ø"), *column("uint8 ø"));
  if (spoil == "dictionary") column("dictionary ø")->dictionary = nullptr;
}

inline void Tamper(ArrowSchema* schema) {
  if (schema->n_children < 50) return;
  if (spoil == "flags") schema->children[0]->flags = 0;
  if (spoil == "metadata") schema->children[6]->metadata = nullptr;
  if (spoil == "name") schema->children[0]->name = "another";
}

}  // namespace peers
