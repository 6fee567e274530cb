#include "cli/lab/lab_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/mask/mask_report.h"
#include "core/base/error.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// Numbers of the table, under headings that fit.
struct LabColumn {
  std::string_view name, heading;
  bool always = true;  ///< else only where a line has the number
};
constexpr std::array<LabColumn, 11> kColumns{{{"density", "density"},
                                              {"tiles", "tiles"},
                                              {"recall", "recall"},
                                              {"recall_p05", "p05"},
                                              {"entry_oracle_recall", "entries"},
                                              {"block_oracle_recall", "blocks", false},
                                              {"output_error", "out.err"},
                                              {"output_error_p95", "err.p95"},
                                              {"output_cosine", "cosine"},
                                              {"forced_mass", "forced", false},
                                              {"js", "js", false}}};

bool any_has(const OrderedJson& rows, std::string_view name) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const OrderedJson& row) { return !row.at(std::string(name)).is_null(); });
}

std::string cell(const OrderedJson& value) {
  return value.is_null() ? fmt::format(" {:>8}", "-")
                         : fmt::format(" {:8.4f}", value.get<double>());
}

}  // namespace

OrderedJson lab_row(const HeadName& head, const std::string& edit, const MaskQuality& quality) {
  OrderedJson json = name_json(head);
  json["edit"] = edit;
  for (const MaskField& field : lab_fields()) {
    json[std::string(field.name)] = mask_number_json(quality, field);
  }
  OrderedJson& segments = json["output_error_by_segment"] = OrderedJson::object();
  for (const auto& [name, error] : quality.segment_errors) segments[name] = error;
  return json;
}

void check_lab_row(const OrderedJson& json) {
  parse_name_json(json);
  json.at("edit").get<std::string>();
  for (const MaskField& field : lab_fields()) {
    const OrderedJson& value = json.at(std::string(field.name));
    if (!value.is_null()) value.get<double>();
  }
  json.at("output_error_by_segment").get<std::map<std::string, double>>();
}

void print_lab_table(const OrderedJson& rows) {
  size_t width = 4;
  for (const OrderedJson& row : rows) {
    width = std::max(width, one_line(row.at("edit").get<std::string>()).size());
  }
  std::vector<LabColumn> columns;
  for (const LabColumn& column : kColumns) {
    if (column.always || any_has(rows, column.name)) columns.push_back(column);
  }
  std::string before;
  for (const OrderedJson& row : rows) {
    const HeadName name = parse_name_json(row);
    const std::string call =
        one_line(call_words(name.step, name.layer, name.branch,
                            fmt::format("{} batch {}", name.kind, name.batch), name.place));
    if (call != before) {
      fmt::print("{}{}\nhead  {:<{}} ", before.empty() ? "" : "\n", call, "edit", width);
      for (const LabColumn& column : columns) fmt::print(" {:>8}", column.heading);
      fmt::print("\n");
      before = call;
    }
    fmt::print("{:4}  {:<{}} ", name.head, one_line(row.at("edit").get<std::string>()), width);
    for (const LabColumn& column : columns)
      fmt::print("{}", cell(row.at(std::string(column.name))));
    fmt::print("\n");
  }
}

}  // namespace attnscope
