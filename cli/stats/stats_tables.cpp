#include "cli/stats/stats_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/class_lines.h"
#include "cli/common/text_table.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

struct NumberColumn {
  const HeadField* field = nullptr;
  std::string heading;
  int decimals = 0;
};

/// The fields that have a heading. That of sinks in denominators is there where heads have them.
std::vector<NumberColumn> number_columns(std::span<const HeadRecord> records) {
  const bool sinks = std::any_of(records.begin(), records.end(), [](const HeadRecord& record) {
    return record.metrics.sink_share.value.has_value();
  });
  std::vector<NumberColumn> columns;
  for (const HeadField& field : head_fields()) {
    if (field.heading.empty() || (field.name == "sink_share" && !sinks)) continue;
    columns.push_back({&field, std::string(field.heading), field.decimals});
  }
  return columns;
}

std::vector<NumberColumn> curve_columns() {
  std::vector<NumberColumn> columns;
  for (const KeysForShare& point : keys_curve()) {
    columns.push_back({point.field, fmt::format("keys {:.0f}%", 100 * point.share), 1});
  }
  return columns;
}

/// "12", "12.attn2" where the slot is recorded, "12.cross" where the kind is another than the
/// record's, or the block's place.
std::string near_place(const HeadName& near, const HeadName& record) {
  if (near.place.unrecorded.layer || near.layer == kNoLayer) return near.place.text();
  std::string text = std::to_string(near.layer);
  if (!near.place.slot.empty()) return text + "." + near.place.slot;
  return near.kind == record.kind ? text : text + "." + near.kind;
}

/// "12.7 0.031, refiner.0.1 0.040": near_place(), the head, the divergence.
std::string near_text(const HeadRecord& record) {
  std::string text;
  for (const NearHead& near : record.nearest) {
    text += fmt::format("{}{}.{} {:.3f}", text.empty() ? "" : ", ",
                        one_line(near_place(near.name, record.name)), near.name.head, near.js);
  }
  return text.empty() ? "-" : text;
}

void print_numbers(std::span<const HeadRecord> records, const std::vector<NumberColumn>& columns,
                   bool near) {
  std::vector<HeadName> names;
  for (const HeadRecord& record : records) names.push_back(record.name);
  const HeadCells heads(names);
  TextTable table;
  heads.add_to(table);
  table.add_column("class", TextTable::Side::left, 8);
  for (const NumberColumn& column : columns) {
    table.add_column(column.heading, TextTable::Side::right, 8);
  }
  if (near) table.add_column("nearest (bits)", TextTable::Side::left);
  for (const HeadRecord& record : records) {
    std::vector<std::string> cells = heads.cells(record.name);
    cells.emplace_back(head_class_name(record.metrics.head_class));
    for (const NumberColumn& column : columns) {
      const auto value = number_of(record.metrics, *column.field);
      cells.push_back(value ? fmt::format("{:.{}f}", *value, column.decimals) : "-");
    }
    if (near) cells.push_back(near_text(record));
    table.add_line(std::move(cells));
  }
  fmt::print("{}", table.text());
}

}  // namespace

void print_stats_tables(std::span<const HeadRecord> records, const StatsOptions& options) {
  print_numbers(records, number_columns(records), options.nearest.has_value());
  if (options.curve) {
    fmt::print("\n");
    print_numbers(records, curve_columns(), false);
  }
  if (options.top) return;
  if (const ClassTable classes = class_table(records); classes.compares()) {
    fmt::print("\n");
    print_class_table(classes, false);
  }
}

}  // namespace attnscope
