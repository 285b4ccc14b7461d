// Arrow C++ as the peer: device streams and device arrays, both directions, over every layout.
//
// What is compared: texts that each side makes on its own (describe.h, cpp_peer.rs), batches by Arrow's own
// `Equals`, the books kept between the two (audit.h), the bytes in Arrow's memory pool, and the structs that
// Rust has not released. Ends with one line a direction, and with 1 at the first difference.

#include "devices.h"
#include "failures.h"
#include "harness.h"

namespace peers {
namespace {

int64_t batches_taken = 0;

// Takes, checks, gives back and compares every batch of `batches`.
void RoundTrip(Describer* describer, const std::shared_ptr<arrow::Schema>& schema, const Batches& batches) {
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(schema, batches), &audit);
  auto peer = Open(&stream);
  Check(CheckedSchema(peer.get(), describer->Schema(*schema))->Equals(schema, /*check_metadata=*/true),
        "schema changed");
  for (const auto& batch : batches) {
    // Before anything asks Arrow for a null count, which would compute and keep it.
    const std::string expected = kOnCpu + describer->Batch(*batch);
    Text text;
    ArrowDeviceArray out{};
    CheckEqual(Next(peer.get(), &out, &text), kPeerBatch, "peer_next", &text);
    CheckEqual(text.text, expected, "batch");
    CheckSame(*Must(arrow::ImportDeviceRecordBatch(&out, schema)), *batch, "batch given back");
    ++batches_taken;
  }
  Text text;
  ArrowDeviceArray out{};
  CheckEqual(Next(peer.get(), &out, &text), kPeerEnd, "no end", &text);
  CheckEqual(Next(peer.get(), &out, &text), kPeerEnd, "no end the second time", &text);
  Check(out.array.release == nullptr, "a batch at the end");
  peer.reset();
  CheckBooks(audit);
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

// The reverse direction: what Arrow C++ imports from a stream that Rust gave it.
void CheckImported(ArrowDeviceArrayStream* stream, const Batches& expected) {
  auto reader = Must(arrow::ImportDeviceRecordBatchReader(stream));
  Check(stream->release == nullptr, "imported, and not marked released");
  const Batches seen = Must(reader->ToRecordBatches());
  CheckEqual(seen.size(), expected.size(), "batches");
  for (size_t i = 0; i < seen.size(); ++i) CheckSame(*seen[i], *expected[i], "batch " + std::to_string(i));
}

void WholeStreamPassedOn() {
  const auto layouts = Layouts();
  const Batches batches = BatchesOf(layouts);
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(SchemaOf(layouts), batches), &audit);
  ArrowDeviceArrayStream out;
  // The target is never read (C5): what was in it is neither released nor looked at.
  std::memset(&out, 0x5a, sizeof out);
  Text text;
  CheckEqual(peer_pass_on(&stream, &out, text.sink()), 0, "peer_pass_on", &text);
  Check(stream.release == nullptr, "passed on, and the source is live");
  CheckImported(&out, batches);
  CheckBooks(audit);
}

void Relayed() {
  const auto layouts = Layouts();
  const Batches batches = BatchesOf(layouts);
  Audit audit;
  auto stream = Export(std::make_shared<Reader>(SchemaOf(layouts), batches), &audit);
  ArrowDeviceArrayStream out{};
  Text text;
  CheckEqual(peer_relay(&stream, -1, 0, &out, text.sink()), 0, "peer_relay", &text);
  CheckEqual(out.device_type, ARROW_DEVICE_CPU, "the device type of the relay");
  CheckImported(&out, batches);
  CheckBooks(audit);
}

void MadeInRust() {
  const int64_t rows = 1000;
  ArrowDeviceArrayStream stream{};
  CheckEqual(peer_produce(3, rows, &stream), 0, "peer_produce");
  auto reader = Must(arrow::ImportDeviceRecordBatchReader(&stream));
  auto expected_schema =
      arrow::schema({arrow::field("n", arrow::int64()), arrow::field("s", arrow::utf8(), false)});
  CheckEqual(reader->schema()->ToString(), expected_schema->ToString(), "schema");
  const Batches seen = Must(reader->ToRecordBatches());
  reader.reset();
  CheckEqual(seen.size(), 3u, "batches");
  int64_t row = 0;
  for (const auto& batch : seen) {
    Must(batch->ValidateFull());
    CheckEqual(batch->num_rows(), rows, "rows");
    const auto& n = static_cast<const arrow::Int64Array&>(*batch->column(0));
    const auto& s = static_cast<const arrow::StringArray&>(*batch->column(1));
    for (int64_t i = 0; i < rows; ++i, ++row) {
      CheckEqual(n.IsNull(i), row % 3 == 0, "null " + std::to_string(row));
      if (n.IsValid(i)) CheckEqual(n.Value(i), row, "value");
      CheckEqual(s.GetView(i), "row " + std::to_string(row), "text");
    }
  }
}

void Chunked() {
  auto type = arrow::list(arrow::utf8());
  auto chunked =
      Must(arrow::json::ChunkedArrayFromJSONString(type, {R"([["a"], null])", "[]", R"([[], ["b", "c"]])"}));
  Audit audit;
  ArrowDeviceArrayStream stream{};
  Must(arrow::ExportDeviceChunkedArray(chunked, arrow::DeviceAllocationType::kCPU, &stream));
  audit.Watch(&stream);
  ArrowDeviceArrayStream out{};
  Text text;
  CheckEqual(peer_relay(&stream, -1, 0, &out, text.sink()), 0, "peer_relay", &text);
  Check(Must(arrow::ImportDeviceChunkedArray(&out))->Equals(*chunked), "chunks changed");
  CheckBooks(audit);
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
      {"made in Rust", MadeInRust},
      {"chunked array", Chunked},
      {"host stream", HostStream},
      {"column moved out", ColumnMovedOut},
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
  const std::string peer = "peer: Arrow C++ " + arrow::GetBuildInfo().version_string + " ";
  const std::string layouts = std::to_string(Layouts().size());
  std::cout
      << peer << "C++ -> Rust: " << batches_taken << " batches of " << layouts
      << " layouts taken from device streams, walked and compared; columns moved out; host stream; errors "
         "with code and text; early drops\n"
      << peer
      << "Rust -> C++: the same batches given back one by one, as whole streams and through Rust's "
         "callbacks, equal; a stream made in Rust; errors; early drops\n"
      << peer << "fake CUDA device: " << events_waited_for
      << " batches waited for by their event, both ways; refused without a waiter and after a failed wait\n"
      << peer << "books: every stream, schema and array released once, 0 bytes left in the pool\n";
}

}  // namespace
}  // namespace peers

// `arrow_cpp row`, `leak` or `event` does that wrong and must fail.
int main(int argc, char** argv) {
  using peers::Spoil;
  const std::string wrong = argc > 1 ? argv[1] : "";
  if (wrong == "row") peers::spoil = Spoil::kRow;
  if (wrong == "leak") peers::spoil = Spoil::kLeak;
  if (wrong == "event") peers::spoil = Spoil::kEvent;
  try {
    peers::Run();
  } catch (const std::exception& error) {
    std::cerr << "arrow_cpp: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
