#include "io/metrics/table_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/reduce/head_fields.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "io/results/csv_table.h"
#include "io/results/head_columns.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// Is it the title of a column that names a head or says something of it, and is no number?
bool is_word(std::string_view title) {
  constexpr std::string_view kWords[] = {"run",   "prompt",       "seed",
                                         "class", "segment_mass", "nearest"};
  return names_head(title) ||
         std::find(std::begin(kWords), std::end(kWords), title) != std::end(kWords);
}

/// One line of a table by the names of its columns.
class CsvLine {
 public:
  CsvLine(const CsvTable& table, const std::map<std::string, size_t>& places,
          const std::string& file)
      : table_(table), places_(places), file_(file) {}

  void go_to(size_t line) { line_ = line; }

  std::string text(const std::string& column) const {
    const auto found = places_.find(column);
    return found == places_.end() ? "" : table_.lines[line_][found->second];
  }
  int64_t index(const std::string& column, int64_t where_empty) const {
    const std::string field = text(column);
    if (field.empty() && where_empty < 0) return where_empty;
    return parsed<int64_t>(column, field, "a whole number");
  }
  double number(size_t column) const {
    const std::string& field = table_.lines[line_][column];
    if (field.empty()) return std::numeric_limits<double>::quiet_NaN();
    return parsed<double>(table_.names[column], field, "a number");
  }

 private:
  template <typename T>
  T parsed(const std::string& column, const std::string& field, const char* expected) const {
    T value{};
    const char* const end = field.data() + field.size();
    const auto [stop, error] = std::from_chars(field.data(), end, value);
    if (error == std::errc() && stop == end) return value;
    throw file_error(file_, fmt::format("line {}", table_.numbers[line_]),
                     fmt::format("column {}: expected {}, got \"{}\"", one_line(column), expected,
                                 one_line(field)));
  }

  const CsvTable& table_;
  const std::map<std::string, size_t>& places_;
  const std::string& file_;
  size_t line_ = 0;
};

/// The number of a member; NaN where it is undefined.
double json_number(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

/// A head's name; what is empty nobody recorded, or it is a layer outside the main stack.
HeadName line_name(const CsvLine& line) {
  HeadName name;
  name.place = {line.text("block"), line.text("slot"), line.index("chunk", kNoChunk)};
  for (const ForwardFact& fact : kForwardFacts) {
    if (line.text(fact.name).empty()) continue;
    name.place.forward.*fact.number = line.index(fact.name, fact.none);
  }
  Unrecorded& unrecorded = name.place.unrecorded;
  unrecorded = {line.text("step").empty(), line.text("layer").empty() && name.place.block.empty(),
                line.text("branch").empty()};
  if (!unrecorded.step) name.step = line.index("step", 0);
  if (!unrecorded.layer) name.layer = line.index("layer", kNoLayer);
  name.branch = unrecorded.branch ? "all" : line.text("branch");
  name.kind = line.text("kind");
  name.batch = line.index("batch", 0);
  name.head = line.index("head", 0);
  return name;
}

}  // namespace

void read_csv_table(const std::filesystem::path& path, TableBuilder& table) {
  const std::string& file = table.file();
  const CsvTable csv = parse_csv(read_file_text(path), file);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < csv.names.size(); ++i) places[csv.names[i]] = i;
  for (const char* const name : {"step", "layer", "branch", "kind", "batch", "head"}) {
    if (places.count(name) != 0) continue;
    throw file_error(
        file, "line 1",
        fmt::format("has no column {}: is no table of attnscope stats or a probe", name));
  }
  CsvLine line(csv, places, file);
  for (size_t i = 0; i < csv.lines.size(); ++i) {
    line.go_to(i);
    const HeadName name = line_name(line);
    table.begin_line(line.text("run"), name, line.text("class"));
    for (size_t column = 0; column < csv.names.size(); ++column) {
      if (!is_word(csv.names[column])) table.add(csv.names[column], line.number(column));
    }
  }
}

void read_json_table(const std::filesystem::path& path, int64_t memory, TableBuilder& table) {
  const std::string& file = table.file();
  const Json json = parse_strict_json(read_file_text(path), file, "",
                                      {.values = int64_t{1} << 28, .memory = memory});
  const auto format = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || format == json.end() || *format != "attnscope-stats/1") {
    throw file_error(
        file, "format",
        "is no table of heads (expected attnscope-stats/1, as attnscope stats writes)");
  }
  size_t place = 0;
  try {
    for (const Json& head : json.at("heads")) {
      table.begin_line("", parse_name_json(head), head.value("class", ""));
      for (const HeadField& field : head_fields()) {
        const auto value = head.find(field.name);
        if (value != head.end()) table.add(std::string(field.name), json_number(*value));
      }
      ++place;
    }
  } catch (const Json::exception&) {
    throw file_error(file, fmt::format("heads[{}]", place), "is no head as attnscope stats writes");
  }
}

}  // namespace attnscope
