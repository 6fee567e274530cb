#include "io/results/stats_files.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

void write_text(const std::string& text, const std::filesystem::path& path) {
  const PosixFile file(path, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
}

/// A field as RFC 4180 has it.
std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

const std::vector<StatsArray>& stats_arrays() {
  static const std::vector<StatsArray> arrays{
      {"frame_frame",
       {"query_segment", "key_segment"},
       "mean over the rows of a query segment of the mass on a key segment"},
      {"column_mass", {"key"}, "mean over rows of the weight of each key"},
      {"diagonal_profile", {"diagonal"}, "sum over queries i of the weight of key i + k"},
      {"offset_kernel",
       {"offset_t", "offset_y", "offset_x"},
       "share of the mass between video tokens by the offset of key from query"},
      {"entropy_rows", {"query"}, "entropy of each row in nats"},
      {"max_weight_rows", {"query"}, "largest weight of each row"},
      {"max_key_rows", {"query"}, "key of each row's largest weight, -1 where masked"},
      {"lse_rows", {"query"}, "ln of each row's normaliser"}};
  return arrays;
}

void write_stats_json(const Json& about, const StatsRecords& records,
                      const std::filesystem::path& path) {
  Json json{{"format", "attnscope-stats/1"}};
  json.update(about);
  json["heads"] = records;
  write_text(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", path);
}

void write_stats_csv(const StatsRecords& records, const std::filesystem::path& path) {
  std::string text;
  std::vector<std::string> names;
  for (const auto& [name, value] : records.front().items()) {
    if (!value.is_structured()) names.push_back(name);
  }
  text = fmt::format("{},sink_key\r\n", fmt::join(names, ","));
  for (const Json& record : records) {
    std::vector<std::string> fields;
    for (const std::string& name : names) fields.push_back(csv_field(record.at(name)));
    const Json& sinks = record.at("sinks");
    fields.push_back(sinks.empty() ? "" : sinks[0].at("key").dump());
    text += fmt::format("{}\r\n", fmt::join(fields, ","));
  }
  write_text(text, path);
}

}  // namespace attnscope
