// Arrow C++ as the peer of asynchronous device streams, both directions: ExportAsyncRecordBatchReader into Rust's
// receiver, and Rust's driver into CreateAsyncDeviceStreamHandler.
//
// What Arrow's exporter gets wrong is told in async_receive.h, what its handler does in async_shim.h.

#include <unistd.h>

#include <cerrno>
#include <thread>

#include "async_receive.h"
#include "async_shim.h"

namespace peers {
namespace {

constexpr AsyncPlan kWhole = {-1, 0, 0, -1, 0};

// Rust's driver on its own thread, over a stream of Arrow's, and Arrow's handler.
class Driving {
 public:
  Driving(const std::shared_ptr<arrow::Schema>& schema, const Batches& batches, AsyncPlan plan, uint64_t queue_size)
      : shim_(queue_size), stream_(Export(std::make_shared<Reader>(schema, batches), &audit_)) {
    driver_ = async_drive(shim_.handler(), &stream_, plan);
    opened_ = Must(shim_.future().result());
    Check(opened_.schema->Equals(schema, /*check_metadata=*/true), "schema");
    Check(opened_.device_type == arrow::DeviceAllocationType::kCPU, "device type");
  }

  // The next batch, or null at the end, or the error.
  arrow::Result<Batch> Next() {
    auto next = opened_.generator().result();
    if (!next.ok()) return next.status();
    if (arrow::IsIterationEnd(*next)) return nullptr;
    async_taken(driver_, ++taken_);
    return std::move(next->batch);
  }
  void CheckNext(const arrow::RecordBatch& expected, const std::string& what) {
    const Batch batch = Must(Next());
    Check(batch != nullptr, what + ": no batch");
    CheckSame(*batch, expected, what);
  }
  ArrowAsyncProducer* producer() { return shim_.producer(); }

  // Waits for both sides, and says how the driver ended; `left` is how many tasks Arrow's side did not extract.
  std::string Finish(size_t* left) {
    Text text;
    async_join(driver_, text.sink());
    opened_ = {};
    *left = shim_.Finish();
    CheckEqual(shim_.Faults(), "", "the driver's calls");
    Check(shim_.own_release_stays(), "Arrow's release clears itself now: async_shim.h need not say otherwise");
    CheckBooks(audit_);
    return text.text;
  }
  void CheckFinish(const std::string& expected) {
    size_t left = 0;
    CheckEqual(Finish(&left), expected, "the driver's end");
    CheckEqual(left, 0u, "tasks that were not extracted");
  }
  const Shim& shim() const { return shim_; }

 private:
  Audit audit_;
  Shim shim_;
  ArrowDeviceArrayStream stream_;
  AsyncDriver* driver_ = nullptr;
  arrow::AsyncRecordBatchGenerator opened_;
  int64_t taken_ = 0;
};

void DrivenAll(const std::shared_ptr<arrow::Schema>& schema, const Batches& batches, uint64_t queue_size, AsyncPlan plan,
               int consumer_nap = 0) {
  Driving driving(schema, batches, plan, queue_size);
  for (const Batch& batch : batches) {
    if (consumer_nap != 0) Nap(consumer_nap);
    driving.CheckNext(*batch, "batch driven");
  }
  Check(Must(driving.Next()) == nullptr, "something after the end");
  driving.CheckFinish("Complete");
  Check(driving.shim().was_ended(), "no null task at the end (A4)");
}

void DriveEveryLayout() {
  const Sample sample;
  for (uint64_t queue_size : {1u, 3u, 100u}) {
    for (int on_tokio : {0, 1}) {
      AsyncPlan plan = kWhole;
      plan.on_tokio = on_tokio;
      DrivenAll(sample.schema, sample.batches, queue_size, plan);
    }
  }
  DrivenAll(sample.schema, {}, 1, kWhole);
}

void DriveAThousand() {
  const Batches batches = Thousand();
  for (uint64_t queue_size : {1u, 7u, 5000u}) DrivenAll(batches[0]->schema(), batches, queue_size, kWhole);
}

void DriveSlowly() {
  Batches batches = Thousand();
  batches.resize(50);
  AsyncPlan slow = kWhole;
  slow.delay_microseconds = 500;
  DrivenAll(batches[0]->schema(), batches, 3, slow);
  DrivenAll(batches[0]->schema(), batches, 3, kWhole, /*consumer_nap=*/500);
}

void CheckError(const arrow::Result<Batch>& seen, int code, const std::string& text) {
  Check(!seen.ok(), "no error");
  const auto detail = std::dynamic_pointer_cast<arrow::AsyncErrorDetail>(seen.status().detail());
  Check(detail != nullptr, "another error: " + seen.status().ToString());
  CheckEqual(detail->code(), code, "code");
  CheckEqual(seen.status().message(), text, "text");
}

void DriveAnError() {
  const Sample sample;
  for (int64_t good : {0, 3}) {
    AsyncPlan plan = kWhole;
    plan.fails_after = good;
    plan.code = 42;
    Driving driving(sample.schema, sample.batches, plan, 2);
    for (int64_t i = 0; i < good; ++i) driving.CheckNext(*sample.batches[static_cast<size_t>(i)], "before the error");
    CheckError(driving.Next(), 42, "relé stopped");
    driving.CheckFinish("Failed(StreamFailure { code: 42, message: \"relé stopped\" })");
    Check(driving.shim().was_failed(), "no on_error (A8)");
  }
}

// The driver is dropped while Arrow holds tasks: an error, and what Arrow does not extract is left to the shim.
void DriveAndDrop() {
  const Batches batches = Thousand();
  AsyncPlan plan = kWhole;
  plan.dropped_after = 5;
  Driving driving(batches[0]->schema(), batches, plan, 3);
  arrow::Result<Batch> next = driving.Next();
  size_t seen = 0;
  for (; next.ok(); next = driving.Next()) CheckSame(**next, *batches[seen++], "before the drop");
  Check(seen >= 5 && seen < batches.size(), "dropped after " + std::to_string(seen) + " batches");
  CheckError(next, EIO, "the producer was dropped before the end of the stream");
  size_t left = 0;
  CheckEqual(driving.Finish(&left), "dropped", "the driver's end");
}

// Cancelled from another thread, thrice, with the reader at work or gone: release alone (A7).
void DriveAndCancel() {
  const Batches batches = Thousand();
  for (size_t taken : {0u, 3u}) {
    Driving driving(batches[0]->schema(), batches, kWhole, 4);
    for (size_t i = 0; i < taken; ++i) driving.CheckNext(*batches[i], "before cancel");
    std::thread([&] {
      for (int i = 0; i < 3; ++i) driving.producer()->cancel(driving.producer());
    }).join();
    size_t seen = taken;
    while (Batch batch = Must(driving.Next())) CheckSame(*batch, *batches[seen++], "after cancel");
    Check(seen < batches.size(), "not cancelled");
    driving.CheckFinish("Cancelled");
    Check(!driving.shim().was_failed() && !driving.shim().was_ended(), "cancel is no error, and no end");
  }
}

// The reader is dropped early; Arrow neither cancels nor discards, which is done here.
void DropTheReader() {
  const Batches batches = Thousand();
  Driving driving(batches[0]->schema(), batches, kWhole, 4);
  driving.CheckNext(*batches[0], "before the drop");
  driving.producer()->cancel(driving.producer());
  size_t left = 0;
  CheckEqual(driving.Finish(&left), "Cancelled", "the driver's end");
}

void Run() {
  const struct {
    const char* name;
    void (*run)();
  } tests[] = {
      {"receive every layout", ReceiveEveryLayout},
      {"receive a thousand", ReceiveAThousand},
      {"receive slowly", ReceiveSlowly},
      {"receive an error", ReceiveAnError},
      {"receive and drop", ReceiveAndDrop},
      {"receive and cancel", ReceiveAndCancel},
      {"receive what cannot be exported", ReceiveWhatCannotBeExported},
      {"drive every layout", DriveEveryLayout},
      {"drive a thousand", DriveAThousand},
      {"drive slowly", DriveSlowly},
      {"drive an error", DriveAnError},
      {"drive and drop", DriveAndDrop},
      {"drive and cancel", DriveAndCancel},
      {"drop the reader", DropTheReader},
  };
  arrow::MemoryPool* pool = arrow::default_memory_pool();
  for (const auto& test : tests) {
    const int64_t before = pool->bytes_allocated();
    try {
      test.run();
      const int64_t leaked = spoil == "leak" ? 1 : 0;
      CheckEqual(pool->bytes_allocated() + leaked, before, "bytes in Arrow's pool");
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string(test.name) + ": " + error.what());
    }
  }
  const std::string cpp = "Arrow C++ " + arrow::GetBuildInfo().version_string;
  std::cout << "peer: " << cpp
            << " -> Rust, asynchronous: every layout and a thousand batches, by hand and with prefetch depths up to 5,000, "
               "from a slow producer and by a slow consumer: equal; errors, early drops, cancel from another thread; a "
               "batch that Arrow cannot export\n"
            << "peer: Rust -> " << cpp
            << ", asynchronous: every layout and a thousand batches, on an executor and on a thread, by a slow producer "
               "and to a slow consumer: equal; errors, drops on either side, cancel from another thread\n"
            << "peer: " << cpp
            << ", asynchronous, books: every call of the driver in its place, every task extracted once, 0 bytes left\n";
}

}  // namespace
}  // namespace peers

// With an argument it does that wrong and must fail.
int main(int argc, char** argv) {
  // Whatever waits for ever is a fault.
  alarm(300);
  if (argc > 1) peers::spoil = argv[1];
  try {
    peers::Run();
  } catch (const std::exception& error) {
    std::cerr << "async_cpp: " << error.what() << "\n";
    // Threads of the test that failed may be waiting still.
    std::cerr.flush();
    _exit(1);
  }
  return 0;
}
