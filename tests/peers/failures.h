// Errors in both directions, early drops, refusals.
#pragma once

#include <cerrno>
#include <functional>

#include "harness.h"

namespace peers {

struct Failure {
  arrow::Status status;
  int code;
};

inline std::vector<Failure> Failures() {
  return {
      {arrow::Status::Invalid("bad input: æøå"), EINVAL},
      {arrow::Status::IOError("the disk is gone"), EIO},
      {arrow::Status::OutOfMemory("too much"), ENOMEM},
      {arrow::Status::NotImplemented("not yet"), ENOSYS},
      {arrow::Status::Invalid(""), EINVAL},
      {arrow::Status::Invalid(std::string(100'000, 'x')), EINVAL},
  };
}

inline void ErrorInTheMiddle() {
  const Sample sample;
  for (const auto& [status, expected_code] : Failures()) {
    for (size_t good : {0u, 2u}) {
      const Batches head(sample.batches.begin(), sample.batches.begin() + static_cast<std::ptrdiff_t>(good));
      Audit audit;
      auto stream = Export(std::make_shared<Reader>(sample.schema, head, status), &audit);
      auto peer = Open(&stream);
      std::vector<std::shared_ptr<arrow::RecordBatch>> kept;
      for (size_t i = 0; i < good; ++i) {
        Text text;
        ArrowDeviceArray out{};
        CheckEqual(Next(peer.get(), &out, &text), kPeerBatch, "before the error", &text);
        kept.push_back(Must(arrow::ImportDeviceRecordBatch(&out, sample.schema)));
      }
      Text text;
      ArrowDeviceArray out{};
      int code = 0;
      CheckEqual(Next(peer.get(), &out, &text, kPeerAsItCame, &code), kPeerFailed, "no error", &text);
      CheckEqual(code, expected_code, "code of " + status.ToString());
      CheckEqual(text.text, status.ToString(), "text");
      Check(out.array.release == nullptr, "an array with an error");
      Text after;
      CheckEqual(Next(peer.get(), &out, &after, kPeerAsItCame, &code), kPeerEnd, "not fused after an error",
                 &after);
      peer.reset();
      // What came before the error outlives the stream (S6).
      for (size_t i = 0; i < good; ++i) CheckSame(*kept[i], *sample.batches[i], "batch before the error");
      kept.clear();
      CheckBooks(audit);
    }
  }
}

inline void ErrorThroughRustIntoArrow() {
  const Sample sample;
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, Batches{sample.batches[0]},
                                                arrow::Status::IOError("from C++ æ")),
                       &audit);
  auto out = Relay(&stream, kPeerAnew);
  auto reader = Must(arrow::ImportDeviceRecordBatchReader(&out));
  CheckSame(*Must(reader->Next()), *sample.batches[0], "batch before the error");
  const auto status = reader->Next().status();
  Check(status.IsIOError(), "not an IOError: " + status.ToString());
  Check(status.message().find("from C++ æ") != std::string::npos, status.ToString());
  reader.reset();
  CheckBooks(audit);
}

inline void ErrorFromRustIntoArrow() {
  const Sample sample;
  const struct {
    int kind;
    int code;
    arrow::StatusCode expected;
    std::string text;
  } cases[] = {
      {kPeerFails, EINVAL, arrow::StatusCode::Invalid, "relé stopped after 2 batches"},
      {kPeerFails, ENOMEM, arrow::StatusCode::OutOfMemory, "relé stopped after 2 batches"},
      {kPeerFails, ENOSYS, arrow::StatusCode::NotImplemented, "relé stopped after 2 batches"},
      {kPeerFails, EIO, arrow::StatusCode::IOError, "relé stopped after 2 batches"},
      {kPeerFailsAsTheSystem, ENOSYS, arrow::StatusCode::NotImplemented, std::strerror(ENOSYS)},
      {kPeerFailsAsTheSystem, ENOENT, arrow::StatusCode::IOError, std::strerror(ENOENT)},
      {kPeerPanics, 0, arrow::StatusCode::IOError, "panicked: relé panicked after 2 batches"},
      // S1: the array does not get out, whatever it says of itself.
      {kPeerLeavesTheDevice, 0, arrow::StatusCode::Invalid, "EXT_DEV"},
  };
  for (const auto& [kind, code, expected, text] : cases) {
    for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
      Audit audit;
      auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
      auto out = Relay(&stream, how, {2, kind, code});
      auto reader = Must(arrow::ImportDeviceRecordBatchReader(&out));
      Batches kept = {Must(reader->Next()), Must(reader->Next())};
      // The first time, and ever after.
      for (int i = 0; i < 2; ++i) {
        const auto status = reader->Next().status();
        CheckEqual(static_cast<int>(status.code()), static_cast<int>(expected), status.ToString());
        Check(status.message().find(text) != std::string::npos,
              "no \"" + text + "\" in " + status.ToString());
      }
      reader.reset();
      // What came before the error outlives the stream (S6).
      for (size_t i = 0; i < kept.size(); ++i)
        CheckSame(*kept[i], *sample.batches[i], "batch before the error");
      kept.clear();
      CheckBooks(audit);
    }
  }
}

inline void EarlyDrop() {
  const Sample sample;
  auto with_audit = [&sample](const std::function<void(ArrowDeviceArrayStream*)>& use) {
    Audit audit;
    auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
    use(&stream);
    CheckBooks(audit);
  };
  // Rust drops: at once, after the schema, after a batch that nobody waited for, after one that is still held
  // here.
  with_audit([](auto* stream) { Open(stream); });
  with_audit([&](auto* stream) {
    auto peer = Open(stream);
    CheckedSchema(peer.get(), kPeerAnew, Describer(WithRoot(sample.layouts)).Schema(*sample.schema));
  });
  with_audit([](auto* stream) {
    auto peer = Open(stream);
    Text text;
    CheckEqual(peer_discard(peer.get(), text.sink()), kPeerBatch, "peer_discard", &text);
  });
  with_audit([&](auto* stream) {
    auto peer = Open(stream);
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text), kPeerBatch, "peer_next", &text);
    peer.reset();
    CheckSame(*Must(arrow::ImportDeviceRecordBatch(&out, sample.schema)), *sample.batches[0],
              "batch after its stream (S6)");
  });
  // C++ drops what Rust gave it: the batch unread, the stream unread, the stream half read.
  with_audit([](auto* stream) {
    auto peer = Open(stream);
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text), kPeerBatch, "peer_next", &text);
    out.array.release(&out.array);
    Check(out.array.release == nullptr, "not marked released");
  });
  for (int reads : {-1, 0, 1, 2}) {
    const auto drop_after_reading = [reads](ArrowDeviceArrayStream* stream) {
      if (reads < 0) return stream->release(stream);
      auto reader = Must(arrow::ImportDeviceRecordBatchReader(stream));
      for (int i = 0; i < reads; ++i) Must(reader->Next());
    };
    for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
      with_audit([&](auto* stream) {
        auto out = Relay(stream, how);
        drop_after_reading(&out);
      });
    }
    auto made = Made();
    drop_after_reading(&made);
  }
}

inline void RefusedStreams() {
  ArrowDeviceArrayStream released{};
  Text text;
  Check(peer_open(&released, {}, text.sink()) == nullptr, "a released stream was taken");
  Check(!text.text.empty(), "refused without a reason");
  Check(peer_open(nullptr, {}, text.sink()) == nullptr, "a null stream was taken");
}

}  // namespace peers
