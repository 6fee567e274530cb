#include "io/metrics/measured_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "io/export/format/describe_group.h"
#include "io/export/format/export_layout.h"

namespace attnscope {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

MetricVariable& add_variable(MetricGroup& group, std::string name, std::string long_name,
                             MetricValues values) {
  MetricVariable& variable = group.variables.emplace_back();
  variable.name = std::move(name);
  variable.long_name = std::move(long_name);
  variable.values = std::move(values);
  return variable;
}

void add_of_run(MetricGroup& group, std::string name, std::string long_name, MetricValues value) {
  add_variable(group, std::move(name), std::move(long_name), std::move(value)).of_heads = false;
}

/// What runs of one call may have of their own.
void add_facts(MetricGroup& group, const AttentionProblem& problem) {
  const CallDescription& call = group.call;
  const auto number = [](double value) { return std::vector<double>{value}; };
  const auto count = [](int64_t value) {
    return std::vector<int32_t>{static_cast<int32_t>(value)};
  };
  const auto text = [](const std::string& value) { return std::vector<std::string>{value}; };
  add_of_run(group, "timestep", "timestep of the step", number(call.timestep));
  add_of_run(group, "scale", "what q.k was multiplied by", number(call.scale));
  add_of_run(group, "num_queries", "queries of the call", count(problem.num_queries()));
  add_of_run(group, "num_keys", "keys of the call", count(problem.num_keys()));
  add_of_run(group, "text", "text tokens of the sequence", text(call.text));
  add_of_run(group, "mask", "mask of the call", text(call.mask));
  add_of_run(group, "q_dtype", "type of q", text(call.q_dtype));
  add_of_run(group, "backend", "what computed the numbers", text(call.backend));
  if (call.queries) {
    add_of_run(group, "query_segments", "segments of the queries, JSON", text(*call.queries));
  }
  if (call.keys) {
    add_of_run(group, "key_segments", "segments of the keys, JSON", text(*call.keys));
  }
}

template <typename Value, typename Of>
std::vector<Value> of_records(const std::vector<HeadRecord>& records, Of of) {
  std::vector<Value> values;
  values.reserve(records.size());
  for (const HeadRecord& record : records) values.push_back(of(record));
  return values;
}

void add_fields(MetricGroup& group, const std::vector<HeadRecord>& records) {
  for (const HeadField& field : head_fields()) {
    add_variable(group, std::string(field.name), std::string(field.long_name),
                 of_records<double>(records, [&](const HeadRecord& record) {
                   return number_of(record.metrics, field).value_or(kNoNumber);
                 }));
    const auto error = [&](const HeadRecord& record) {
      return standard_error_of(record.metrics, field);
    };
    if (std::any_of(records.begin(), records.end(),
                    [&](const HeadRecord& record) { return error(record).has_value(); })) {
      add_variable(group, field.error_name(), fmt::format("standard error of {}", field.name),
                   of_records<double>(records, [&](const HeadRecord& record) {
                     return error(record).value_or(kNoNumber);
                   }));
    }
  }
}

void add_sinks(MetricGroup& group, const std::vector<HeadRecord>& records) {
  std::vector<int32_t> keys;
  std::vector<double> masses;
  for (const HeadRecord& record : records) {
    const std::vector<Sink>& sinks = record.metrics.sinks;
    for (size_t i = 0; i < kMostSinks; ++i) {
      keys.push_back(i < sinks.size() ? static_cast<int32_t>(sinks[i].key) : -1);
      masses.push_back(i < sinks.size() ? sinks[i].mass : kNoNumber);
    }
  }
  for (const bool mass : {false, true}) {
    MetricVariable& variable =
        mass ? add_variable(group, "sink_masses", "mean over rows of their mass", std::move(masses))
             : add_variable(group, "sink_keys", "keys of the largest columns", std::move(keys));
    variable.axes = {"sink_rank"};
    variable.shape = {static_cast<int64_t>(kMostSinks)};
  }
}

void add_segment_mass(MetricGroup& group, const std::vector<HeadRecord>& records) {
  const SegmentMasses& first = records.front().metrics.segment_mass;
  if (first.from.empty()) return;
  std::vector<double> values;
  for (const HeadRecord& record : records) {
    for (const auto& mass : record.metrics.segment_mass.mass) {
      values.push_back(mass.value_or(kNoNumber));
    }
  }
  MetricVariable& variable =
      add_variable(group, "segment_mass",
                   "mean over the rows of a segment of the mass on a segment", std::move(values));
  variable.axes = {"from_segment", "to_segment"};
  variable.shape = {std::ssize(first.from), std::ssize(first.to)};
  variable.labels = {{"from_segment", first.from}, {"to_segment", first.to}};
}

void add_arrays(MetricGroup& group, const std::vector<HeadRecord>& records) {
  for (size_t i = 0; i < records.front().arrays.size(); ++i) {
    const HeadArrayValues& first = records.front().arrays[i];
    const HeadArrayInfo& info = info_of(first.which);
    std::vector<double> values;
    for (const HeadRecord& record : records) {
      const std::vector<double>& more = record.arrays[i].values;
      values.insert(values.end(), more.begin(), more.end());
    }
    MetricVariable& variable =
        add_variable(group, std::string(info.name), std::string(info.long_name), std::move(values));
    variable.axes.assign(info.axes.begin(), info.axes.end());
    variable.shape = first.shape;
  }
}

void add_stats(MetricGroup& group, const std::vector<HeadRecord>& records) {
  add_arrays(group, records);
  add_variable(group, "class", "what kind of head it is",
               of_records<std::string>(records, [](const HeadRecord& record) {
                 return std::string(head_class_name(record.metrics.head_class));
               }));
  add_fields(group, records);
  add_sinks(group, records);
  add_segment_mass(group, records);
}

void add_pooled(MetricGroup& group, const MeasuredCall::Blocks& blocks) {
  for (const Pool pool : {Pool::max, Pool::mean}) {
    std::vector<float> values;
    for (const PooledMap& map : blocks.maps) {
      const std::vector<float>& more = map.values(pool);
      values.insert(values.end(), more.begin(), more.end());
    }
    MetricVariable& variable =
        add_variable(group, fmt::format("level_{}/weights_{}", blocks.side, pool_name(pool)),
                     fmt::format("{} weight of a block", pool == Pool::max ? "largest" : "mean"),
                     std::move(values));
    variable.axes = {"query_block", "key_block"};
    variable.shape = {blocks.maps.front().rows, blocks.maps.front().cols};
  }
}

void add_masks(MetricGroup& group, const MeasuredCall& measured) {
  for (const MaskNumber& number : mask_numbers()) {
    std::vector<double> values;
    for (const std::vector<MaskQuality>& masks : measured.mask_quality) {
      for (const MaskQuality& quality : masks) values.push_back(number.of(quality));
    }
    MetricVariable& variable = add_variable(group, "mask_" + std::string(number.name),
                                            std::string(number.long_name), std::move(values));
    variable.axes = {"sparse_mask"};
    variable.shape = {std::ssize(measured.masks)};
    variable.labels = {{"sparse_mask", measured.masks}};
  }
}

double or_nan(const std::optional<double>& value) { return value.value_or(kNoNumber); }

}  // namespace

std::span<const MaskNumber> mask_numbers() {
  using Q = MaskQuality;
  static constexpr std::array<MaskNumber, 14> kList{{
      {"density", "entries kept, of all", [](const Q& q) { return q.density; }},
      {"effective_density", "those that the call's own mask keeps, too, of all",
       [](const Q& q) { return q.effective_density; }},
      {"recall", "mean over rows of the mass that is kept",
       [](const Q& q) { return or_nan(q.recall); }},
      {"recall_p05", "its 5 % quantile over rows", [](const Q& q) { return or_nan(q.recall_p05); }},
      {"recall_sampled", "the same mean over the rows of the oracle",
       [](const Q& q) { return or_nan(q.recall_sampled); }},
      {"oracle_recall", "the best at as many entries a row",
       [](const Q& q) { return or_nan(q.oracle_recall); }},
      {"oracle_stderr", "standard error of oracle_recall",
       [](const Q& q) { return or_nan(q.oracle_stderr); }},
      {"effective_oracle_recall",
       "the best at as many entries a row as the mask and the call's own mask keep together",
       [](const Q& q) { return or_nan(q.effective_oracle_recall); }},
      {"output_error", "|O_M - O| / |O| over the rows together",
       [](const Q& q) { return or_nan(q.output_error); }},
      {"output_error_mean", "mean over rows of their own ratio",
       [](const Q& q) { return or_nan(q.output_error_mean); }},
      {"output_error_p95", "its 95 % quantile",
       [](const Q& q) { return or_nan(q.output_error_p95); }},
      {"masked_rows", "rows of which the call's own mask leaves nothing",
       [](const Q& q) { return static_cast<double>(q.masked_rows); }},
      {"empty_rows", "other rows of which the mask leaves nothing",
       [](const Q& q) { return static_cast<double>(q.empty_rows); }},
      {"sampled_rows", "rows behind oracle and output errors",
       [](const Q& q) { return static_cast<double>(q.sampled_rows); }},
  }};
  return kList;
}

MetricGroup group_of_measured(const MeasuredCall& measured) {
  ExportGroup layout;
  layout.call = measured.call;
  layout.branch = measured.branch;
  layout.batch = measured.batch;
  layout.heads = measured.heads;
  MetricGroup group;
  group.call = describe_call(layout, measured.backend);
  group.batch = measured.batch;
  for (const int64_t head : measured.heads) group.heads.push_back(head + group.call.head_offset);
  group.call.head_offset = 0;
  const size_t heads = measured.batch.size() * measured.heads.size();
  add_variable(group, std::string(kMeasured), "1 where the head was measured",
               std::vector<int32_t>(heads, 1));
  add_facts(group, *measured.call->problem);
  if (!measured.records.empty()) add_stats(group, measured.records);
  for (const MeasuredCall::Blocks& blocks : measured.pooled) add_pooled(group, blocks);
  if (!measured.masks.empty()) add_masks(group, measured);
  return group;
}

}  // namespace attnscope
