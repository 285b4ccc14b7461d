// One case per layout of the columnar format, each with the format strings that the specification gives it.
//
// The strings are literals on purpose: a table computed from Arrow's types would repeat whatever Arrow gets
// wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrow/api.h"
#include "arrow/extension/uuid.h"
#include "arrow/json/from_string.h"

namespace peers {

template <typename T>
T Must(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return std::move(result).ValueUnsafe();
}

inline void Must(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

using Values = std::vector<std::string>;  // JSON texts; "null" is a null

struct Layout {
  std::string name;
  std::shared_ptr<arrow::Field> field;
  // Depth first: a node, then its children, then its dictionary.
  std::vector<std::string> formats;
  Values values;
  std::shared_ptr<arrow::Array> (*make)(const arrow::DataType& type, const Values& values);
};

inline std::string Json(const Values& values) {
  std::string json = "[";
  for (const std::string& value : values) {
    if (json.size() > 1) json += ",";
    json += value;
  }
  return json + "]";
}

inline std::shared_ptr<arrow::Array> FromJson(const arrow::DataType& type, const Values& values) {
  return Must(arrow::json::ArrayFromJSONString(type.GetSharedPtr(), Json(values)));
}

// A heap of 32-byte blocks, so that a handful of values needs several variadic buffers.
template <typename Builder>
std::shared_ptr<arrow::Array> InSmallBlocks(const arrow::DataType&, const Values& values) {
  Builder builder;
  builder.SetBlockSize(32);
  for (const std::string& value : values) {
    if (value == "null") {
      Must(builder.AppendNull());
    } else {
      Must(builder.Append(std::string_view(value).substr(1, value.size() - 2)));
    }
  }
  return Must(builder.Finish());
}

inline std::shared_ptr<arrow::Array> RunsOfTwo(const arrow::DataType& type, const Values& values) {
  const auto& run_end_encoded = static_cast<const arrow::RunEndEncodedType&>(type);
  Values ends;
  Values runs;
  for (size_t row = 0; row < values.size(); row += 2) {
    ends.push_back(std::to_string(std::min(row + 2, values.size())));
    runs.push_back(values[row]);
  }
  return Must(arrow::RunEndEncodedArray::Make(static_cast<int64_t>(values.size()),
                                              FromJson(*run_end_encoded.run_end_type(), ends),
                                              FromJson(*run_end_encoded.value_type(), runs)));
}

// A struct whose children are slices themselves: offsets at two levels.
inline std::shared_ptr<arrow::Array> OfSlices(const arrow::DataType& type, const Values& values) {
  arrow::ArrayVector children;
  for (int i = 0; i < type.num_fields(); ++i) {
    Values padded(static_cast<size_t>(i) + 3, "null");
    padded.insert(padded.end(), values.begin(), values.end());
    children.push_back(FromJson(*type.field(i)->type(), padded)->Slice(i + 3));
  }
  return Must(arrow::StructArray::Make(children, type.fields()));
}

inline std::shared_ptr<arrow::Array> Uuids(const arrow::DataType& type, const Values& values) {
  auto storage = FromJson(*arrow::fixed_size_binary(16), values);
  return arrow::ExtensionType::WrapArray(type.GetSharedPtr(), storage);
}

inline std::vector<Layout> Layouts() {
  using namespace arrow;
  std::vector<Layout> all;
  auto add = [&all](std::string name, std::shared_ptr<DataType> type, std::vector<std::string> formats,
                    Values values, decltype(Layout::make) make = FromJson) {
    // The type's own name, a space and a letter outside ASCII: column names are any UTF-8.
    all.push_back(
        {name, arrow::field(name + " ø", std::move(type)), std::move(formats), std::move(values), make});
  };
  const Values numbers = {"1", "2", "3", "100", "5", "6"};
  const Values reals = {"1.5", "-2.25", "0", "1e3", "5", "6"};
  const Values words = {R"("a")",   R"("")",  R"("a rather long word, not inlined")",
                        R"("æøå")", R"("e")", R"("yet another that is longer than twelve")"};
  const Values lists = {"[1, 2]", "[]", "[3, null, 5]", "[6]", "[7, 8, 9]", "[null]"};

  add("null", null(), {"n"}, {"null", "null", "null", "null", "null", "null"});
  add("boolean", boolean(), {"b"}, {"true", "false", "true", "true", "false", "true"});
  add("int8", int8(), {"c"}, {"-1", "2", "-128", "127", "5", "6"});
  add("uint8", uint8(), {"C"}, numbers);
  add("int16", int16(), {"s"}, numbers);
  add("uint16", uint16(), {"S"}, numbers);
  add("int32", int32(), {"i"}, numbers);
  add("uint32", uint32(), {"I"}, numbers);
  add("int64", int64(), {"l"}, {"-1", "9223372036854775807", "-9223372036854775808", "0", "5", "6"});
  add("uint64", uint64(), {"L"}, {"18446744073709551615", "1", "2", "3", "4", "5"});
  add("half float", float16(), {"e"}, reals);
  add("float", float32(), {"f"}, reals);
  add("double", float64(), {"g"}, reals);
  add("decimal32", decimal32(7, 2), {"d:7,2,32"},
      {R"("1.00")", R"("-2.25")", R"("0.00")", R"("3.10")", R"("4.00")", R"("5.00")"});
  add("decimal64", decimal64(15, 3), {"d:15,3,64"},
      {R"("1.000")", R"("-2.250")", R"("0.000")", R"("3.100")", R"("4.000")", R"("5.000")"});
  add("decimal128", decimal128(30, 4), {"d:30,4"},
      {R"("1.0000")", R"("-2.2500")", R"("0.0000")", R"("3.1000")", R"("4.0000")", R"("5.0000")"});
  add("decimal256", decimal256(60, 1), {"d:60,1,256"},
      {R"("1.0")", R"("-2.2")", R"("0.0")", R"("3.1")", R"("4.0")", R"("5.0")"});
  add("date32", date32(), {"tdD"}, numbers);
  add("date64", date64(), {"tdm"}, {"0", "86400000", "172800000", "0", "86400000", "0"});
  add("time32 s", time32(TimeUnit::SECOND), {"tts"}, numbers);
  add("time32 ms", time32(TimeUnit::MILLI), {"ttm"}, numbers);
  add("time64 us", time64(TimeUnit::MICRO), {"ttu"}, numbers);
  add("time64 ns", time64(TimeUnit::NANO), {"ttn"}, numbers);
  add("timestamp", timestamp(TimeUnit::SECOND), {"tss:"}, numbers);
  add("timestamp with zone", timestamp(TimeUnit::NANO, "Europe/Copenhagen"), {"tsn:Europe/Copenhagen"},
      numbers);
  add("duration", duration(TimeUnit::MICRO), {"tDu"}, numbers);
  add("interval of months", month_interval(), {"tiM"}, numbers);
  add("interval of days and ms", day_time_interval(), {"tiD"},
      {"[1, 2]", "[3, 4]", "[-5, 6]", "[7, 8]", "[0, 0]", "[9, 9]"});
  add("interval of months, days and ns", month_day_nano_interval(), {"tin"},
      {"[1, 2, 3]", "[3, 4, 5]", "[-5, 6, 7]", "[7, 8, 9]", "[0, 0, 0]", "[9, 9, 9]"});
  add("fixed-size binary", fixed_size_binary(3), {"w:3"},
      {R"("abc")", R"("def")", R"("ghi")", R"("jkl")", R"("mno")", R"("pqr")"});
  add("binary", binary(), {"z"}, words);
  add("large binary", large_binary(), {"Z"}, words);
  add("string", utf8(), {"u"}, words);
  add("large string", large_utf8(), {"U"}, words);
  add("binary view", binary_view(), {"vz"}, words, InSmallBlocks<BinaryViewBuilder>);
  add("string view", utf8_view(), {"vu"}, words, InSmallBlocks<StringViewBuilder>);
  add("list", list(int32()), {"+l", "i"}, lists);
  add("large list", large_list(int32()), {"+L", "i"}, lists);
  add("list view", list_view(int32()), {"+vl", "i"}, lists);
  add("large list view", large_list_view(int32()), {"+vL", "i"}, lists);
  add("fixed-size list", fixed_size_list(int32(), 2), {"+w:2", "i"},
      {"[1, 2]", "[3, null]", "[5, 6]", "[7, 8]", "[null, null]", "[9, 9]"});
  auto pair = struct_({field("x", int32()), field("y", utf8(), /*nullable=*/false)});
  add("struct", pair, {"+s", "i", "u"},
      {R"({"x": 1, "y": "a"})", R"({"x": null, "y": "b"})", R"({"x": 3, "y": ""})", R"({"x": 4, "y": "d"})",
       R"({"x": 5, "y": "e"})", R"({"x": 6, "y": "f"})"});
  add("struct of slices", struct_({field("x", int64()), field("y", int16())}), {"+s", "l", "s"}, numbers,
      OfSlices);
  add("struct without fields", struct_({}), {"+s"}, {"{}", "{}", "{}", "{}", "{}", "{}"});
  add("map", map(utf8(), int32()), {"+m", "+s", "u", "i"},
      {R"([["a", 1], ["b", null]])", "[]", R"([["c", 3]])", R"([["d", 4]])", R"([["e", 5], ["f", 6]])",
       "[]"});
  add("map with sorted keys", map(int32(), utf8(), /*keys_sorted=*/true), {"+m", "+s", "i", "u"},
      {R"([[1, "a"], [2, null]])", "[]", R"([[3, "c"]])", R"([[4, "d"]])", R"([[5, "e"]])", "[]"});
  const Values tagged = {"[4, 1]", R"([9, "b"])", "[4, null]", R"([9, null])", "[4, 5]", R"([9, "f"])"};
  auto alternatives = FieldVector{field("number", int32()), field("text", utf8())};
  add("sparse union", sparse_union(alternatives, {4, 9}), {"+us:4,9", "i", "u"}, tagged);
  add("dense union", dense_union(alternatives, {4, 9}), {"+ud:4,9", "i", "u"}, tagged);
  add("dictionary", dictionary(int8(), utf8()), {"c", "u"},
      {R"("a")", R"("b")", R"("a")", R"("c")", R"("b")", R"("a")"});
  add("ordered dictionary", dictionary(uint32(), int64(), /*ordered=*/true), {"I", "l"}, numbers);
  add("run-end encoded", run_end_encoded(int32(), utf8()), {"+r", "i", "u"}, words, RunsOfTwo);
  add("run-end encoded, short ends", run_end_encoded(int16(), float64()), {"+r", "s", "g"}, reals, RunsOfTwo);
  add("list of structs of lists of dictionaries",
      list(struct_({field("d", list(dictionary(int32(), utf8())))})), {"+l", "+s", "+l", "i", "u"},
      {R"([{"d": ["a", "b", null]}, null])", "[]", R"([{"d": []}])", R"([{"d": null}])", R"([{"d": ["b"]}])",
       R"([{"d": ["a"]}])"});
  add("extension", arrow::extension::uuid(), {"w:16"},
      {R"("0123456789abcdef")", R"("fedcba9876543210")", R"("0000000000000000")", R"("1111111111111111")",
       R"("2222222222222222")", R"("3333333333333333")"},
      Uuids);

  all[6].field = all[6].field->WithNullable(true)->WithMetadata(key_value_metadata(
      {"unit", "", "odd"}, {"µm", "value of the empty key", std::string("zero\0inside", 11)}));
  return all;
}

// The batches of a layout: with nulls, with none, all null, a slice of each kind of offset, and nothing at
// all.
inline arrow::ArrayVector Variants(const Layout& layout) {
  const arrow::DataType& type = *layout.field->type();
  const size_t n = layout.values.size();
  Values with_nulls;
  Values many;
  for (size_t i = 0; i < n; ++i) {
    with_nulls.push_back(layout.values[i]);
    if (i % 2 == 0) with_nulls.push_back("null");
  }
  for (int i = 0; i < 5; ++i) many.insert(many.end(), with_nulls.begin(), with_nulls.end());
  auto long_array = layout.make(type, many);
  return {
      layout.make(type, with_nulls), layout.make(type, layout.values), layout.make(type, Values(7, "null")),
      long_array->Slice(3, 5),       long_array->Slice(19, 13),        long_array->Slice(4, 0),
      layout.make(type, {}),
  };
}

}  // namespace peers
