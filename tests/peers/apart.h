// A consumer that takes apart what Rust made and releases the parts in its own order (B4, B5).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "harness.h"

namespace peers {

inline int64_t parts_taken = 0;

inline ArrowArray MovedOut(ArrowArray* from) {
  const ArrowArray to = *from;
  from->release = nullptr;
  return to;
}

// Arrow C++ keeps what it imported as long as a buffer of it is left. An array of type null, or an empty one,
// may have none.
inline bool HasBuffers(const arrow::ArrayData& data) {
  const auto& children = data.child_data;
  return std::any_of(data.buffers.begin(), data.buffers.end(),
                     [](const auto& buffer) { return buffer != nullptr && buffer->size() > 0; }) ||
         std::any_of(children.begin(), children.end(),
                     [](const auto& child) { return HasBuffers(*child); }) ||
         (data.dictionary != nullptr && HasBuffers(*data.dictionary));
}

inline void Release(ArrowArray* array) {
  array->release(array);
  Check(array->release == nullptr, "released, and not marked so");
}

// Gives each batch of the sample, in structs of Rust's making, to `use`, and sees to it that the original is
// kept as long as anything is left, and released then.
inline void ForEachMade(const std::function<void(ArrowArray* batch, const arrow::RecordBatch& expected,
                                                 const std::function<void()>& check_kept)>& use) {
  const Sample sample;
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
  auto peer = Open(&stream);
  for (const auto& expected : sample.batches) {
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text, kPeerAnew), kPeerBatch, "peer_next", &text);
    use(&out.array, *expected, [&audit] {
      if (peer_live() == 1 && audit.live_arrays() == 1) return;
      // Not an exception: on its way it would release parts of what is freed already.
      std::cerr << "arrow_cpp: taken apart: " << peer_live() << " keep-alives and " << audit.live_arrays()
                << " originals while parts are left\n";
      std::_Exit(1);
    });
    CheckEqual(peer_live(), 0, "keep-alives after the last part");
    CheckEqual(audit.live_arrays(), 0u, "originals after the last part");
  }
  peer.reset();
  CheckBooks(audit);
}

// Arrow C++ imports a whole batch and lets go of all of it but one column.
inline void ColumnKept() {
  const Sample sample;
  for (int column = 0; column < sample.schema->num_fields(); ++column) {
    const size_t variant = static_cast<size_t>(column) % sample.batches.size();
    Audit audit;
    auto stream = Export(std::make_shared<Reader>(sample.schema, Batches{sample.batches[variant]}), &audit);
    auto relay = Relay(&stream, kPeerAnew);
    auto reader = Must(arrow::ImportDeviceRecordBatchReader(&relay));
    auto kept = Must(reader->Next())->column(column);
    reader.reset();
    if (HasBuffers(*kept->data())) {
      CheckEqual(peer_live(), 1, "keep-alives while a column is left");
      CheckEqual(audit.live_arrays(), 1u, "originals while a column is left");
    }
    Check(kept->Equals(*sample.batches[variant]->column(column)),
          "column " + sample.schema->field(column)->name());
    // The last owner is not always the first one's thread.
    std::thread([&kept] { kept.reset(); }).join();
    CheckEqual(peer_live(), 0, "keep-alives after the column");
    CheckBooks(audit);
    ++parts_taken;
  }
}

// C moves all columns out and releases the batch first; each column is imported by itself, and released on a
// thread of its own.
inline void ColumnsMovedOut() {
  ForEachMade([](ArrowArray* batch, const arrow::RecordBatch& expected, const auto& check_kept) {
    std::vector<ArrowArray> columns;
    for (int64_t i = 0; i < batch->n_children; ++i) columns.push_back(MovedOut(batch->children[i]));
    Release(batch);
    check_kept();
    arrow::ArrayVector arrays;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto& field = expected.schema()->field(static_cast<int>(i));
      arrays.push_back(Must(arrow::ImportArray(&columns[i], field->type())));
      Check(arrays[i]->Equals(*expected.column(static_cast<int>(i))), "moved out: " + field->name());
      ++parts_taken;
    }
    std::vector<std::thread> threads;
    for (auto& array : arrays) threads.emplace_back([&array] { array.reset(); });
    for (auto& thread : threads) thread.join();
  });
}

// C moves the children and dictionaries of all columns out, and releases batch and columns before them.
inline void GrandchildrenMovedOut() {
  ForEachMade([](ArrowArray* batch, const arrow::RecordBatch& expected, const auto& check_kept) {
    struct Part {
      ArrowArray array;
      std::shared_ptr<arrow::DataType> type;
      std::shared_ptr<arrow::ArrayData> expected;
    };
    std::vector<Part> parts;
    for (int i = 0; i < expected.num_columns(); ++i) {
      ArrowArray* column = batch->children[i];
      const auto& data = *expected.column_data(i);
      const auto& type = *expected.column(i)->type();
      for (size_t k = 0; k < data.child_data.size(); ++k)
        parts.push_back(
            {MovedOut(column->children[k]), type.field(static_cast<int>(k))->type(), data.child_data[k]});
      if (data.dictionary != nullptr)
        parts.push_back({MovedOut(column->dictionary),
                         static_cast<const arrow::DictionaryType&>(type).value_type(), data.dictionary});
    }
    Check(parts.size() > 20, "few grandchildren");
    Release(batch);
    check_kept();
    for (auto& part : parts) {
      auto array = Must(arrow::ImportArray(&part.array, part.type));
      Check(array->Equals(*arrow::MakeArray(part.expected)), "grandchild of type " + part.type->ToString());
      ++parts_taken;
    }
  });
}

// C moves every node out and releases them in any order, on four threads at once.
inline void AllMovedOut() {
  std::mt19937 random(7);
  ForEachMade([&random](ArrowArray* batch, const arrow::RecordBatch&, const auto& check_kept) {
    std::vector<ArrowArray> nodes = {MovedOut(batch)};
    for (size_t at = 0; at < nodes.size(); ++at) {
      const ArrowArray node = nodes[at];
      for (int64_t i = 0; i < node.n_children; ++i) nodes.push_back(MovedOut(node.children[i]));
      if (node.dictionary != nullptr) nodes.push_back(MovedOut(node.dictionary));
    }
    parts_taken += static_cast<int64_t>(nodes.size());
    std::shuffle(nodes.begin(), nodes.end(), random);
    check_kept();
    std::vector<std::thread> threads;
    for (size_t first = 0; first < 4; ++first) {
      threads.emplace_back([&nodes, first] {
        for (size_t at = first; at < nodes.size(); at += 4) {
          // A node that others were moved out of still has its numbers and pointers.
          for (int64_t i = 0; i < nodes[at].n_children; ++i)
            Check(nodes[at].children[i] != nullptr, "no child");
          Release(&nodes[at]);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

}  // namespace peers
