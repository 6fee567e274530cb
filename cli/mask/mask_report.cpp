#include "cli/mask/mask_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "io/results/head_json.h"
#include "io/results/head_name_json.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::optional<double> optional_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:8.4f}", *value) : fmt::format("{:>8}", "-");
}

}  // namespace

Json mask_row_json(const MaskRow& row, bool timed) {
  const MaskQuality& s = row.quality;
  Json json = name_json(row.name);
  json.update({{"mask", row.mask},
               {"density", s.density},
               {"effective_density", s.effective_density},
               {"recall", number(s.recall)},
               {"recall_p05", number(s.recall_p05)},
               {"recall_sampled", number(s.recall_sampled)},
               {"oracle_recall", number(s.oracle_recall)},
               {"oracle_stderr", number(s.oracle_stderr)},
               {"output_error", number(s.output_error)},
               {"output_error_mean", number(s.output_error_mean)},
               {"output_error_p95", number(s.output_error_p95)},
               {"masked_rows", s.masked_rows},
               {"empty_rows", s.empty_rows},
               {"sampled_rows", s.sampled_rows}});
  if (timed) json["time_ratio"] = number(row.time_ratio);
  return json;
}

MaskRow parse_mask_row(const Json& json) {
  MaskRow row;
  row.name = parse_name_json(json);
  json.at("mask").get_to(row.mask);
  MaskQuality& s = row.quality;
  json.at("density").get_to(s.density);
  json.at("effective_density").get_to(s.effective_density);
  const std::pair<const char*, std::optional<double>*> numbers[] = {
      {"recall", &s.recall},
      {"recall_p05", &s.recall_p05},
      {"recall_sampled", &s.recall_sampled},
      {"oracle_recall", &s.oracle_recall},
      {"oracle_stderr", &s.oracle_stderr},
      {"output_error", &s.output_error},
      {"output_error_mean", &s.output_error_mean},
      {"output_error_p95", &s.output_error_p95}};
  for (const auto& [key, value] : numbers) *value = optional_of(json.at(key));
  json.at("masked_rows").get_to(s.masked_rows);
  json.at("empty_rows").get_to(s.empty_rows);
  json.at("sampled_rows").get_to(s.sampled_rows);
  if (json.contains("time_ratio")) row.time_ratio = optional_of(json.at("time_ratio"));
  return row;
}

Json mask_json(const std::vector<MaskRow>& rows, bool timed) {
  Json heads = Json::array();
  for (const MaskRow& row : rows) heads.push_back(mask_row_json(row, timed));
  return {{"format", "attnscope-mask/1"}, {"heads", std::move(heads)}};
}

void print_mask_table(const std::vector<MaskRow>& rows, bool timed) {
  size_t width = 4;
  for (const MaskRow& row : rows) width = std::max(width, one_line(row.mask).size());
  std::string before;
  for (const MaskRow& row : rows) {
    const HeadName& name = row.name;
    const std::string call =
        one_line(call_words(name.step, name.layer, name.branch,
                            fmt::format("{} batch {}", name.kind, name.batch), name.place));
    if (call != before) {
      fmt::print("{}{}\n", before.empty() ? "" : "\n", call);
      fmt::print("head  {:<{}}   density   recall      p05   oracle  out.err  err.p95{}\n", "mask",
                 width, timed ? "     time" : "");
      before = call;
    }
    const MaskQuality& s = row.quality;
    fmt::print("{:4}  {:<{}}  {:8.4f} {} {} {} {} {}{}\n", name.head, one_line(row.mask), width,
               s.density, cell(s.recall), cell(s.recall_p05), cell(s.oracle_recall),
               cell(s.output_error), cell(s.output_error_p95),
               timed ? fmt::format(" {}", cell(row.time_ratio)) : std::string());
  }
}

}  // namespace attnscope
