// Stands between Rust's driver and Arrow C++'s handler: keeps the books on the calls of both, and works round what
// Arrow's handler gets wrong, so that a run ends and leaks nothing:
// - It ends on a null task or an error only: after cancel, which ends in release alone (A7), its reader waits for ever.
//   So the shim passes a null task before such a release.
// - It never cancels. The tests call the producer's cancel themselves.
// - An error overtakes the batches before it, whose tasks it never extracts; a reader that is dropped leaves its tasks
//   too (A10). The shim counts them, and discards them when all is over.
// - It asks the producer for more when it takes a task from its queue, also after release (A9): Rust's producer has to be
//   there as long as a task is.
// - Its release does not set itself to null (C4).
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "arrow/util/async_generator.h"
#include "arrow/util/thread_pool.h"
#include "async_peer.h"
#include "harness.h"

namespace peers {

class Shim {
 public:
  explicit Shim(uint64_t queue_size) : pool_(Must(arrow::internal::ThreadPool::Make(2))) {
    future_ = arrow::CreateAsyncDeviceStreamHandler(&inner_, pool_.get(), queue_size);
    outer_ = {OnSchema, OnNextTask, OnError, Release, nullptr, this};
  }
  ~Shim() { Finish(); }

  ArrowAsyncDeviceStreamHandler* handler() { return &outer_; }
  arrow::Future<arrow::AsyncRecordBatchGenerator>& future() { return future_; }
  ArrowAsyncProducer* producer() { return outer_.producer; }

  // After the driver's end: waits for Arrow's threads, and says how many tasks were left to be discarded.
  size_t Finish() {
    if (finished_) return 0;
    finished_ = true;
    future_ = {};
    Must(pool_->Shutdown());
    size_t left = 0;
    for (Task& task : tasks_) {
      if (task.extracted) continue;
      ++left;
      task.real.extract_data(&task.real, nullptr);
    }
    return left;
  }

  // What the driver did wrong, or "".
  std::string Faults() const {
    std::string faults = faults_;
    if (schemas_ > 1) faults += "on_schema more than once\n";
    if (releases_ != 1) faults += "released " + std::to_string(releases_) + " times\n";
    return faults;
  }
  bool own_release_stays() const { return own_release_stays_; }
  bool was_ended() const { return ended_; }
  bool was_failed() const { return failed_; }

 private:
  struct Task {
    ArrowAsyncTask real;
    bool extracted = false;
  };

  static Shim* Self(ArrowAsyncDeviceStreamHandler* handler) { return static_cast<Shim*>(handler->private_data); }
  void Fault(const char* what) { faults_ += std::string(what) + "\n"; }
  void Enter(const char* what) {
    if (outer_.producer == nullptr) Fault("no producer (A1)");
    if (ended_ || failed_ || refused_ || releases_ != 0) Fault(what);
  }

  static int OnSchema(ArrowAsyncDeviceStreamHandler* handler, ArrowSchema* schema) {
    Shim* self = Self(handler);
    self->Enter("on_schema too late (A2)");
    ++self->schemas_;
    self->inner_.producer = handler->producer;
    const int code = self->inner_.on_schema(&self->inner_, schema);
    self->refused_ = code != 0;
    if (spoil == "producer") handler->producer = nullptr;
    return code;
  }
  static int OnNextTask(ArrowAsyncDeviceStreamHandler* handler, ArrowAsyncTask* task, const char* metadata) {
    Shim* self = Self(handler);
    self->Enter("on_next_task too late (A3)");
    if (self->schemas_ == 0) self->Fault("a task before the schema (A2)");
    if (task == nullptr) {
      self->ended_ = true;
      return self->inner_.on_next_task(&self->inner_, nullptr, metadata);
    }
    Task& kept = self->tasks_.emplace_back();
    kept.real = *task;
    ArrowAsyncTask passed = {Extract, &kept};
    const int code = self->inner_.on_next_task(&self->inner_, &passed, metadata);
    self->refused_ = code != 0;
    return code;
  }
  static int Extract(ArrowAsyncTask* task, ArrowDeviceArray* out) {
    auto* kept = static_cast<Task*>(task->private_data);
    kept->extracted = true;
    return kept->real.extract_data(&kept->real, out);
  }
  static void OnError(ArrowAsyncDeviceStreamHandler* handler, int code, const char* message, const char* metadata) {
    Shim* self = Self(handler);
    self->Enter("on_error too late (A3)");
    self->failed_ = true;
    self->inner_.on_error(&self->inner_, code, message, metadata);
  }
  static void Release(ArrowAsyncDeviceStreamHandler* handler) {
    Shim* self = Self(handler);
    if (self->schemas_ != 0 && !self->ended_ && !self->failed_ && !self->refused_)
      self->inner_.on_next_task(&self->inner_, nullptr, nullptr);
    ++self->releases_;
    self->inner_.release(&self->inner_);
    self->own_release_stays_ = self->inner_.release != nullptr;
    handler->release = nullptr;
  }

  std::shared_ptr<arrow::internal::ThreadPool> pool_;
  ArrowAsyncDeviceStreamHandler outer_{};
  ArrowAsyncDeviceStreamHandler inner_{};
  arrow::Future<arrow::AsyncRecordBatchGenerator> future_;
  // Written by the driver's thread, marked by Arrow's, read when all of them have ended.
  std::deque<Task> tasks_;
  std::string faults_;
  int schemas_ = 0;
  int releases_ = 0;
  bool ended_ = false;
  bool failed_ = false;
  bool refused_ = false;
  bool own_release_stays_ = false;
  bool finished_ = false;
};

}  // namespace peers
