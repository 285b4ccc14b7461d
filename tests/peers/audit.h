// Stands between Arrow C++ and the consumer and keeps the books: which callback was called, when, and how
// often.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "arrow/c/abi.h"

namespace peers {

// What to do wrong on purpose, to prove that it is seen: the argument of the program.
inline std::string spoil;

class Audit {
 public:
  // Replaces a live stream with one that forwards to it.
  void Watch(ArrowDeviceArrayStream* stream) {
    Stream& node = streams_.emplace_back();
    node.audit = this;
    node.inner = *stream;
    *stream = {node.inner.device_type, GetSchema, GetNext, GetLastError, ReleaseStream, &node};
  }

  // All books: empty when each rule was kept.
  std::vector<std::string> Faults() const {
    std::vector<std::string> faults = faults_;
    Count(streams_, "stream", &faults);
    Count(schemas_, "schema", &faults);
    Count(arrays_, "array", &faults);
    return faults;
  }

  // Arrays given out and not released yet.
  size_t live_arrays() const {
    size_t live = 0;
    for (const auto& array : arrays_) live += array.released == 0 ? 1 : 0;
    return live;
  }

 private:
  template <typename Struct>
  struct Node {
    Audit* audit = nullptr;
    Struct inner{};
    int released = 0;
  };
  struct Stream : Node<ArrowDeviceArrayStream> {
    bool failed_just_now = false;
  };

  template <typename Nodes>
  static void Count(const Nodes& nodes, const char* what, std::vector<std::string>* faults) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].released != 1) {
        faults->push_back(std::string(what) + " " + std::to_string(i) + " was released " +
                          std::to_string(nodes[i].released) + " times");
      }
    }
  }

  static Stream* Enter(ArrowDeviceArrayStream* self, const char* callback) {
    auto* node = static_cast<Stream*>(self->private_data);
    if (node->released != 0)
      node->audit->faults_.push_back(std::string(callback) + " on a released stream (S2)");
    return node;
  }

  static int GetSchema(ArrowDeviceArrayStream* self, ArrowSchema* out) {
    Stream* node = Enter(self, "get_schema");
    if (out->release != nullptr) node->audit->faults_.push_back("get_schema got a live out-struct");
    const int code = node->inner.get_schema(&node->inner, out);
    node->failed_just_now = code != 0;
    if (code == 0) {
      auto& schema = node->audit->schemas_.emplace_back();
      schema.audit = node->audit;
      schema.inner = *out;
      out->release = ReleaseSchema;
      out->private_data = &schema;
    } else {
      SpoilAfterFailure(out, sizeof *out);
    }
    return code;
  }

  static int GetNext(ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
    Stream* node = Enter(self, "get_next");
    if (out->array.release != nullptr) node->audit->faults_.push_back("get_next got a live out-struct");
    const int code = node->inner.get_next(&node->inner, out);
    node->failed_just_now = code != 0;
    if (code == 0 && out->array.release != nullptr) {
      auto& array = node->audit->arrays_.emplace_back();
      array.audit = node->audit;
      array.inner = *out;
      if (spoil == "row" && out->array.length > 0) out->array.length -= 1;
      out->array.release = ReleaseArray;
      out->array.private_data = &array;
    } else if (code != 0) {
      SpoilAfterFailure(out, sizeof *out);
    }
    return code;
  }

  // An out-struct means nothing after a failure: one that looks live must not be touched.
  static void SpoilAfterFailure(void* out, size_t size) { std::memset(out, 0x5a, size); }

  static const char* GetLastError(ArrowDeviceArrayStream* self) {
    Stream* node = Enter(self, "get_last_error");
    if (!node->failed_just_now)
      node->audit->faults_.push_back("get_last_error without a failure just before (S4)");
    return node->inner.get_last_error(&node->inner);
  }

  static void ReleaseStream(ArrowDeviceArrayStream* self) {
    Stream* node = Enter(self, "release");
    node->released += 1;
    // A second release is reported above; passing it on would only crash the report.
    if (node->released == 1) node->inner.release(&node->inner);
    self->release = nullptr;
  }

  static void ReleaseSchema(ArrowSchema* self) {
    auto* node = static_cast<Node<ArrowSchema>*>(self->private_data);
    node->released += 1;
    if (node->released == 1) node->inner.release(&node->inner);
    self->release = nullptr;
  }

  static void ReleaseArray(ArrowArray* self) {
    auto* node = static_cast<Node<ArrowDeviceArray>*>(self->private_data);
    node->released += 1;
    if (node->released == 1 && spoil != "leak") node->inner.array.release(&node->inner.array);
    self->release = nullptr;
  }

  // Deques: the nodes' addresses are the private_data of live structs.
  std::deque<Stream> streams_;
  std::deque<Node<ArrowSchema>> schemas_;
  std::deque<Node<ArrowDeviceArray>> arrays_;
  std::vector<std::string> faults_;
};

}  // namespace peers
