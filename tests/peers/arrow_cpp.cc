// Arrow C++ as the peer: device streams and device arrays, both directions, over every layout.
//
// What is compared: texts that each side makes on its own (describe.h, cpp_peer.rs), batches by Arrow's own
// `Equals`, the books kept between the two (audit.h), the bytes in Arrow's memory pool, and the structs that
// Rust has not released. Ends with one line a direction, and with 1 at the first difference.

#include "apart.h"
#include "devices.h"
#include "failures.h"
#include "harness.h"
#include "made.h"

namespace peers {
namespace {

int64_t batches_taken = 0;
int64_t batches_anew = 0;

// Takes, checks, gives back and compares the schema and every batch of `batches`.
void RoundTrip(Describer* describer, const std::shared_ptr<arrow::Schema>& schema, const Batches& batches,
               PeerHow how) {
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(schema, batches), &audit);
  auto peer = Open(&stream);
  for (PeerHow schema_how : {kPeerAsItCame, kPeerAnew, kPeerCloned}) {
    const auto seen = CheckedSchema(peer.get(), schema_how, describer->Schema(*schema));
    if (!seen->Equals(schema, /*check_metadata=*/true))
      CheckEqual(seen->ToString(true), schema->ToString(true), "schema changed");
  }
  for (const auto& batch : batches) {
    // Before anything asks Arrow for a null count, which would compute and keep it.
    const std::string expected = kOnCpu + describer->Batch(*batch);
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text, how), kPeerBatch, "peer_next", &text);
    // With the addresses of all buffers: nothing was copied.
    CheckEqual(text.text, expected, "batch");
    if (how == kPeerAnew) {
      for (int64_t reserved : out.reserved) CheckEqual(reserved, 0, "reserved (D10)");
      Tamper(*schema, &out.array);
    }
    CheckSame(*Must(arrow::ImportDeviceRecordBatch(&out, schema)), *batch, "batch given back");
    ++(how == kPeerAnew ? batches_anew : batches_taken);
  }
  Text text;
  ArrowDeviceArray out{};
  CheckEqual(Next(peer.get(), &out, &text, how), kPeerEnd, "no end", &text);
  CheckEqual(Next(peer.get(), &out, &text, how), kPeerEnd, "no end the second time", &text);
  Check(out.array.release == nullptr, "a batch at the end");
  peer.reset();
  CheckBooks(audit);
}

void RoundTrip(Describer* describer, const std::shared_ptr<arrow::Schema>& schema, const Batches& batches) {
  RoundTrip(describer, schema, batches, kPeerAsItCame);
  RoundTrip(describer, schema, batches, kPeerAnew);
}

void EachLayout() {
  for (const Layout& layout : Layouts()) {
    try {
      Describer describer(WithRoot({layout}));
      RoundTrip(&describer, SchemaOf({layout}), BatchesOf({layout}));
    } catch (const std::exception& error) {
      throw std::runtime_error("layout " + layout.name + ": " + error.what());
    }
  }
}

void AllLayoutsAtOnce() {
  const auto layouts = Layouts();
  Describer describer(WithRoot(layouts));
  Batches batches = BatchesOf(layouts);
  batches.push_back(batches[4]->Slice(2, 5));
  RoundTrip(&describer, SchemaOf(layouts), batches);
}

void NoColumnsAndNoBatches() {
  Describer describer({"+s"});
  auto schema = arrow::schema({});
  RoundTrip(&describer, schema, {});
  RoundTrip(&describer, schema, {arrow::RecordBatch::Make(schema, 5, arrow::ArrayVector{})});
}

// What Arrow C++ imports from a stream that Rust gave it.
void CheckDrained(arrow::RecordBatchReader* reader, const arrow::Schema& schema, const Batches& expected) {
  Check(reader->schema()->Equals(schema, /*check_metadata=*/true), "schema of the stream");
  const Batches seen = Must(reader->ToRecordBatches());
  CheckEqual(seen.size(), expected.size(), "batches");
  for (size_t i = 0; i < seen.size(); ++i) CheckSame(*seen[i], *expected[i], "batch " + std::to_string(i));
  Check(Must(reader->Next()) == nullptr, "something after the end");
}

void CheckImported(ArrowDeviceArrayStream* stream, const arrow::Schema& schema, const Batches& expected) {
  auto reader = Must(arrow::ImportDeviceRecordBatchReader(stream));
  Check(stream->release == nullptr, "imported, and not marked released");
  CheckDrained(reader.get(), schema, expected);
}

void WholeStreamPassedOn() {
  const Sample sample;
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
  ArrowDeviceArrayStream out;
  // The target is never read (C5): what was in it is neither released nor looked at.
  std::memset(&out, 0x5a, sizeof out);
  Text text;
  CheckEqual(peer_pass_on(&stream, &out, text.sink()), 0, "peer_pass_on", &text);
  Check(stream.release == nullptr, "passed on, and the source is live");
  CheckImported(&out, *sample.schema, sample.batches);
  CheckBooks(audit);
}

void Relayed() {
  const Sample sample;
  for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
    Audit audit;
    auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
    auto out = Relay(&stream, how);
    CheckEqual(out.device_type, ARROW_DEVICE_CPU, "the device type of the relay");
    CheckImported(&out, *sample.schema, sample.batches);
    CheckBooks(audit);
  }
}

void RelayedToAnotherThread() {
  const Sample sample;
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
  auto out = Relay(&stream, kPeerAnew);
  std::string fault;
  std::thread([&] {
    try {
      CheckImported(&out, *sample.schema, sample.batches);
    } catch (const std::exception& error) {
      fault = error.what();
    }
  }).join();
  CheckEqual(fault, "", "on another thread");
  CheckBooks(audit);
}

void MadeInRust() {
  auto stream = Made();
  CheckEqual(stream.device_type, ARROW_DEVICE_CPU, "the device type");
  auto reader = Must(arrow::ImportDeviceRecordBatchReader(&stream));
  const auto schema = reader->schema();
  CheckEqual(schema->num_fields(), 55, "columns");
  CheckDrained(reader.get(), *schema, MadeBatches(schema));
}

// Arrays that are no record batches: lists, and structs of every layout with an offset of their own.
void Chunked() {
  const Sample sample;
  const std::shared_ptr<arrow::Array> structs = Must(sample.batches[0]->ToStructArray());
  const std::vector<std::shared_ptr<arrow::ChunkedArray>> all = {
      Must(arrow::json::ChunkedArrayFromJSONString(arrow::list(arrow::utf8()),
                                                   {R"([["a"], null])", "[]", R"([[], ["b", "c"]])"})),
      std::make_shared<arrow::ChunkedArray>(
          arrow::ArrayVector{structs->Slice(2, 5), structs->Slice(7), structs}),
  };
  for (const auto& chunked : all) {
    for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
      Audit audit;
      ArrowDeviceArrayStream stream{};
      Must(arrow::ExportDeviceChunkedArray(chunked, arrow::DeviceAllocationType::kCPU, &stream));
      audit.Watch(&stream);
      auto out = Relay(&stream, how);
      auto seen = Must(arrow::ImportDeviceChunkedArray(&out));
      Must(seen->ValidateFull());
      Check(seen->Equals(*chunked), "chunks changed");
      seen.reset();
      CheckBooks(audit);
    }
  }
}

void HostStream() {
  const Sample sample;
  Describer describer(WithRoot(sample.layouts));
  std::string expected = describer.Schema(*sample.schema);
  for (const auto& batch : sample.batches) expected += describer.Batch(*batch);
  ArrowArrayStream stream{};
  Must(arrow::ExportRecordBatchReader(std::make_shared<Reader>(sample.schema, sample.batches), &stream));
  Text text;
  CheckEqual(peer_describe_host(&stream, text.sink()), 0, "peer_describe_host", &text);
  Check(stream.release == nullptr, "taken, and the source is live");
  CheckEqual(text.text, expected, "host stream");
}

void HostStreamRelayed() {
  const Sample sample;
  for (PeerHow how : {kPeerAsItCame, kPeerAnew}) {
    ArrowArrayStream stream{};
    Must(arrow::ExportRecordBatchReader(std::make_shared<Reader>(sample.schema, sample.batches), &stream));
    ArrowArrayStream out;
    std::memset(&out, 0x5a, sizeof out);
    Text text;
    CheckEqual(peer_relay_host(&stream, how, {}, &out, text.sink()), 0, "peer_relay_host", &text);
    auto reader = Must(arrow::ImportRecordBatchReader(&out));
    CheckDrained(reader.get(), *sample.schema, sample.batches);
  }
}

void ColumnMovedOut() {
  const Sample sample;
  for (int column = 0; column < sample.schema->num_fields(); ++column) {
    Audit audit;
    auto stream = Export(std::make_shared<Reader>(sample.schema, Batches{sample.batches[3]}), &audit);
    auto peer = Open(&stream);
    Text text;
    ArrowArray out{};
    CheckEqual(peer_next_column(peer.get(), column, &out, text.sink()), kPeerBatch, "peer_next_column",
               &text);
    peer.reset();
    // B5: the parent and the stream are released, the child lives on.
    CheckBooks(audit);
    auto array = Must(arrow::ImportArray(&out, sample.schema->field(column)->type()));
    Check(array->Equals(*sample.batches[3]->column(column)),
          "column " + sample.schema->field(column)->name());
  }
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
  auto peer = Open(&stream);
  Text text;
  ArrowArray out{};
  CheckEqual(peer_next_column(peer.get(), sample.schema->num_fields(), &out, text.sink()), kPeerRefused,
             "one column too many");
  peer.reset();
  CheckBooks(audit);
}

void OnAnotherThread() {
  const Sample sample;
  int64_t expected_rows = 0;
  for (const auto& batch : sample.batches) expected_rows += batch->num_rows();
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(sample.schema, sample.batches), &audit);
  int64_t batches = 0;
  int64_t rows = 0;
  Text text;
  CheckEqual(peer_drain_on_thread(&stream, &batches, &rows, text.sink()), 0, "peer_drain_on_thread", &text);
  CheckEqual(batches, static_cast<int64_t>(sample.batches.size()), "batches");
  CheckEqual(rows, expected_rows, "rows");
  CheckBooks(audit);
}

void Run() {
  const struct {
    const char* name;
    void (*run)();
  } tests[] = {
      {"each layout", EachLayout},
      {"all layouts at once", AllLayoutsAtOnce},
      {"no columns, no batches", NoColumnsAndNoBatches},
      {"whole stream passed on", WholeStreamPassedOn},
      {"relayed", Relayed},
      {"relayed to another thread", RelayedToAnotherThread},
      {"made in Rust", MadeInRust},
      {"chunked array", Chunked},
      {"host stream", HostStream},
      {"host stream relayed", HostStreamRelayed},
      {"column moved out", ColumnMovedOut},
      {"column kept", ColumnKept},
      {"columns moved out", ColumnsMovedOut},
      {"grandchildren moved out", GrandchildrenMovedOut},
      {"all moved out", AllMovedOut},
      {"on another thread", OnAnotherThread},
      {"error in the middle", ErrorInTheMiddle},
      {"error through Rust into Arrow", ErrorThroughRustIntoArrow},
      {"error from Rust into Arrow", ErrorFromRustIntoArrow},
      {"early drop", EarlyDrop},
      {"refused streams", RefusedStreams},
      {"fake CUDA device", FakeCudaDevice},
      {"wrong device", WrongDevice},
  };
  arrow::MemoryPool* pool = arrow::default_memory_pool();
  for (const auto& test : tests) {
    const int64_t before = pool->bytes_allocated();
    try {
      test.run();
      CheckEqual(pool->bytes_allocated(), before, "bytes in Arrow's pool");
      CheckEqual(peer_live(), 0, "structs made in Rust and not released");
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string(test.name) + ": " + error.what());
    }
  }
  const std::string cpp = "Arrow C++ " + arrow::GetBuildInfo().version_string;
  const std::string through = "peer: " + cpp + " -> Rust -> " + cpp;
  const std::string made = "peer: Rust -> " + cpp;
  std::cout
      << "peer: " << cpp << " -> Rust: " << batches_taken << " batches of " << Layouts().size()
      << " layouts from device streams, walked and compared; columns moved out; a host stream; errors with "
         "code and text; early drops\n"
      << through
      << ", as they came: the same batches one by one, as whole streams and through Rust's callbacks: "
         "equal\n"
      << through << ", anew: " << batches_anew
      << " batches described and exported around the same buffers, in one allocation each, one by one and "
         "as device and host streams: equal; schemas built and cloned: equal with metadata\n"
      << through << ", taken apart: " << parts_taken
      << " parts kept or moved out, read, and released after their parents, on other threads too\n"
      << through << ", fake CUDA device: " << events_waited_for
      << " batches waited for by their event, in its own place and in Rust's; refused without a waiter "
         "and after a failed wait\n"
      << made << ": every layout, with nulls, without, all null, sliced and empty: equal to Arrow's own\n"
      << made
      << ", errors: codes and texts of Rust, of the system and of a panic; an array of another device kept "
         "back; early drops\n"
      << "peer: " << cpp << ", books: every stream, schema and array released once, 0 bytes left\n";
}

}  // namespace
}  // namespace peers

// With an argument it does that wrong (audit.h, devices.h, tamper.h) and must fail.
int main(int argc, char** argv) {
  if (argc > 1) peers::spoil = argv[1];
  try {
    peers::Run();
  } catch (const std::exception& error) {
    std::cerr << "arrow_cpp: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
