// What a consumer must see, told from Arrow C++'s own objects and never from the C structs.
//
// `cpp_peer.rs` tells the same from the structs alone; the texts must be equal. Their grammar:
//   field:  indent name|format|flags|children|dictionary?|key=value;…
//   array:  indent format|length|offset|null count|nulls counted|buffer,…|children|dictionary?
//   buffer: "null", or address/bytes/FNV-1a of the bytes; "empty" where the layout needs no byte of it (B7)
#pragma once

#include <cinttypes>
#include <cstdio>

#include "arrow/util/bit_util.h"
#include "layouts.h"

namespace peers {

using Formats = std::vector<std::string>;

class Describer {
 public:
  explicit Describer(Formats formats) : formats_(std::move(formats)) {}

  std::string Schema(const arrow::Schema& schema) {
    next_ = 0;
    text_.clear();
    // Exported as one non-nullable field without a name.
    Line(0, "|" + Format() + "|0|" + std::to_string(schema.num_fields()) + "|0|" +
                Metadata(schema.metadata().get(), nullptr));
    for (const auto& field : schema.fields()) Field(1, *field);
    return text_;
  }

  std::string Batch(const arrow::RecordBatch& batch) {
    next_ = 0;
    text_.clear();
    Line(0, Format() + "|" + std::to_string(batch.num_rows()) + "|0|0|0|null|" +
                std::to_string(batch.num_columns()) + "|0");
    for (int i = 0; i < batch.num_columns(); ++i) Array(1, *batch.column_data(i), *batch.column(i)->type());
    return text_;
  }

 private:
  std::string Format() {
    if (next_ == formats_.size()) throw std::runtime_error("more nodes than format strings");
    return formats_[next_++];
  }

  void Line(int depth, const std::string& line) {
    text_ += std::string(2 * static_cast<size_t>(depth), ' ') + line + "\n";
  }

  static const arrow::DataType& Storage(const arrow::DataType& type) {
    if (type.id() != arrow::Type::EXTENSION) return type;
    return Storage(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  }

  static std::string Metadata(const arrow::KeyValueMetadata* metadata, const arrow::DataType* type) {
    std::string text;
    if (metadata != nullptr) {
      for (int64_t i = 0; i < metadata->size(); ++i)
        text += metadata->key(i) + "=" + metadata->value(i) + ";";
    }
    if (type != nullptr && type->id() == arrow::Type::EXTENSION) {
      const auto& extension = static_cast<const arrow::ExtensionType&>(*type);
      text += "ARROW:extension:name=" + extension.extension_name() +
              ";ARROW:extension:metadata=" + extension.Serialize() + ";";
    }
    return text;
  }

  void Field(int depth, const arrow::Field& field) {
    const arrow::DataType& type = Storage(*field.type());
    int flags = field.nullable() ? 2 : 0;
    const arrow::DataType* values = nullptr;
    if (type.id() == arrow::Type::DICTIONARY) {
      const auto& dictionary = static_cast<const arrow::DictionaryType&>(type);
      if (dictionary.ordered()) flags |= 1;
      values = dictionary.value_type().get();
    }
    if (type.id() == arrow::Type::MAP && static_cast<const arrow::MapType&>(type).keys_sorted()) flags |= 4;
    Line(depth, field.name() + "|" + Format() + "|" + std::to_string(flags) + "|" +
                    std::to_string(type.num_fields()) + "|" + (values != nullptr ? "1" : "0") + "|" +
                    Metadata(field.metadata().get(), field.type().get()));
    for (const auto& child : type.fields()) Field(depth + 1, *child);
    if (values != nullptr) Field(depth + 1, arrow::Field("", values->GetSharedPtr()));
  }

  static std::string Bytes(const arrow::Buffer* buffer, int64_t size) {
    if (size == 0) return "empty";
    if (buffer == nullptr) return "null";
    if (buffer->size() < size) throw std::runtime_error("a buffer is smaller than its layout");
    const auto* bytes = reinterpret_cast<const uint8_t*>(buffer->address());
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
    char text[64];
    std::snprintf(text, sizeof text, "%" PRIxPTR "/%" PRId64 "/%016" PRIx64, buffer->address(), size, hash);
    return text;
  }

  template <typename Offset>
  static int64_t End(const arrow::Buffer& offsets, int64_t n) {
    return reinterpret_cast<const Offset*>(offsets.address())[n];
  }

  void Array(int depth, const arrow::ArrayData& data, const arrow::DataType& declared) {
    using arrow::Type;
    const arrow::DataType& type = Storage(declared);
    const int64_t n = data.offset + data.length;
    const auto buffer = [&data](size_t i) { return data.buffers.at(i).get(); };
    std::vector<std::string> buffers;
    const arrow::ArrayData* dictionary = nullptr;
    bool has_validity = true;
    switch (type.id()) {
      case Type::NA:
      case Type::RUN_END_ENCODED:
        has_validity = false;
        break;
      case Type::STRUCT:
      case Type::FIXED_SIZE_LIST:
        break;
      case Type::SPARSE_UNION:
      case Type::DENSE_UNION:
        has_validity = false;
        buffers.push_back(Bytes(buffer(1), n));
        if (type.id() == Type::DENSE_UNION) buffers.push_back(Bytes(buffer(2), n * 4));
        break;
      case Type::STRING:
      case Type::BINARY:
        buffers.push_back(Bytes(buffer(1), n == 0 ? 0 : (n + 1) * 4));
        buffers.push_back(Bytes(buffer(2), n == 0 ? 0 : End<int32_t>(*buffer(1), n)));
        break;
      case Type::LARGE_STRING:
      case Type::LARGE_BINARY:
        buffers.push_back(Bytes(buffer(1), n == 0 ? 0 : (n + 1) * 8));
        buffers.push_back(Bytes(buffer(2), n == 0 ? 0 : End<int64_t>(*buffer(1), n)));
        break;
      case Type::LIST:
      case Type::MAP:
        buffers.push_back(Bytes(buffer(1), n == 0 ? 0 : (n + 1) * 4));
        break;
      case Type::LARGE_LIST:
        buffers.push_back(Bytes(buffer(1), n == 0 ? 0 : (n + 1) * 8));
        break;
      case Type::LIST_VIEW:
      case Type::LARGE_LIST_VIEW:
        for (size_t i : {1, 2})
          buffers.push_back(Bytes(buffer(i), n * (type.id() == Type::LIST_VIEW ? 4 : 8)));
        break;
      case Type::STRING_VIEW:
      case Type::BINARY_VIEW: {
        buffers.push_back(Bytes(buffer(1), n * 16));
        for (size_t i = 2; i < data.buffers.size(); ++i)
          buffers.push_back(Bytes(buffer(i), buffer(i)->size()));
        // The C form appends one buffer more: the sizes of those before it, which no ArrayData has.
        buffers.push_back("sizes of " + std::to_string(data.buffers.size() - 2));
        break;
      }
      case Type::DICTIONARY:
        dictionary = data.dictionary.get();
        [[fallthrough]];
      default: {
        const int64_t bits = static_cast<const arrow::FixedWidthType&>(type).bit_width();
        buffers.push_back(Bytes(buffer(1), arrow::bit_util::BytesForBits(n * bits)));
      }
    }
    int64_t counted = type.id() == Type::NA ? data.length : 0;
    if (has_validity) {
      const arrow::Buffer* validity = data.buffers.empty() ? nullptr : buffer(0);
      buffers.insert(buffers.begin(),
                     validity == nullptr ? "null" : Bytes(validity, arrow::bit_util::BytesForBits(n)));
      if (validity != nullptr) {
        const auto* bits = reinterpret_cast<const uint8_t*>(validity->address());
        for (int64_t i = data.offset; i < n; ++i) counted += arrow::bit_util::GetBit(bits, i) ? 0 : 1;
      }
    }
    std::string line = Format() + "|" + std::to_string(data.length) + "|" + std::to_string(data.offset) +
                       "|" + std::to_string(NullCount(data, counted)) + "|" + std::to_string(counted) + "|";
    for (size_t i = 0; i < buffers.size(); ++i) line += (i == 0 ? "" : ",") + buffers[i];
    Line(depth,
         line + "|" + std::to_string(data.child_data.size()) + "|" + (dictionary != nullptr ? "1" : "0"));
    for (size_t i = 0; i < data.child_data.size(); ++i) {
      Array(depth + 1, *data.child_data[i], *type.field(static_cast<int>(i))->type());
    }
    if (dictionary != nullptr) {
      Array(depth + 1, *dictionary, *static_cast<const arrow::DictionaryType&>(type).value_type());
    }
  }

  // Arrow C++ counts what it has not counted when it exports, so that no -1 (B8) comes out of it.
  static int64_t NullCount(const arrow::ArrayData& data, int64_t counted) {
    const int64_t known = data.null_count.load();
    return known == -1 ? counted : known;
  }

  Formats formats_;
  size_t next_ = 0;
  std::string text_;
};

}  // namespace peers
