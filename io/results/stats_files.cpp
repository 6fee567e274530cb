#include "io/results/stats_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/results/csv_line.h"
#include "io/results/head_columns.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

void write_text(const std::string& text, const std::filesystem::path& path) {
  const PosixFile file(path, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
}

/// The columns behind those that name heads; they are keys of head_json().
std::vector<std::string> number_columns(std::span<const HeadRecord> records) {
  std::vector<std::string> names{"class"};
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
  HeadColumns heads;
  for (const HeadRecord& record : records) heads.add(record.name);
  const std::vector<std::string> numbers = number_columns(records);
  std::vector<std::string> fields = heads.titles();
  fields.insert(fields.end(), numbers.begin(), numbers.end());
  fields.emplace_back("sink_key");
  std::string text = csv_line(fields);
  for (const HeadRecord& record : records) {
    const OrderedJson json = head_json(record);
    fields = heads.fields(record.name);
    for (const std::string& name : numbers) {
      const auto value = json.find(name);
      fields.push_back(value == json.end() ? "" : csv_value(*value));
    }
    const std::vector<Sink>& sinks = record.metrics.sinks;
    fields.push_back(sinks.empty() ? "" : std::to_string(sinks.front().key));
    text += csv_line(fields);
  }
  write_text(text, path);
}

}  // namespace attnscope
