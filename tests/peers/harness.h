// What the tests of arrow_cpp.cc have in common: checks, a reader to export, the peer's handle, sample data.
#pragma once

#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "arrow/c/bridge.h"
#include "audit.h"
#include "cpp_peer.h"
#include "describe.h"
#include "layouts.h"
#include "tamper.h"

namespace peers {

using Batches = arrow::RecordBatchVector;

inline void Check(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

struct Text {
  std::string text;
  PeerText sink() {
    return {this, [](void* self, const char* bytes, size_t length) {
              static_cast<Text*>(self)->text.append(bytes, length);
            }};
  }
  void CheckHas(const std::string& part) const {
    Check(text.find(part) != std::string::npos, "no \"" + part + "\" in: " + text);
  }
};

// `said` is looked at after the call that may have written it: the order of evaluation of arguments is
// nobody's.
template <typename A, typename B>
inline void CheckEqual(const A& seen, const B& expected, const std::string& what,
                       const Text* said = nullptr) {
  if (seen == expected) return;
  std::ostringstream text;
  text << what << (said == nullptr ? "" : ": " + said->text) << "\n--- seen\n"
       << seen << "\n--- expected\n"
       << expected;
  throw std::runtime_error(text.str());
}

inline void CheckSame(const arrow::RecordBatch& seen, const arrow::RecordBatch& expected,
                      const std::string& what) {
  // Arrow C++ imports an array of length 0 with empty buffers but keeps its offset, which its own validation
  // of view types then refuses.
  if (seen.num_rows() != 0) Must(seen.ValidateFull());
  Check(seen.schema()->Equals(expected.schema(), /*check_metadata=*/true), what + ": schema");
  for (int i = 0; i < expected.num_columns(); ++i) {
    if (!seen.column(i)->Equals(expected.column(i)))
      CheckEqual(seen.column(i)->ToString(), expected.column(i)->ToString(),
                 what + ": " + expected.column_name(i));
  }
  Check(seen.Equals(expected, /*check_metadata=*/true), what);
}

inline void CheckBooks(const Audit& audit) {
  std::string all;
  for (const std::string& fault : audit.Faults()) all += fault + "\n";
  CheckEqual(all, "", "books");
}

// Gives its batches, then the end or an error.
class Reader : public arrow::RecordBatchReader {
 public:
  Reader(std::shared_ptr<arrow::Schema> schema, Batches batches, arrow::Status last = arrow::Status::OK(),
         arrow::DeviceAllocationType device = arrow::DeviceAllocationType::kCPU)
      : schema_(std::move(schema)), batches_(std::move(batches)), last_(std::move(last)), device_(device) {}
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::DeviceAllocationType device_type() const override { return device_; }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    *batch = nullptr;
    if (next_ == batches_.size()) return last_;
    *batch = std::move(batches_[next_++]);
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::Schema> schema_;
  Batches batches_;
  arrow::Status last_;
  arrow::DeviceAllocationType device_;
  size_t next_ = 0;
};

inline ArrowDeviceArrayStream Export(std::shared_ptr<arrow::RecordBatchReader> reader, Audit* audit) {
  ArrowDeviceArrayStream stream;
  Must(arrow::ExportDeviceRecordBatchReader(std::move(reader), &stream));
  audit->Watch(&stream);
  return stream;
}

struct ReaderCloser {
  void operator()(PeerReader* reader) const { peer_close(reader); }
};
using Peer = std::unique_ptr<PeerReader, ReaderCloser>;

inline Peer Open(ArrowDeviceArrayStream* stream, PeerWait wait = {}) {
  Text text;
  Peer peer(peer_open(stream, wait, text.sink()));
  Check(peer != nullptr, "the stream was refused: " + text.text);
  Check(stream->release == nullptr, "taken, and the source is not marked released (D13)");
  return peer;
}

inline std::shared_ptr<arrow::Schema> CheckedSchema(PeerReader* peer, PeerHow how,
                                                    const std::string& expected) {
  Text text;
  ArrowSchema schema{};
  CheckEqual(peer_schema(peer, how, &schema, text.sink()), 0, "peer_schema", &text);
  CheckEqual(text.text, expected, "schema");
  Tamper(&schema);
  return Must(arrow::ImportSchema(&schema));
}

// Never looks at what the failed call left behind, so a live struct would be seen as a leak.
inline int Next(PeerReader* peer, ArrowDeviceArray* out, Text* text, PeerHow how = kPeerAsItCame,
                int* code = nullptr) {
  int ignored = 0;
  return peer_next(peer, how, out, code == nullptr ? &ignored : code, text->sink());
}

inline ArrowDeviceArrayStream Relay(ArrowDeviceArrayStream* stream, PeerHow how, PeerFailure failure = {}) {
  ArrowDeviceArrayStream out;
  // The target is never read (C5): what was in it is neither released nor looked at.
  std::memset(&out, 0x5a, sizeof out);
  Text text;
  CheckEqual(peer_relay(stream, how, failure, &out, text.sink()), 0, "peer_relay", &text);
  Check(stream->release == nullptr, "relayed, and the source is live");
  return out;
}

inline ArrowDeviceArrayStream Made() {
  ArrowDeviceArrayStream out;
  std::memset(&out, 0x5a, sizeof out);
  Text text;
  CheckEqual(peer_produce(&out, text.sink()), 0, "peer_produce", &text);
  return out;
}

constexpr const char* kOnCpu = "device|1|-1|no event\n";
constexpr const char* kOnFakeCuda = "device|2|3|event\n";

inline Formats WithRoot(const std::vector<Layout>& layouts) {
  Formats formats = {"+s"};
  for (const auto& layout : layouts)
    formats.insert(formats.end(), layout.formats.begin(), layout.formats.end());
  return formats;
}

inline std::shared_ptr<arrow::Schema> SchemaOf(const std::vector<Layout>& layouts) {
  arrow::FieldVector fields;
  for (const auto& layout : layouts) fields.push_back(layout.field);
  return arrow::schema(fields, arrow::key_value_metadata({"origin"}, {"arrow_cpp.cc"}));
}

inline Batches BatchesOf(const std::vector<Layout>& layouts) {
  auto schema = SchemaOf(layouts);
  std::vector<arrow::ArrayVector> columns;
  for (const auto& layout : layouts) columns.push_back(Variants(layout));
  Batches batches;
  for (size_t variant = 0; variant < columns[0].size(); ++variant) {
    arrow::ArrayVector row;
    for (const auto& column : columns) row.push_back(column[variant]);
    const int64_t rows = row[0]->length();
    batches.push_back(arrow::RecordBatch::Make(schema, rows, std::move(row)));
  }
  return batches;
}

struct Sample {
  std::vector<Layout> layouts = Layouts();
  std::shared_ptr<arrow::Schema> schema = SchemaOf(layouts);
  Batches batches = BatchesOf(layouts);
};

}  // namespace peers
