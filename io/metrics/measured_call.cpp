#include "io/metrics/measured_call.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "io/export/format/describe_group.h"
#include "io/export/format/export_layout.h"
#include "io/metrics/head_variables.h"

namespace attnscope {
namespace {

void add_of_run(MetricGroup& group, std::string name, std::string long_name, MetricValues value) {
  group.add(std::move(name), std::move(long_name), std::move(value)).of_heads = false;
}

/// Adds the facts of a call in which runs may differ.
void add_facts(MetricGroup& group, const AttentionProblem& problem) {
  const CallDescription& call = group.call;
  const auto number = [](double value) { return std::vector<double>{value}; };
  const auto count = [](int64_t value) {
    return std::vector<int32_t>{static_cast<int32_t>(value)};
  };
  const auto text = [](const std::string& value) { return std::vector<std::string>{value}; };
  add_of_run(group, "timestep", "timestep of the step", number(call.timestep));
  if (call.scale.size() == 1) {
    add_of_run(group, "scale", "what q.k was multiplied by", call.scale);
  } else {
    std::vector<double> of_heads;
    for (size_t item = 0; item < group.batch.size(); ++item) {
      of_heads.insert(of_heads.end(), call.scale.begin(), call.scale.end());
    }
    group.add("head_scale", "what the head's q.k was multiplied by", std::move(of_heads));
  }
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

void add_pooled(MetricGroup& group, const MeasuredCall::Blocks& blocks) {
  for (const Pool pool : {Pool::max, Pool::mean}) {
    std::vector<float> values;
    for (const PooledMap& map : blocks.maps) {
      const std::vector<float>& more = map.values(pool);
      values.insert(values.end(), more.begin(), more.end());
    }
    MetricVariable& variable =
        group.add(fmt::format("level_{}/weights_{}", blocks.side, pool_name(pool)),
                  fmt::format("{} weight of a block", pool == Pool::max ? "largest" : "mean"),
                  std::move(values));
    variable.axes = {"query_block", "key_block"};
    variable.shape = {blocks.maps.front().rows, blocks.maps.front().cols};
  }
}

void add_masks(MetricGroup& group, const MeasuredCall& measured) {
  for (const MaskField& field : mask_fields()) {
    std::vector<double> values;
    for (const std::vector<MaskQuality>& masks : measured.mask_quality) {
      for (const MaskQuality& quality : masks) {
        values.push_back(
            number_of(quality, field).value_or(std::numeric_limits<double>::quiet_NaN()));
      }
    }
    MetricVariable& variable = group.add("mask_" + std::string(field.name),
                                         std::string(field.long_name), std::move(values));
    variable.axes = {"sparse_mask"};
    variable.shape = {std::ssize(measured.masks)};
    variable.labels = {{"sparse_mask", measured.masks}};
  }
}

}  // namespace

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
  group.add(std::string(kMeasured), "1 where the head was measured",
            std::vector<int32_t>(heads, 1));
  add_facts(group, *measured.call->problem);
  if (!measured.records.empty()) {
    std::vector<const HeadRecord*> records;
    for (const HeadRecord& record : measured.records) records.push_back(&record);
    add_head_variables(group, records);
  }
  for (const MeasuredCall::Blocks& blocks : measured.pooled) add_pooled(group, blocks);
  if (!measured.masks.empty()) add_masks(group, measured);
  return group;
}

}  // namespace attnscope
