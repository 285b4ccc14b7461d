// What the batches of made/mod.rs hold, in Arrow C++'s own arrays.
#pragma once

#include <functional>

#include "arrow/util/decimal.h"
#include "layouts.h"

namespace peers {

// The rule of made/mod.rs: the value of row `row`, as the JSON that Arrow C++ makes arrays from.
class Rule {
 public:
  static constexpr int64_t kRows = 10;

  explicit Rule(std::function<bool(int64_t)> is_null) : is_null_(std::move(is_null)) {}

  std::shared_ptr<arrow::Array> Column(const arrow::Field& field, int64_t rows) const {
    const arrow::DataType& type = *field.type();
    switch (type.id()) {
      case arrow::Type::DICTIONARY: {
        const auto& dictionary = static_cast<const arrow::DictionaryType&>(type);
        auto values = Column(*arrow::field("", dictionary.value_type(), false), std::min<int64_t>(rows, 3));
        auto indices = Rows(*arrow::field("", dictionary.index_type(), field.nullable()), rows,
                            [](int64_t row) { return std::to_string(row % 3); });
        return Must(arrow::DictionaryArray::FromArrays(field.type(), indices, values));
      }
      case arrow::Type::RUN_END_ENCODED: {
        const int64_t count = (rows + 1) / 2;
        auto ends = Rows(*type.field(0), count,
                         [rows](int64_t run) { return std::to_string(std::min(2 * run + 2, rows)); });
        return Must(arrow::RunEndEncodedArray::Make(rows, ends, Column(*type.field(1), count)));
      }
      case arrow::Type::EXTENSION: {
        const auto& storage = static_cast<const arrow::ExtensionType&>(type).storage_type();
        return arrow::ExtensionType::WrapArray(field.type(),
                                               Column(*arrow::field("", storage, field.nullable()), rows));
      }
      default:
        return Rows(field, rows, [&](int64_t row) { return Value(type, row); });
    }
  }

 private:
  std::shared_ptr<arrow::Array> Rows(const arrow::Field& field, int64_t rows,
                                     const std::function<std::string(int64_t)>& value) const {
    Values values;
    for (int64_t row = 0; row < rows; ++row) values.push_back(IsNull(field, row) ? "null" : value(row));
    return FromJson(*field.type(), values);
  }

  // Unions have their nulls in a child.
  bool IsNull(const arrow::Field& field, int64_t row) const {
    return field.nullable() && is_null_(row) && !arrow::is_union(field.type()->id());
  }

  std::string ValueOrNull(const arrow::Field& field, int64_t row) const {
    return IsNull(field, row) ? "null" : Value(*field.type(), row);
  }

  std::string List(const arrow::Field& field, int64_t start, int64_t count) const {
    Values values;
    for (int64_t i = 0; i < count; ++i) values.push_back(ValueOrNull(field, start + i));
    return Json(values);
  }

  std::string Value(const arrow::DataType& type, int64_t row) const {
    using arrow::Type;
    const int64_t number = 11 * row - 50;
    const int64_t decimal = 1111 * row - 5000;
    const arrow::Decimal256 wide(arrow::Decimal256(decimal) * arrow::Decimal256(1'000'000'000'000));
    switch (type.id()) {
      case Type::NA:
        return "null";
      case Type::BOOL:
        return row % 3 == 0 ? "true" : "false";
      case Type::INT8:
      case Type::INT16:
      case Type::INT32:
      case Type::INTERVAL_MONTHS:
        return std::to_string(number);
      case Type::UINT8:
      case Type::UINT16:
      case Type::UINT32:
      case Type::DATE32:
      case Type::TIME32:
      case Type::TIME64:
        return std::to_string(11 * row);
      case Type::INT64:
      case Type::TIMESTAMP:
      case Type::DURATION:
        return std::to_string(1'000'000'007 * number);
      case Type::UINT64:
        return std::to_string((uint64_t{1} << 63) + static_cast<uint64_t>(11 * row));
      case Type::HALF_FLOAT:
      case Type::FLOAT:
      case Type::DOUBLE:
        return std::to_string(static_cast<double>(row) / 2 - 2);
      case Type::DECIMAL32:
      case Type::DECIMAL64:
        return Quoted(
            arrow::Decimal256(decimal).ToString(static_cast<const arrow::DecimalType&>(type).scale()));
      case Type::DECIMAL128:
      case Type::DECIMAL256:
        return Quoted(wide.ToString(static_cast<const arrow::DecimalType&>(type).scale()));
      case Type::DATE64:
        return std::to_string(86'400'000 * row);
      case Type::INTERVAL_DAY_TIME:
        return Json({std::to_string(row), std::to_string(number)});
      case Type::INTERVAL_MONTH_DAY_NANO:
        return Json({std::to_string(row), std::to_string(number), std::to_string(1'000'000'007 * row)});
      case Type::FIXED_SIZE_BINARY: {
        const auto width =
            static_cast<size_t>(static_cast<const arrow::FixedWidthType&>(type).bit_width() / 8);
        const std::string digits = std::to_string(row);
        return Quoted(std::string(width - digits.size(), '0') + digits);
      }
      case Type::STRING:
      case Type::LARGE_STRING:
      case Type::STRING_VIEW:
      case Type::BINARY:
      case Type::LARGE_BINARY:
      case Type::BINARY_VIEW:
        return Quoted(row % 3 == 0   ? ""
                      : row % 3 == 1 ? "ø" + std::to_string(row)
                                     : "row " + std::to_string(row) + ", told at some length");
      case Type::LIST:
      case Type::LARGE_LIST:
        return List(*type.field(0), Before(row), row % 4);
      case Type::LIST_VIEW:
      case Type::LARGE_LIST_VIEW:
        return List(*type.field(0), kRows - row, row % 4);
      case Type::FIXED_SIZE_LIST:
        return List(*type.field(0), 2 * row, 2);
      case Type::STRUCT: {
        std::string json;
        for (const auto& field : type.fields())
          json += (json.empty() ? "" : ",") + Quoted(field->name()) + ":" + ValueOrNull(*field, row);
        return "{" + json + "}";
      }
      case Type::MAP: {
        const auto& map = static_cast<const arrow::MapType&>(type);
        Values entries;
        for (int64_t i = Before(row); i < Before(row + 1); ++i)
          entries.push_back(Json({ValueOrNull(*map.key_field(), i), ValueOrNull(*map.item_field(), i)}));
        return Json(entries);
      }
      case Type::SPARSE_UNION:
      case Type::DENSE_UNION: {
        const auto& alternatives = static_cast<const arrow::UnionType&>(type);
        const int child = static_cast<int>(row % type.num_fields());
        const int64_t index = type.id() == Type::DENSE_UNION ? row / type.num_fields() : row;
        return Json({std::to_string(alternatives.type_codes()[static_cast<size_t>(child)]),
                     ValueOrNull(*type.field(child), index)});
      }
      default:
        throw std::runtime_error("no rule for " + type.ToString());
    }
  }

  // Elements of all lists before this row's.
  static int64_t Before(int64_t row) {
    int64_t count = 0;
    for (int64_t i = 0; i < row; ++i) count += i % 4;
    return count;
  }

  static std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

  std::function<bool(int64_t)> is_null_;
};

// The five batches.
inline arrow::RecordBatchVector MadeBatches(const std::shared_ptr<arrow::Schema>& schema) {
  const auto batch = [&schema](int64_t rows, const std::function<bool(int64_t)>& is_null) {
    arrow::ArrayVector columns;
    for (const auto& field : schema->fields()) columns.push_back(Rule(is_null).Column(*field, rows));
    return arrow::RecordBatch::Make(schema, rows, std::move(columns));
  };
  const auto some = [](int64_t row) { return row % 4 == 1; };
  auto whole = batch(Rule::kRows, some);
  return {whole, batch(Rule::kRows, [](int64_t) { return false; }),
          batch(Rule::kRows, [](int64_t) { return true; }), whole->Slice(3, 6), batch(0, some)};
}

}  // namespace peers
