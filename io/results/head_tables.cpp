#include "io/results/head_tables.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/files/json_text.h"
#include "io/files/posix_file.h"
#include "io/results/csv_line.h"
#include "io/results/head_columns.h"
#include "io/results/head_json.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

void write_text(const std::string& text, const std::filesystem::path& path) {
  PosixFile file(path, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
  file.close();
}

/// A line a head, which is a JSON object: the columns that name it, then `numbers`.
std::string heads_csv(const OrderedJson& heads, const std::vector<std::string>& numbers) {
  HeadColumns columns;
  for (const OrderedJson& head : heads) {
    for (const auto& [name, value] : head.items()) {
      if (names_head(name) && !value.is_null()) columns.add(name);
    }
  }
  std::vector<std::string> names = columns.titles();
  names.insert(names.end(), numbers.begin(), numbers.end());
  std::string text = csv_line(names);
  for (const OrderedJson& head : heads) {
    std::vector<std::string> fields;
    for (const std::string& name : names) {
      const auto value = head.find(name);
      fields.push_back(value == head.end() ? "" : csv_value(*value));
    }
    text += csv_line(fields);
  }
  return text;
}

/// The rows with numbers by name, {"a": {"b": 1}}, as numbers of their own: {"a.b": 1}.
OrderedJson with_flat_numbers(const OrderedJson& rows) {
  OrderedJson flat = OrderedJson::array();
  for (const OrderedJson& row : rows) {
    OrderedJson& line = flat.emplace_back(OrderedJson::object());
    for (const auto& [name, value] : row.items()) {
      if (!value.is_object()) line[name] = value;
      if (!value.is_object()) continue;
      for (const auto& [part, number] : value.items()) line[name + "." + part] = number;
    }
  }
  return flat;
}

std::vector<std::string> stats_columns(std::span<const HeadRecord> records, bool nearest) {
  const auto any = [&](auto has) { return std::any_of(records.begin(), records.end(), has); };
  std::vector<std::string> names{"class"};
  for (const HeadField& field : head_fields()) {
    names.emplace_back(field.name);
    if (any([&](const HeadRecord& record) {
          return standard_error_of(record.metrics, field).has_value();
        })) {
      names.push_back(field.error_name());
    }
  }
  if (any([](const HeadRecord& record) { return !record.metrics.segment_mass.from.empty(); })) {
    names.emplace_back("segment_mass");
  }
  names.emplace_back("sink_key");
  if (nearest) names.emplace_back("nearest");
  return names;
}

/// {"mass": [0.5, …], "keys": [mean over rows of how many keys hold it, …]}.
OrderedJson keys_curve_json(const HeadMetrics& metrics) {
  OrderedJson mass = OrderedJson::array(), keys = OrderedJson::array();
  for (const KeysForShare& point : keys_curve()) {
    const auto number = number_of(metrics, *point.field);
    mass.push_back(point.share);
    keys.push_back(number ? OrderedJson(*number) : OrderedJson());
  }
  return {{"mass", std::move(mass)}, {"keys", std::move(keys)}};
}

/// Do the options of the run that found the numbers have this one?
bool has_option(const OrderedJson& about, const char* name) {
  const auto options = about.find("options");
  return options != about.end() && options->contains(name);
}

OrderedJson class_table_json(const ClassTable& table) {
  constexpr std::array kOfColumns{"step", "branch", "forward", "of_step"};
  OrderedJson columns = OrderedJson::array(), heads = OrderedJson::array();
  for (const HeadName& column : table.columns) {
    const OrderedJson name = name_json(column);
    OrderedJson& json = columns.emplace_back(OrderedJson::object());
    for (const char* const fact : kOfColumns) {
      if (name.contains(fact)) json[fact] = name[fact];
    }
  }
  for (const auto& row : table.rows) {
    OrderedJson& json = heads.emplace_back(name_json(head_of_row(row)));
    for (const char* const fact : kOfColumns) json.erase(fact);
    json["changes"] = is_changing(row);
    OrderedJson& classes = json["classes"] = OrderedJson::array();
    for (const ClassTable::Cell& cell : row) {
      classes.push_back(cell ? OrderedJson(cell->head_class) : OrderedJson());
    }
  }
  return {{"columns", std::move(columns)}, {"heads", std::move(heads)}};
}

}  // namespace

std::string stats_csv(std::span<const HeadRecord> records, bool nearest) {
  OrderedJson heads = OrderedJson::array();
  for (const HeadRecord& record : records) {
    OrderedJson& head = heads.emplace_back(head_json(record));
    const std::vector<Sink>& sinks = record.metrics.sinks;
    if (!sinks.empty()) head["sink_key"] = sinks.front().key;
  }
  return heads_csv(heads, stats_columns(records, nearest));
}

std::string mask_csv(const OrderedJson& rows) {
  if (rows.empty()) return "";
  const OrderedJson heads = with_flat_numbers(rows);
  std::vector<std::string> numbers;
  for (const OrderedJson& head : heads) {
    for (const auto& [name, value] : head.items()) {
      if (names_head(name) || std::find(numbers.begin(), numbers.end(), name) != numbers.end()) {
        continue;
      }
      numbers.push_back(name);
    }
  }
  return heads_csv(heads, numbers);
}

OrderedJson stats_json(const OrderedJson& about, std::span<const HeadRecord> records) {
  OrderedJson json{{"format", "attnscope-stats/1"}};
  json.update(about);
  OrderedJson& heads = json["heads"] = OrderedJson::array();
  const bool curve = has_option(about, "curve");
  for (const HeadRecord& record : records) {
    OrderedJson& head = heads.emplace_back(head_json(record));
    if (curve) head["keys_curve"] = keys_curve_json(record.metrics);
  }
  // Of heads that --top left the table would lack classes that were measured.
  if (has_option(about, "top")) return json;
  if (const ClassTable table = class_table(records); table.compares()) {
    json["class_table"] = class_table_json(table);
  }
  return json;
}

void write_stats_table(const OrderedJson& about, std::span<const HeadRecord> records,
                       std::string_view extension, const std::filesystem::path& path) {
  write_text(extension == ".csv" ? stats_csv(records, has_option(about, "nearest"))
                                 : json_text(stats_json(about, records), 1) + "\n",
             path);
}

void write_mask_table(const OrderedJson& masks, std::string_view extension,
                      const std::filesystem::path& path) {
  write_text(extension == ".csv" ? mask_csv(masks.at("heads")) : json_text(masks, 1) + "\n", path);
}

}  // namespace attnscope
