// A CUDA device that is not there: host memory which fills up on a thread of its own, behind an event.
//
// To Arrow C++ and to the consumer it is device type 2; who reads a buffer before its event has fired reads
// 0xEE.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "layouts.h"

namespace peers {

// What a cudaEvent_t would point to.
class FakeEvent {
 public:
  void Fire() {
    std::lock_guard lock(mutex_);
    fired_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return fired_; });
  }
  bool fired() {
    std::lock_guard lock(mutex_);
    return fired_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool fired_ = false;
};

// The raw pointer is the address OF the handle, as the C device interface wants it for CUDA.
class FakeSyncEvent : public arrow::Device::SyncEvent {
 public:
  FakeSyncEvent(FakeEvent** handle, release_fn_t release) : SyncEvent(handle, std::move(release)) {}
  static std::shared_ptr<FakeSyncEvent> Make(std::atomic<int>* live) {
    live->fetch_add(1);
    return std::make_shared<FakeSyncEvent>(new FakeEvent*(new FakeEvent), [live](void* raw) {
      auto** handle = static_cast<FakeEvent**>(raw);
      delete *handle;
      delete handle;
      live->fetch_sub(1);
    });
  }
  FakeEvent* event() { return *static_cast<FakeEvent**>(get_raw()); }
  arrow::Status Wait() override {
    event()->Wait();
    return arrow::Status::OK();
  }
  arrow::Status Record(const arrow::Device::Stream&) override {
    return arrow::Status::NotImplemented("no streams");
  }
};

class FakeMemory : public arrow::MemoryManager {
 public:
  explicit FakeMemory(const std::shared_ptr<arrow::Device>& device) : MemoryManager(device) {}

  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> GetBufferReader(
      std::shared_ptr<arrow::Buffer>) override {
    return arrow::Status::NotImplemented("reader");
  }
  arrow::Result<std::shared_ptr<arrow::io::OutputStream>> GetBufferWriter(
      std::shared_ptr<arrow::Buffer>) override {
    return arrow::Status::NotImplemented("writer");
  }
  arrow::Result<std::unique_ptr<arrow::Buffer>> AllocateBuffer(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> host, arrow::AllocateBuffer(size));
    return std::make_unique<arrow::Buffer>(host->address(), size, shared_from_this(), host);
  }
  arrow::Result<std::shared_ptr<arrow::Device::SyncEvent>> WrapDeviceSyncEvent(
      void* raw, arrow::Device::SyncEvent::release_fn_t release) override {
    return std::make_shared<FakeSyncEvent>(static_cast<FakeEvent**>(raw), std::move(release));
  }

 protected:
  arrow::Result<std::shared_ptr<arrow::Buffer>> CopyBufferTo(
      const std::shared_ptr<arrow::Buffer>& buffer, const std::shared_ptr<MemoryManager>& to) override {
    if (!to->is_cpu()) return nullptr;
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> copy, arrow::AllocateBuffer(buffer->size()));
    std::memcpy(copy->mutable_data(), reinterpret_cast<const void*>(buffer->address()),
                static_cast<size_t>(buffer->size()));
    return copy;
  }
};

class FakeCuda : public arrow::Device {
 public:
  static constexpr int64_t kId = 3;
  const char* type_name() const override { return "peers::FakeCuda"; }
  std::string ToString() const override { return "FakeCuda(3)"; }
  bool Equals(const Device& other) const override { return &other == this; }
  int64_t device_id() const override { return kId; }
  arrow::DeviceAllocationType device_type() const override { return arrow::DeviceAllocationType::kCUDA; }
  std::shared_ptr<arrow::MemoryManager> default_memory_manager() override {
    return std::make_shared<FakeMemory>(shared_from_this());
  }
};

// Puts a batch on the device: its buffers exist at once, their bytes arrive `delay` later and then the event
// fires.
class Upload {
 public:
  Upload(const arrow::RecordBatch& host, const std::shared_ptr<arrow::Device>& device,
         std::chrono::milliseconds delay)
      : memory_(device->default_memory_manager()), event_(FakeSyncEvent::Make(&live_events)) {
    std::vector<std::shared_ptr<arrow::ArrayData>> columns;
    for (const auto& column : host.column_data()) columns.push_back(Place(*column));
    batch_ = arrow::RecordBatch::Make(host.schema(), host.num_rows(), std::move(columns),
                                      arrow::DeviceAllocationType::kCUDA, event_);
    worker_ = std::thread([this, delay, event = event_] {
      std::this_thread::sleep_for(delay);
      for (const auto& [source, target] : copies_) {
        std::memcpy(reinterpret_cast<void*>(target->address()), source->data(),
                    static_cast<size_t>(source->size()));
      }
      event->event()->Fire();
    });
  }
  ~Upload() { worker_.join(); }

  const std::shared_ptr<arrow::RecordBatch>& batch() const { return batch_; }
  const std::shared_ptr<FakeSyncEvent>& event() const { return event_; }

  static inline std::atomic<int> live_events = 0;

 private:
  std::shared_ptr<arrow::ArrayData> Place(const arrow::ArrayData& host) {
    // Arrow C++ counts nulls when it exports, through pointers that it does not have for a device: count them
    // first.
    host.GetNullCount();
    auto placed = host.Copy();
    for (auto& buffer : placed->buffers) {
      if (buffer == nullptr) continue;
      std::shared_ptr<arrow::Buffer> target = Must(memory_->AllocateBuffer(buffer->size()));
      std::memset(reinterpret_cast<void*>(target->address()), 0xee, static_cast<size_t>(target->size()));
      copies_.emplace_back(buffer, target);
      buffer = target;
    }
    for (auto& child : placed->child_data) child = Place(*child);
    if (placed->dictionary != nullptr) placed->dictionary = Place(*placed->dictionary);
    return placed;
  }

  std::shared_ptr<arrow::MemoryManager> memory_;
  std::shared_ptr<FakeSyncEvent> event_;
  std::vector<std::pair<std::shared_ptr<arrow::Buffer>, std::shared_ptr<arrow::Buffer>>> copies_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::thread worker_;
};

}  // namespace peers
