// Device streams of Arrow C++, which Python has no methods for. Each function gives null, or what went wrong.

#include <memory>
#include <string>

#include "arrow/c/bridge.h"
#include "arrow/record_batch.h"

namespace {

const char* Failure(const arrow::Status& status) {
  thread_local std::string text;
  text = status.ToString();
  return status.ok() ? nullptr : text.c_str();
}

arrow::Status Read(ArrowDeviceArrayStream* source, ArrowArrayStream* out) {
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ImportDeviceRecordBatchReader(source));
  return arrow::ExportRecordBatchReader(std::move(reader), out);
}

arrow::Status Make(ArrowArrayStream* source, ArrowDeviceArrayStream* out) {
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ImportRecordBatchReader(source));
  return arrow::ExportDeviceRecordBatchReader(std::move(reader), out);
}

}  // namespace

extern "C" {

// Imports a device stream, and gives what was imported as a host stream.
const char* read_device_stream(ArrowDeviceArrayStream* source, ArrowArrayStream* out) {
  return Failure(Read(source, out));
}

// Imports a host stream, and gives what was imported as a device stream.
const char* make_device_stream(ArrowArrayStream* source, ArrowDeviceArrayStream* out) {
  return Failure(Make(source, out));
}

}  // extern "C"
