#include "io/results/stats_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/results/csv_field.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

void write_text(const std::string& text, const std::filesystem::path& path) {
  const PosixFile file(path, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
}

/// The columns that are keys of head_json().
std::vector<std::string> csv_columns(std::span<const HeadRecord> records) {
  std::vector<std::string> names{"step", "layer", "branch", "kind", "batch", "head"};
  if (std::any_of(records.begin(), records.end(),
                  [](const HeadRecord& record) { return record.name.place.is_recorded(); })) {
    names.insert(names.end(), {"block", "slot"});
  }
  if (std::any_of(records.begin(), records.end(),
                  [](const HeadRecord& record) { return record.name.place.has_chunk(); })) {
    names.emplace_back("chunk");
  }
  for (const ForwardFact& fact : kForwardFacts) {
    if (std::any_of(records.begin(), records.end(), [&](const HeadRecord& record) {
          return record.name.place.forward.*fact.number != fact.none;
        })) {
      names.emplace_back(fact.name);
    }
  }
  names.emplace_back("class");
  for (const HeadField& field : head_fields()) {
    names.emplace_back(field.name);
    if (std::any_of(records.begin(), records.end(), [&](const HeadRecord& record) {
          return standard_error_of(record.metrics, field).has_value();
        })) {
      names.push_back(field.error_name());
    }
  }
  if (std::any_of(records.begin(), records.end(), [](const HeadRecord& record) {
        return !record.metrics.segment_mass.from.empty();
      })) {
    names.emplace_back("segment_mass");
  }
  return names;
}

/// Lists and objects as JSON in quotes.
std::string csv_cell(const OrderedJson& value) {
  return value.is_structured() ? csv_text(value.dump()) : csv_value(value);
}

}  // namespace

OrderedJson stats_json(const OrderedJson& about, std::span<const HeadRecord> records) {
  OrderedJson json{{"format", "attnscope-stats/1"}};
  json.update(about);
  OrderedJson& heads = json["heads"] = OrderedJson::array();
  for (const HeadRecord& record : records) heads.push_back(head_json(record));
  return json;
}

void write_stats_json(const OrderedJson& about, std::span<const HeadRecord> records,
                      const std::filesystem::path& path) {
  write_text(json_text(stats_json(about, records), 1) + "\n", path);
}

void write_stats_csv(std::span<const HeadRecord> records, const std::filesystem::path& path) {
  const std::vector<std::string> names = csv_columns(records);
  std::string text = fmt::format("{},sink_key\r\n", fmt::join(names, ","));
  for (const HeadRecord& record : records) {
    const OrderedJson json = head_json(record);
    for (const std::string& name : names) {
      const auto value = json.find(name);
      if (value != json.end()) text += csv_cell(*value);
      text += ',';
    }
    const std::vector<Sink>& sinks = record.metrics.sinks;
    text += (sinks.empty() ? "" : std::to_string(sinks.front().key)) + "\r\n";
  }
  write_text(text, path);
}

}  // namespace attnscope
