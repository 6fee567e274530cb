#include "io/export/format/describe_group.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/export/format/export_layout.h"
#include "io/segments/segment_json.h"

namespace attnscope {
namespace {

AxisDescription describe_axis(const TokenGrid& tokens, std::vector<int32_t> indices,
                              const std::vector<int64_t>& batch) {
  AxisDescription axis;
  const std::pair<std::vector<int32_t>*, int64_t LatentCoord::*> parts[] = {
      {&axis.t, &LatentCoord::t}, {&axis.y, &LatentCoord::y}, {&axis.x, &LatentCoord::x}};
  for (const auto& [values, member] : parts) values->reserve(indices.size());
  for (const int32_t index : indices) {
    const std::optional<LatentCoord> coord = tokens.any_coord(index);
    for (const auto& [values, member] : parts) {
      values->push_back(coord ? static_cast<int32_t>((*coord).*member) : -1);
    }
  }
  axis.segments_by_item = std::any_of(batch.begin(), batch.end(), [&](int64_t item) {
    return !tokens.same_padding(item, batch.front());
  });
  for (const int64_t item : batch) {
    for (const int32_t index : indices) {
      axis.segments.push_back(static_cast<uint8_t>(tokens.segment(index, item)));
    }
    if (!axis.segments_by_item) break;
  }
  axis.named_segments = tokens.named_segments();
  axis.indices = std::move(indices);
  return axis;
}

/// One list, or one a batch item where the items' prompts differ; shorter lists are filled up with
/// empty strings.
void describe_text(const ExportGroup& group, GroupDescription& description) {
  const auto& recorded = group.call->tokens;
  if (recorded.empty()) return;
  std::vector<std::vector<std::string>> lists;
  for (const int64_t item : group.batch) {
    lists.push_back(recorded[recorded.size() == 1 ? 0 : static_cast<size_t>(item)]);
  }
  if (std::adjacent_find(lists.begin(), lists.end(), std::not_equal_to<>()) == lists.end()) {
    lists.resize(1);
  }
  size_t length = 0;
  for (const auto& list : lists) length = std::max(length, list.size());
  description.text_lists = std::ssize(lists);
  for (auto& list : lists) {
    list.resize(length);
    description.text.insert(description.text.end(), list.begin(), list.end());
  }
}

void describe_sinks(const ExportGroup& group, GroupDescription& description) {
  const Sinks& sinks = group.call->problem->sinks();
  if (sinks.is_none()) return;
  description.sinks_by_query = sinks.by_query();
  const int64_t rows = sinks.by_query() ? group.num_rows() : 1;
  for (const int64_t item : group.batch) {
    for (const int64_t head : group.heads) {
      for (int64_t i = 0; i < rows; ++i) {
        description.sinks.push_back(static_cast<float>(sinks.logit(item, head, group.row_at(i))));
      }
    }
  }
}

std::vector<double> scales_of(const AttentionProblem& problem, const std::vector<int64_t>& heads) {
  std::vector<double> each;
  for (const int64_t head : heads) each.push_back(problem.scale(head));
  return HeadScales(std::move(each)).each();
}

}  // namespace

CallDescription describe_call(const ExportGroup& group, const std::string& backend) {
  if (group.recorded_call) return *group.recorded_call;
  const CallEntry& call = *group.call;
  const AttentionProblem& problem = *call.problem;
  const bool cross = call.id.kind == CallKind::cross;
  CallDescription d;
  d.name = head_name(call.id, group.batch.front(), group.heads.front());
  d.name.branch = group.branch;
  if (call.timestep) d.timestep = *call.timestep;
  d.layer_name = call.layer_name;
  d.score = score_name(problem.score());
  d.mask = problem.mask().describe();
  if (!problem.sinks().is_none()) d.sinks = problem.sinks().describe();
  d.scale = scales_of(problem, group.heads);
  d.head_dim = problem.head_dim();
  d.head_offset = call.head_offset;
  d.grid = problem.query_tokens().grid_text();
  d.text = (cross ? problem.key_tokens() : problem.query_tokens()).text_text();
  if (problem.query_tokens().has_map()) d.queries = segments_json(problem.query_tokens()).dump();
  if (problem.key_tokens().has_map()) d.keys = segments_json(problem.key_tokens()).dump();
  d.model = call.model;
  d.prompt = call.prompt;
  d.q_dtype = dtype_name(call.recorded_dtype());
  d.q_state = call.q_state;
  d.backend = backend;
  d.num_queries = problem.num_queries();
  return d;
}

GroupDescription describe_group(const ExportGroup& group) {
  if (group.recorded) return group.recorded();
  const AttentionProblem& problem = *group.call->problem;
  GroupDescription description;
  std::vector<int32_t> rows, keys;
  for (int64_t i = 0; i < group.num_rows(); ++i) {
    rows.push_back(static_cast<int32_t>(group.row_at(i)));
  }
  for (int64_t j = group.keys.begin; j < group.keys.end; ++j) {
    keys.push_back(static_cast<int32_t>(j));
  }
  description.query = describe_axis(problem.query_tokens(), std::move(rows), group.batch);
  description.key = describe_axis(problem.key_tokens(), std::move(keys), group.batch);
  describe_text(group, description);
  describe_sinks(group, description);
  return description;
}

}  // namespace attnscope
