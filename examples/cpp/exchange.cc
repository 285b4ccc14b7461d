// C++ and Rust exchange batches and streams by the structs of arrow_device_abi.h, with an owner that releases.
//
//     cargo build --example rust_side
//     c++ -I include -I examples/c examples/cpp/exchange.cc -L target/debug/examples -lrust_side -o exchange
//     LD_LIBRARY_PATH=target/debug/examples ./exchange
//
// Who owns what at each step is drawn in docs/ffi.md.

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rust_side.h"

namespace {

// The release callback of each struct; a device array's is that of its array.
template <typename T>
T& Base(T& c) {
  return c;
}
ArrowArray& Base(ArrowDeviceArray& c) { return c.array; }

// The only owner of a C struct. Moving copies the bytes and marks the source; nothing is called.
template <typename T>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept { MoveFrom(&other.c_); }
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      Release();
      MoveFrom(&other.c_);
    }
    return *this;
  }
  ~Owned() { Release(); }

  // Moves a struct out of somebody else's memory.
  static Owned Take(T* source) {
    Owned owned;
    owned.MoveFrom(source);
    return owned;
  }

  bool released() const { return Base(const_cast<T&>(c_)).release == nullptr; }
  T* operator->() { return &c_; }
  // For who fills it in, or moves it out.
  T* out() {
    Release();
    return &c_;
  }
  T* lend() { return &c_; }

 private:
  void MoveFrom(T* source) {
    c_ = *source;
    Base(*source).release = nullptr;
  }
  void Release() {
    auto& base = Base(c_);
    if (base.release != nullptr) base.release(&base);
  }

  T c_ = {};
};

void Check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}
void Succeed(int code) {
  if (code != 0) throw std::runtime_error(rust_error());
}

// ---- What a consumer does

void ABatchOfRust() {
  Owned<ArrowDeviceArray> array;
  {
    Owned<ArrowSchema> schema;
    Owned<ArrowDeviceArray> made;
    Succeed(rust_make_batch(1, 3, schema.out(), made.out()));
    Check(std::string(schema->children[0]->name) == "value", "the schema");
    array = std::move(made);
    Check(made.released(), "moved");
  }
  // A child on another thread, after its parent.
  auto column = Owned<ArrowArray>::Take(array->array.children[0]);
  array = {};
  Check(rust_alive() == 1, "the child keeps the memory");
  std::thread([column = std::move(column)]() mutable {
    Check(static_cast<const std::int64_t*>(column->buffers[1])[2] == 3, "the values");
  }).join();
  Check(rust_alive() == 0, "released");
}

void AStreamOfRust() {
  Owned<ArrowDeviceArrayStream> stream;
  Succeed(rust_make_stream(2, 1, stream.out()));
  std::vector<Owned<ArrowDeviceArray>> batches;
  int code;
  for (;;) {
    Owned<ArrowDeviceArray> batch;
    code = stream->get_next(stream.lend(), batch.lend());
    if (code != 0 || batch.released()) break;
    batches.push_back(std::move(batch));
  }
  Check(code == EIO, "the code");
  Check(std::strcmp(stream->get_last_error(stream.lend()), "the last batch got lost") == 0, "the text");
  stream = {};
  Check(batches.size() == 2 && rust_alive() == 2, "batches outlive their stream");
  batches.clear();
  Check(rust_alive() == 0, "released");
}

// ---- What a producer does

// Any memory with an owner, as a batch with one column. The keep-alive is copied for each node, so that a child that is
// moved out lives by itself.
struct Node {
  explicit Node(std::shared_ptr<const std::vector<std::int64_t>> kept) : values(std::move(kept)) {}

  std::shared_ptr<const std::vector<std::int64_t>> values;
  const void* buffers[2] = {nullptr, nullptr};
  ArrowArray child = {};
  ArrowArray* children[1] = {&child};

  // Nothing may be thrown into C.
  static void Release(ArrowArray* array) noexcept {
    std::unique_ptr<Node> node(static_cast<Node*>(array->private_data));
    if (node->child.release != nullptr) node->child.release(&node->child);
    array->release = nullptr;
  }
};

void Export(const std::shared_ptr<const std::vector<std::int64_t>>& values, ArrowDeviceArray* out) {
  auto column = std::make_unique<Node>(values);
  auto batch = std::make_unique<Node>(values);
  column->buffers[1] = values->data();
  const auto length = static_cast<std::int64_t>(values->size());

  ArrowArray& child = batch->child;
  child.length = length;
  child.n_buffers = 2;
  child.buffers = column->buffers;
  child.release = Node::Release;
  child.private_data = column.release();

  *out = {};
  out->device_type = ARROW_DEVICE_CPU;
  out->device_id = -1;
  out->array.length = length;
  out->array.n_buffers = 1;
  out->array.buffers = batch->buffers;
  out->array.n_children = 1;
  out->array.children = batch->children;
  out->array.release = Node::Release;
  out->array.private_data = batch.release();
}

void ABatchOfCpp() {
  auto values = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{5, 6, 7});
  Owned<ArrowSchema> schema;
  Owned<ArrowDeviceArray> array, unused;
  Succeed(rust_make_batch(0, 0, schema.out(), unused.out()));  // its schema fits
  Export(values, array.out());
  Check(values.use_count() == 3, "kept");
  std::int64_t sum = 0;
  Succeed(rust_sum_batch(schema.lend(), array.lend(), {nullptr, nullptr}, &sum));
  Check(sum == 18, "the sum");
  Check(schema.released() && array.released() && values.use_count() == 1, "moved out and released");
}

}  // namespace

int main() {
  try {
    ABatchOfRust();
    AStreamOfRust();
    ABatchOfCpp();
  } catch (const std::exception& error) {
    std::cerr << "failed: " << error.what() << "\n";
    return 1;
  }
  std::cout << "C++ and Rust: batches and streams\n";
}
