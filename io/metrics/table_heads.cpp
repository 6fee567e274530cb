#include "io/metrics/table_heads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace attnscope {
namespace {

using HeadLines = std::vector<const NumberTable::Line*>;

void set_number(HeadMetrics& metrics, const HeadField& field, double value) {
  std::visit(
      [&](auto member) {
        auto& place = metrics.*member;
        using Place = std::remove_reference_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, Estimate>) {
          place.value = value;
        } else if constexpr (std::is_same_v<Place, std::optional<double>>) {
          place = value;
        } else {
          place = static_cast<int64_t>(value);
        }
      },
      field.member);
}

std::string most_common(const std::map<std::string, int64_t>& classes) {
  std::string best;
  int64_t most = 0;
  for (const auto& [name, count] : classes) {
    if (count > most) best = name;
    most = std::max(most, count);
  }
  return best;
}

/// The mean of a number over the lines that define it.
double mean_of(const HeadLines& lines, size_t metric) {
  double sum = 0;
  int64_t count = 0;
  for (const NumberTable::Line* line : lines) {
    if (std::isnan(line->values[metric])) continue;
    sum += line->values[metric];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TableHeads mean_heads(const NumberTable& table, std::span<const HeadName> names) {
  std::map<HeadName, HeadLines> lines;
  for (const NumberTable::Line& line : table.lines) lines[line.head].push_back(&line);
  TableHeads found;
  found.values.resize(table.metrics.size());
  for (const HeadName& name : names) {
    const HeadLines& own = lines[name];
    std::map<std::string, int64_t> classes;
    for (const NumberTable::Line* line : own) {
      if (!line->head_class.empty()) ++classes[line->head_class];
    }
    HeadRecord record;
    record.name = name;
    for (size_t m = 0; m < table.metrics.size(); ++m) {
      const double mean = mean_of(own, m);
      found.values[m].push_back(mean);
      const HeadField* const field = find_head_field(table.metrics[m]);
      if (field != nullptr && !std::isnan(mean)) set_number(record.metrics, *field, mean);
    }
    const std::string head_class = most_common(classes);
    record.metrics.head_class = parse_head_class(head_class).value_or(HeadClass::undefined);
    found.classes.push_back(head_class);
    found.records.push_back(std::move(record));
  }
  return found;
}

}  // namespace attnscope
