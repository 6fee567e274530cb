#include "cli/map_reductions.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "cli/cell_sums.h"
#include "core/checked_math.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kMetrics{"text_mass", "video_mass", "same_frame_mass"};

std::vector<int64_t> block_edges(int64_t count, int64_t block) {
  std::vector<int64_t> edges;
  for (int64_t begin = 0; begin < count; begin += block) edges.push_back(begin);
  edges.push_back(count);
  return edges;
}

/// The parts of a sequence, in its order.
struct Segments {
  std::vector<int64_t> edges;
  std::vector<int64_t> names;  ///< frame, or SegmentMass::kText
};

Segments segments_of(const TokenGrid& tokens) {
  Segments segments;
  const auto add_text = [&] {
    if (tokens.text_range().empty()) return;
    segments.edges.push_back(tokens.text_range().begin);
    segments.names.push_back(SegmentMass::kText);
  };
  const bool text_last = tokens.text_range().begin > tokens.video_range().begin;
  if (!text_last) add_text();
  const IndexRange video = tokens.video_range();
  const int64_t frames = tokens.has_grid() ? tokens.frames() : video.empty() ? 0 : 1;
  for (int64_t t = 0; t < frames; ++t) {
    segments.edges.push_back(video.begin + t * (video.size() / frames));
    segments.names.push_back(t);
  }
  if (text_last) add_text();
  segments.edges.push_back(tokens.tokens());
  return segments;
}

PooledMap pooled_map(const CellEdges& edges, int64_t block, const HeadTask& task,
                     const CellTotals& totals) {
  PooledMap map{
      block,      block, task.rows.begin, task.keys.begin, edges.cell_rows(), edges.cell_cols(),
      totals.max, {}};
  map.mean.reserve(totals.sum.size());
  for (size_t i = 0, at = 0; i + 1 < edges.rows.size(); ++i) {
    for (size_t j = 0; j + 1 < edges.keys.size(); ++j, ++at) {
      const auto entries = static_cast<double>((edges.rows[i + 1] - edges.rows[i]) *
                                               (edges.keys[j + 1] - edges.keys[j]));
      map.mean.push_back(static_cast<float>(totals.sum[at] / entries));
    }
  }
  return map;
}

SegmentMass segment_mass(const HeadTask& task, const CellTotals& totals) {
  const TokenGrid& queries = task.problem->query_tokens();
  const TokenGrid& keys = task.problem->key_tokens();
  SegmentMass result{segments_of(queries).names,
                     segments_of(keys).names,
                     {},
                     totals.live_rows,
                     queries.has_grid() && queries == keys};
  for (size_t i = 0, at = 0; i < result.query_segments.size(); ++i) {
    const auto rows = static_cast<double>(totals.live_rows[i]);
    for (size_t j = 0; j < result.key_segments.size(); ++j, ++at) {
      result.mass.push_back(rows > 0 ? totals.sum[at] / rows
                                     : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return result;
}

/// Cuts tasks alike that belong to one problem and crop, and streams them.
template <typename MakeEdges, typename Take>
void sum_cells(std::span<const HeadTask> tasks, StreamRun& run, int64_t bytes_per_cell,
               const MakeEdges& make_edges, const Take& take) {
  std::map<const AttentionProblem*, CellEdges> by_problem;
  std::vector<const CellEdges*> edges;
  for (const HeadTask& task : tasks) {
    auto [place, is_new] = by_problem.try_emplace(task.problem);
    if (is_new) place->second = make_edges(task);
    edges.push_back(&place->second);
  }
  CellSums sums(tasks, edges, run.workers(), bytes_per_cell, run.budget());
  run.run(tasks, sums);
  if (run.is_plan_only()) return;
  for (size_t i = 0; i < tasks.size(); ++i) {
    take(tasks[i], *edges[i], sums.take(static_cast<int64_t>(i)));
  }
}

}  // namespace

int64_t fitting_block(std::span<const HeadTask> tasks, int64_t cells) {
  int64_t longest = 1;
  for (const HeadTask& task : tasks) {
    longest = std::max({longest, task.num_rows(), task.keys.size()});
  }
  int64_t block = 1;
  while (ceil_div(longest, block) > cells) block *= 2;
  return block;
}

std::vector<PooledMap> pooled_maps(std::span<const HeadTask> tasks, int64_t block, StreamRun& run) {
  std::vector<PooledMap> maps;
  sum_cells(
      tasks, run, 2 * sizeof(float),
      [&](const HeadTask& task) {
        return CellEdges{block_edges(task.num_rows(), block), block_edges(task.keys.size(), block)};
      },
      [&](const HeadTask& task, const CellEdges& edges, const CellTotals& totals) {
        maps.push_back(pooled_map(edges, block, task, totals));
      });
  return maps;
}

std::vector<SegmentMass> segment_masses(std::span<const HeadTask> tasks, StreamRun& run) {
  std::vector<SegmentMass> masses;
  sum_cells(
      tasks, run, sizeof(double),
      [&](const HeadTask& task) {
        return CellEdges{segments_of(task.problem->query_tokens()).edges,
                         segments_of(task.problem->key_tokens()).edges};
      },
      [&](const HeadTask& task, const CellEdges&, const CellTotals& totals) {
        masses.push_back(segment_mass(task, totals));
      });
  return masses;
}

std::vector<OffsetKernel> offset_kernels(std::span<const HeadTask> tasks, StreamRun& run) {
  OffsetSums sums(tasks, run.workers(), run.budget());
  run.run(tasks, sums);
  std::vector<OffsetKernel> kernels;
  if (run.is_plan_only()) return kernels;
  for (size_t i = 0; i < tasks.size(); ++i) kernels.push_back(sums.take(static_cast<int64_t>(i)));
  return kernels;
}

std::span<const std::string_view> segment_metric_names() { return kMetrics; }

std::optional<double> segment_metric(std::string_view name, const SegmentMass& mass) {
  const bool wants_text = name == kMetrics[0];
  const bool own_frame = name == kMetrics[2];
  const bool any_key =
      std::any_of(mass.key_segments.begin(), mass.key_segments.end(),
                  [&](int64_t key) { return (key == SegmentMass::kText) == wants_text; });
  if (!any_key || (own_frame && !mass.same_grid)) return std::nullopt;
  double sum = 0;
  int64_t rows = 0;
  for (size_t i = 0; i < mass.query_segments.size(); ++i) {
    if (mass.query_segments[i] == SegmentMass::kText || mass.live_rows[i] == 0) continue;
    rows += mass.live_rows[i];
    for (size_t j = 0; j < mass.key_segments.size(); ++j) {
      const int64_t key = mass.key_segments[j];
      const bool counts =
          own_frame ? key == mass.query_segments[i] : (key == SegmentMass::kText) == wants_text;
      if (counts) sum += mass.at(i, j) * static_cast<double>(mass.live_rows[i]);
    }
  }
  if (rows == 0) return std::nullopt;
  return sum / static_cast<double>(rows);
}

}  // namespace attnscope
