#include "io/metrics/head_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace attnscope {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

template <typename Value, typename Of>
std::vector<Value> of_records(HeadRecords records, Of of) {
  std::vector<Value> values;
  values.reserve(records.size());
  for (const HeadRecord* const record : records) values.push_back(of(*record));
  return values;
}

void add_arrays(MetricGroup& group, HeadRecords records) {
  const std::vector<HeadArrayValues>& arrays = records.front()->arrays;
  std::vector<size_t> places(arrays.size());
  std::iota(places.begin(), places.end(), 0);
  std::sort(places.begin(), places.end(),
            [&](size_t a, size_t b) { return arrays[a].which < arrays[b].which; });
  for (const size_t place : places) {
    const HeadArrayInfo& info = info_of(arrays[place].which);
    std::vector<double> values;
    for (const HeadRecord* const record : records) {
      const std::vector<double>& more = record->arrays[place].values;
      values.insert(values.end(), more.begin(), more.end());
    }
    MetricVariable& variable =
        group.add(std::string(info.name), std::string(info.long_name), std::move(values));
    variable.axes.assign(info.axes.begin(), info.axes.end());
    variable.shape = arrays[place].shape;
  }
}

void add_fields(MetricGroup& group, HeadRecords records) {
  for (const HeadField& field : head_fields()) {
    group.add(std::string(field.name), std::string(field.long_name),
              of_records<double>(records, [&](const HeadRecord& record) {
                return number_of(record.metrics, field).value_or(kUndefined);
              }));
    const auto error = [&](const HeadRecord& record) {
      return standard_error_of(record.metrics, field);
    };
    if (std::none_of(records.begin(), records.end(),
                     [&](const HeadRecord* record) { return error(*record).has_value(); })) {
      continue;
    }
    group.add(field.error_name(), fmt::format("standard error of {}", field.name),
              of_records<double>(records, [&](const HeadRecord& record) {
                return error(record).value_or(kUndefined);
              }));
  }
}

/// sink_keys and sink_masses, [rank]; −1 and NaN where there are fewer keys.
void add_sinks(MetricGroup& group, HeadRecords records) {
  std::vector<int32_t> keys;
  std::vector<double> masses;
  for (const HeadRecord* const record : records) {
    const std::vector<Sink>& sinks = record->metrics.sinks;
    for (size_t i = 0; i < kMostSinks; ++i) {
      keys.push_back(i < sinks.size() ? static_cast<int32_t>(sinks[i].key) : -1);
      masses.push_back(i < sinks.size() ? sinks[i].mass : kUndefined);
    }
  }
  const auto add = [&](std::string name, std::string long_name, MetricValues values) {
    MetricVariable& variable = group.add(std::move(name), std::move(long_name), std::move(values));
    variable.axes = {"sink_rank"};
    variable.shape = {static_cast<int64_t>(kMostSinks)};
  };
  add("sink_keys", "keys of the largest columns", std::move(keys));
  add("sink_masses", "mean over rows of their mass", std::move(masses));
}

/// [from_segment, to_segment], where a token map was stated.
void add_segment_mass(MetricGroup& group, HeadRecords records) {
  const SegmentMasses& first = records.front()->metrics.segment_mass;
  if (first.from.empty()) return;
  std::vector<double> values;
  for (const HeadRecord* const record : records) {
    for (const auto& mass : record->metrics.segment_mass.mass) {
      values.push_back(mass.value_or(kUndefined));
    }
  }
  MetricVariable& variable =
      group.add("segment_mass", "mean over the rows of a segment of the mass on a segment",
                std::move(values));
  variable.axes = {"from_segment", "to_segment"};
  variable.shape = {std::ssize(first.from), std::ssize(first.to)};
  variable.labels = {{"from_segment", first.from}, {"to_segment", first.to}};
}

}  // namespace

void add_head_variables(MetricGroup& group, HeadRecords records) {
  add_arrays(group, records);
  group.add("class", "what kind of head it is",
            of_records<std::string>(records, [](const HeadRecord& record) {
              return std::string(head_class_name(record.metrics.head_class));
            }));
  add_fields(group, records);
  add_sinks(group, records);
  add_segment_mass(group, records);
}

}  // namespace attnscope
