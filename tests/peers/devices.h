// Devices: one that is not the CPU, with events to wait for, and one that is not what it says.
#pragma once

#include <deque>

#include "fake_cuda.h"
#include "harness.h"

namespace peers {

inline int64_t events_waited_for = 0;

// `raw` is what `event` gave, or a place of Rust's own that holds the same handle (C1, D11).
inline void CheckEvent(void* raw, FakeSyncEvent& event, PeerHow how) {
  Check((raw == event.get_raw()) == (how == kPeerAsItCame), "the wrong place for the event's handle");
  Check(*static_cast<FakeEvent**>(raw) == event.event(), "another event's handle");
}

inline void FakeCudaDevice() {
  const Sample sample;
  auto device = std::make_shared<FakeCuda>();
  const arrow::DeviceMemoryMapper mapper =
      [&](ArrowDeviceType type, int64_t id) -> arrow::Result<std::shared_ptr<arrow::MemoryManager>> {
    if (type != ARROW_DEVICE_CUDA || id != FakeCuda::kId) return arrow::Status::Invalid("another device");
    return device->default_memory_manager();
  };
  struct Seen {
    std::vector<void*> handles;
    int result = 0;
  };
  const auto wait = [](Seen* seen) {
    return PeerWait{seen, [](void* context, int32_t type, int64_t id, void* handle) -> int {
                      if (type != ARROW_DEVICE_CUDA || id != FakeCuda::kId || handle == nullptr)
                        return EINVAL;
                      auto* seen = static_cast<Seen*>(context);
                      seen->handles.push_back(handle);
                      if (seen->result == 0 && spoil != "event") (*static_cast<FakeEvent**>(handle))->Wait();
                      return seen->result;
                    }};
  };
  const auto upload = [&](std::deque<Upload>* uploads, Audit* audit) {
    Batches on_device;
    for (const auto& batch : sample.batches) {
      uploads->emplace_back(*batch, device, std::chrono::milliseconds(20));
      on_device.push_back(uploads->back().batch());
    }
    return Export(std::make_shared<Reader>(sample.schema, on_device, arrow::Status::OK(),
                                           arrow::DeviceAllocationType::kCUDA),
                  audit);
  };

  for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
    std::deque<Upload> uploads;
    Audit audit;
    auto stream = upload(&uploads, &audit);
    CheckEqual(stream.device_type, ARROW_DEVICE_CUDA, "the stream's device");
    Seen seen;
    auto peer = Open(&stream, wait(&seen));
    Describer describer(WithRoot(sample.layouts));
    for (size_t i = 0; i < uploads.size(); ++i) {
      Text text;
      ArrowDeviceArray out{};
      CheckEqual(Next(peer.get(), &out, &text, how), kPeerBatch, "peer_next", &text);
      Check(uploads[i].event()->event()->fired(), "a batch before its event (D5)");
      CheckEqual(text.text, kOnFakeCuda + describer.Batch(*uploads[i].batch()), "batch on the device");
      CheckEqual(seen.handles.size(), i + 1, "waits");
      CheckEvent(seen.handles[i], *uploads[i].event(), how);
      // Given back with its event; Arrow C++ waits for it again and copies to the host.
      auto imported = Must(arrow::ImportDeviceRecordBatch(&out, sample.schema, mapper));
      Check(imported->GetSyncEvent() != nullptr && imported->GetSyncEvent()->get_raw() == seen.handles[i],
            "the event is gone");
      Must(imported->GetSyncEvent()->Wait());
      CheckSame(*Must(imported->CopyTo(arrow::default_cpu_memory_manager())), *sample.batches[i],
                "batch back on the host");
      ++events_waited_for;
    }
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text, how), kPeerEnd, "peer_next", &text);
    peer.reset();
    CheckBooks(audit);
  }
  {
    // Nobody to wait: refused, released, and nothing was read.
    std::deque<Upload> uploads;
    Audit audit;
    auto stream = upload(&uploads, &audit);
    auto peer = Open(&stream);
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text), kPeerRefused, "taken without waiting");
    text.CheckHas("event");
    Check(out.array.release == nullptr, "an array with a refusal");
    peer.reset();
    CheckBooks(audit);
  }
  {
    // The wait fails: the array comes back inside the error and is released by its drop.
    std::deque<Upload> uploads;
    Audit audit;
    auto stream = upload(&uploads, &audit);
    Seen seen;
    seen.result = EIO;
    auto peer = Open(&stream, wait(&seen));
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text), kPeerRefused, "a failed wait");
    text.CheckHas("the wait gave 5");
    peer.reset();
    CheckBooks(audit);
  }
  for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
    // A stream of a device passed through Rust's own callbacks keeps type, id and event.
    std::deque<Upload> uploads;
    Audit audit;
    auto stream = upload(&uploads, &audit);
    auto out = Relay(&stream, how);
    CheckEqual(out.device_type, ARROW_DEVICE_CUDA, "the relay's device");
    auto reader = Must(arrow::ImportDeviceRecordBatchReader(&out, mapper));
    for (size_t i = 0; i < uploads.size(); ++i) {
      // Arrow C++ reads the last offset of a string column while it imports, without waiting: so wait before.
      Must(uploads[i].event()->Wait());
      auto batch = Must(reader->Next());
      CheckEvent(batch->GetSyncEvent()->get_raw(), *uploads[i].event(), how);
      CheckSame(*Must(batch->CopyTo(arrow::default_cpu_memory_manager())), *sample.batches[i],
                "batch of the relay");
    }
    reader.reset();
    CheckBooks(audit);
  }
  CheckEqual(Upload::live_events.load(), 0, "events not freed");
}

// S1: a stream that says CUDA and gives arrays on the CPU.
inline void WrongDevice() {
  const Sample sample;
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
  stream.device_type = ARROW_DEVICE_CUDA;
  auto peer = Open(&stream);
  Text text;
  ArrowDeviceArray out{};
  CheckEqual(Next(peer.get(), &out, &text), kPeerRefused, "an array of another device type (S1)");
  Check(out.array.release == nullptr, "an array with a refusal");
  peer.reset();
  CheckBooks(audit);
}

}  // namespace peers
