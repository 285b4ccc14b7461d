// Arrow C++'s exporter of asynchronous streams as the producer of Rust's receiver.
//
// What Arrow's exporter gets wrong, and what is done about it here or in the crate:
// - extract_data says 0 when exporting failed, and leaves the out-struct as it was: the receiver zeroes it, and reports a
//   released array (A10).
// - After cancel it calls on_error, with "Consumer requested cancellation" (A7): accepted here as an end.
// - After an answer that is not 0 it calls on_error (A3), and frees the task, extracted or not: the receiver ignores the
//   one, and refuses no task that it has touched.
// - request takes any number; a negative one is a large one (A6).
// - It blocks the thread that calls it until the consumer asks: so it has its own here, and everything a time limit.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "arrow/util/async_generator.h"
#include "async_peer.h"
#include "fake_cuda.h"
#include "harness.h"

namespace peers {

using Batch = std::shared_ptr<arrow::RecordBatch>;
using Generator = arrow::AsyncGenerator<Batch>;

inline void CheckHas(const std::string& text, const std::string& part) {
  Check(text.find(part) != std::string::npos, "no \"" + part + "\" in: " + text);
}

inline void Nap(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

inline Batches Thousand() {
  const auto schema = arrow::schema({arrow::field("n", arrow::int64())});
  Batches batches;
  for (int64_t i = 0; i < 1000; ++i) {
    auto column = Must(arrow::json::ArrayFromJSONString(arrow::int64(), "[" + std::to_string(i) + "]"));
    batches.push_back(arrow::RecordBatch::Make(schema, 1, {column}));
  }
  return batches;
}

// The batches, then `last`.
inline Generator Generate(Batches batches, arrow::Status last = arrow::Status::OK(), int nap = 0) {
  auto next = std::make_shared<size_t>(0);
  return [=]() -> arrow::Future<Batch> {
    if (nap != 0) Nap(nap);
    if (*next < batches.size()) return arrow::Future<Batch>::MakeFinished(batches[(*next)++]);
    if (!last.ok()) return arrow::Future<Batch>::MakeFinished(last);
    return arrow::AsyncGeneratorEnd<Batch>();
  };
}

// Arrow's producer on its own thread, and Rust's receiver.
class Receiving {
 public:
  Receiving(std::shared_ptr<arrow::Schema> schema, Generator generator, uint32_t prefetch)
      : peer_(async_receive(&handler_, prefetch)), schema_(schema) {
    producing_ = std::thread([this, generator = std::move(generator)]() mutable {
      auto done = arrow::ExportAsyncRecordBatchReader(schema_, std::move(generator),
                                                      arrow::DeviceAllocationType::kCPU, &handler_);
      status_ = done.status();
    });
    int code = 0;
    ArrowSchema seen;
    Text text;
    CheckEqual(async_schema(peer_, &seen, &code, text.sink()), 0, "async_schema", &text);
    Check(Must(arrow::ImportSchema(&seen))->Equals(schema_, /*check_metadata=*/true), "schema");
  }
  ~Receiving() { Stop(); }

  // The next batch; or null, and what it was in `end`, `code` and `text`.
  Batch Next() {
    ArrowDeviceArray out;
    std::memset(&out, 0x5a, sizeof out);
    text = {};
    end = async_next(peer_, &out, &code, text.sink());
    if (end != kPeerBatch) return nullptr;
    return Must(arrow::ImportDeviceRecordBatch(&out, schema_));
  }
  void CheckNext(const arrow::RecordBatch& expected, const std::string& what) {
    const Batch batch = Next();
    Check(batch != nullptr, what + ": none, but " + text.text);
    CheckSame(*batch, expected, what);
  }
  void Request(uint32_t n) { async_request(peer_, n); }
  void Cancel() { async_cancel(peer_); }

  // Drops the receiver, waits for the producer, and says what Arrow thinks of it.
  arrow::Status Close() {
    Stop();
    Check(handler_.release == nullptr && handler_.private_data == nullptr, "the handler is not released");
    return status_;
  }

  int end = kPeerBatch;
  int code = 0;
  Text text;

 private:
  void Stop() {
    if (peer_ != nullptr) async_close(peer_);
    peer_ = nullptr;
    if (producing_.joinable()) producing_.join();
  }

  ArrowAsyncDeviceStreamHandler handler_;
  AsyncPeer* peer_;
  std::shared_ptr<arrow::Schema> schema_;
  std::thread producing_;
  arrow::Status status_;
};

inline void ReceivedAll(const std::shared_ptr<arrow::Schema>& schema, const Batches& batches, uint32_t prefetch,
                 int producer_nap = 0, int consumer_nap = 0) {
  Receiving receiving(schema, Generate(batches, arrow::Status::OK(), producer_nap), prefetch);
  for (const Batch& batch : batches) {
    if (consumer_nap != 0) Nap(consumer_nap);
    if (prefetch == 0) receiving.Request(1);
    receiving.CheckNext(spoil == "row" ? *batches[0] : *batch, "batch received");
  }
  Check(receiving.Next() == nullptr, "something after the end");
  CheckEqual(receiving.end, static_cast<int>(kPeerEnd), "no end", &receiving.text);
  Must(receiving.Close());
}

inline void ReceiveEveryLayout() {
  const Sample sample;
  for (uint32_t prefetch : {0u, 1u, 4u, 100u}) ReceivedAll(sample.schema, sample.batches, prefetch);
  ReceivedAll(sample.schema, {}, 1);
}

inline void ReceiveAThousand() {
  const Batches batches = Thousand();
  for (uint32_t prefetch : {0u, 1u, 7u, 5000u}) ReceivedAll(batches[0]->schema(), batches, prefetch);
}

inline void ReceiveSlowly() {
  Batches batches = Thousand();
  batches.resize(50);
  ReceivedAll(batches[0]->schema(), batches, 3, /*producer_nap=*/500);
  ReceivedAll(batches[0]->schema(), batches, 3, 0, /*consumer_nap=*/500);
}

inline void ReceiveAnError() {
  const Sample sample;
  for (size_t good : {0u, 3u}) {
    const Batches head(sample.batches.begin(), sample.batches.begin() + static_cast<std::ptrdiff_t>(good));
    const arrow::Status failure = arrow::Status::IOError("the disk is gone: æøå");
    Receiving receiving(sample.schema, Generate(head, failure), 2);
    for (const Batch& batch : head) receiving.CheckNext(*batch, "before the error");
    Check(receiving.Next() == nullptr, "a batch for an error");
    CheckEqual(receiving.end, static_cast<int>(kPeerFailed), "no error");
    // Arrow reports every error so.
    CheckEqual(receiving.code, EINVAL, "code");
    CheckEqual(receiving.text.text, failure.message(), "text");
    Check(receiving.Next() == nullptr && receiving.end == kPeerEnd, "no end after the error");
    Check(!receiving.Close().ok(), "Arrow saw no error");
  }
}

inline void ReceiveAndDrop() {
  const Sample sample;
  for (size_t taken : {0u, 1u, 3u}) {
    for (uint32_t prefetch : {1u, 2u, 100u}) {
      Receiving receiving(sample.schema, Generate(sample.batches), prefetch);
      for (size_t i = 0; i < taken; ++i) receiving.CheckNext(*sample.batches[i], "before the drop");
      const arrow::Status status = receiving.Close();
      // Where all was asked for, all may have come before the drop.
      if (!status.ok()) CheckEqual(status.message(), "Consumer requested cancellation", "the drop");
    }
  }
}

inline void ReceiveAndCancel() {
  const Batches batches = Thousand();
  Receiving receiving(batches[0]->schema(), Generate(batches, arrow::Status::OK(), 20), 4);
  std::atomic<bool> some = false;
  std::thread cancelling([&] {
    while (!some) Nap(50);
    receiving.Cancel();
    receiving.Cancel();
  });
  size_t seen = 0;
  while (Batch batch = receiving.Next()) {
    CheckSame(*batch, *batches[seen++], "before cancel");
    if (seen == 3) some = true;
  }
  some = true;
  cancelling.join();
  Check(seen >= 3 && seen < batches.size(), "cancelled after " + std::to_string(seen) + " batches");
  // A7: no error by itself; Arrow makes one of it.
  CheckEqual(receiving.end, static_cast<int>(kPeerFailed), "the end after cancel", &receiving.text);
  CheckEqual(receiving.text.text, "Consumer requested cancellation", "the text after cancel");
}

// A batch that cannot be exported, since its columns are on two devices.
inline void ReceiveWhatCannotBeExported() {
  const Sample sample;
  const auto device = std::make_shared<FakeCuda>();
  {
    Upload upload(*sample.batches[3], device, std::chrono::milliseconds(0));
    Must(upload.event()->Wait());
    auto columns = upload.batch()->columns();
    for (size_t i = 0; i < columns.size() / 2; ++i) columns[i] = sample.batches[3]->column(static_cast<int>(i));
    const Batch mixed = arrow::RecordBatch::Make(sample.schema, sample.batches[3]->num_rows(), columns);
    Receiving receiving(sample.schema, Generate({sample.batches[0], mixed, sample.batches[1]}), 2);
    receiving.CheckNext(*sample.batches[0], "before it");
    Check(receiving.Next() == nullptr, "a batch that cannot be exported");
    CheckEqual(receiving.end, static_cast<int>(kPeerFailed), "no error");
    CheckEqual(receiving.text.text, "extract_data succeeded with a released array", "text");
    Check(receiving.Next() == nullptr && receiving.end == kPeerEnd, "no end after the error");
    const arrow::Status status = receiving.Close();
    // Where it has passed everything before, Arrow does not notice what extract_data has met.
    if (!status.ok()) CheckHas(status.message(), "more than one device");
  }
}

}  // namespace peers
