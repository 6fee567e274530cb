#include "cli/mask/mask_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

template <typename T>
OrderedJson number(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

template <typename T>
std::optional<T> optional_of(const OrderedJson& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<T>());
}

OrderedJson number(double value) { return value; }
OrderedJson number(int64_t count) { return count; }

/// The numbers of a mask, each name behind `before`.
void add_quality(const MaskQuality& quality, const std::string& before, OrderedJson& json) {
  for (const MaskField& field : mask_fields()) {
    json[before + std::string(field.name)] = mask_number_json(quality, field);
  }
}

template <typename T>
void read_number(const OrderedJson& json, std::optional<T>& value) {
  value = optional_of<T>(json);
}
template <typename T>
void read_number(const OrderedJson& json, T& value) {
  json.get_to(value);
}

/// Reads back the numbers that add_quality() wrote.
MaskQuality quality_of(const OrderedJson& json, const std::string& before) {
  MaskQuality quality;
  for (const MaskField& field : mask_fields()) {
    const OrderedJson& value = json.at(before + std::string(field.name));
    std::visit([&](auto member) { read_number(value, quality.*member); }, field.member);
  }
  return quality;
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:8.4f}", *value) : fmt::format("{:>8}", "-");
}

std::string saved_name(const MaskRow& row) {
  return fmt::format("saved as blocks of {}", row.saved->block);
}

}  // namespace

OrderedJson mask_number_json(const MaskQuality& quality, const MaskField& field) {
  return std::visit([&](auto member) { return number(quality.*member); }, field.member);
}

OrderedJson mask_row_json(const MaskRow& row, bool timed) {
  OrderedJson json = name_json(row.name);
  json["mask"] = row.mask;
  add_quality(row.quality, "", json);
  if (timed) json["time_ratio"] = number(row.time_ratio);
  if (row.saved) {
    json["saved_block"] = row.saved->block;
    add_quality(row.saved->quality, "saved_", json);
  }
  return json;
}

MaskRow parse_mask_row(const OrderedJson& json) {
  MaskRow row;
  row.name = parse_name_json(json);
  json.at("mask").get_to(row.mask);
  row.quality = quality_of(json, "");
  if (json.contains("time_ratio")) row.time_ratio = optional_of<double>(json.at("time_ratio"));
  if (json.contains("saved_block")) {
    row.saved = SavedQuality{json.at("saved_block").get<int64_t>(), quality_of(json, "saved_")};
  }
  return row;
}

std::string saved_text(const std::string& path, const std::vector<MaskRow>& rows) {
  double density = 0, recall = 0;
  int64_t with_recall = 0;
  for (const MaskRow& row : rows) {
    const MaskQuality& quality = row.saved.value().quality;
    density += quality.density;
    recall += quality.recall.value_or(0);
    with_recall += quality.recall ? 1 : 0;
  }
  return fmt::format(
      "wrote {} ({}: density {:.4f}, recall {}{})", path, saved_name(rows.front()),
      density / static_cast<double>(rows.size()),
      with_recall == 0 ? "-" : fmt::format("{:.4f}", recall / static_cast<double>(with_recall)),
      rows.size() == 1 ? "" : fmt::format(" over {} heads", rows.size()));
}

void print_mask_table(const std::vector<MaskRow>& rows, bool timed) {
  size_t width = 4;
  bool own_mask = false;  // of any call
  for (const MaskRow& row : rows) {
    width = std::max(width, one_line(row.mask).size());
    if (row.saved) width = std::max(width, saved_name(row).size());
    own_mask |= row.quality.effective_density != row.quality.density;
  }
  const auto line = [&](const MaskRow& row, const std::string& mask, const MaskQuality& q) {
    fmt::print("{:4}  {:<{}}  {:8.4f} {} {} {} {}{} {}", row.name.head, mask, width, q.density,
               cell(q.recall), cell(q.recall_p05), cell(q.oracle_recall),
               own_mask ? cell(q.effective_oracle_recall) + " " : "", cell(q.output_error),
               cell(q.output_error_p95));
  };
  std::string before;
  for (const MaskRow& row : rows) {
    const HeadName& name = row.name;
    const std::string call =
        one_line(call_words(name.step, name.layer, name.branch,
                            fmt::format("{} batch {}", name.kind, name.batch), name.place));
    if (call != before) {
      fmt::print("{}{}\n", before.empty() ? "" : "\n", call);
      fmt::print("head  {:<{}}   density   recall      p05   oracle {} out.err  err.p95{}\n",
                 "mask", width, own_mask ? " eff.orc " : "", timed ? "     time" : "");
      before = call;
    }
    line(row, one_line(row.mask), row.quality);
    fmt::print("{}\n", timed ? fmt::format(" {}", cell(row.time_ratio)) : std::string());
    if (!row.saved) continue;
    line(row, saved_name(row), row.saved->quality);
    fmt::print("\n");
  }
}

}  // namespace attnscope
