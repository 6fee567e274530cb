#include "core/patterns/build_mask.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/block_causal.h"
#include "core/mask/mask_union.h"
#include "core/mask/neighbourhood.h"
#include "core/patterns/block_scores.h"
#include "core/patterns/block_selectors.h"
#include "core/patterns/mask_grid.h"
#include "core/patterns/mask_lines.h"
#include "core/patterns/pooled_blocks.h"
#include "core/problem/sampled_rows.h"
#include "core/stream/row_stream.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

void check_grid(const MaskPattern& pattern, const AttentionProblem& problem) {
  const auto refuse = [&](const std::string& what) {
    throw usage_error("mask " + pattern.text + ": " + problem.name() + ": " + what);
  };
  if (problem.id().kind == CallKind::cross) {
    refuse("is cross attention, whose keys have no place on the token grid");
  }
  if (!problem.same_tokens()) {
    refuse("has other keys than queries (those of a cache): places on a grid do not say which");
  }
  if (!problem.query_tokens().has_grid() || !problem.key_tokens().has_grid()) {
    refuse("has no token grid; give --grid TxHxW");
  }
}

/// Where text stands: of a token map all of its segments of text.
std::vector<IndexRange> text_ranges(const TokenGrid& tokens) {
  std::vector<IndexRange> ranges;
  for (const TokenSegment& segment : tokens.segments()) {
    if (segment.modality == Modality::text) ranges.push_back(segment.tokens);
  }
  if (!tokens.has_map() && !tokens.text_range().empty()) ranges.push_back(tokens.text_range());
  return ranges;
}

/// The rest of `ranges` without `taken`, both ascending and disjoint.
std::vector<IndexRange> without(const std::vector<IndexRange>& ranges,
                                const std::vector<IndexRange>& taken) {
  std::vector<IndexRange> left;
  for (IndexRange range : ranges) {
    for (const IndexRange hole : taken) {
      if (intersect(range, hole).empty()) continue;
      if (range.begin < hole.begin) left.push_back({range.begin, hole.begin});
      range.begin = hole.end;
    }
    if (range.begin < range.end) left.push_back(range);
  }
  return left;
}

/// Text, and all else that is not video, beside what the pattern keeps.
Mask with_text(const MaskPattern& pattern, const AttentionProblem& problem, const Mask& mask) {
  const TokenGrid& queries = problem.query_tokens();
  const TokenGrid& keys = problem.key_tokens();
  // Where all keys are text (cross attention, language models) keeping them would keep everything.
  if (keys.video_range().empty()) return mask;
  const std::vector<IndexRange> rows = queries.outside_video(), columns = keys.outside_video();
  if (rows.empty() && columns.empty()) return mask;
  const std::string name = queries.has_map() || keys.has_map() ? "all but video" : "text";
  if (pattern.text_rule == TextRule::keep)
    return mask_union({ranges_mask(rows, columns, name), mask});
  const std::vector<IndexRange> text = text_ranges(keys);
  // Blocks and lines may hold text keys; dropped means dropped.
  const Mask kept = mask & ranges_mask({}, without({{0, keys.tokens()}}, text), "all but text");
  return mask_union({ranges_mask(rows, without(columns, text), name), kept});
}

Mask build_lines(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                 int64_t head, const MaskResources& resources) {
  const std::vector<int64_t> rows = sampled_rows(problem.num_queries(), pattern.rows);
  const HeadTask task{&problem, batch, head, {}, rows, {0, problem.num_keys()}};
  const RowStream stream = plan_row_stream({&task, 1}, resources.backend, resources.budget,
                                           LineCollector::bytes(problem));
  LineCollector lines(problem, stream.request, resources.budget);
  StreamControl control;
  control.stop = resources.stop;
  StreamingEngine engine(resources.backend, resources.budget);
  if (!engine.run({&task, 1}, stream.plan, lines, control)) {
    throw Error(ErrorCode::interrupted, "interrupted");
  }
  return line_mask(lines.top_columns(pattern.vertical), lines.top_diagonals(pattern.slash));
}

Mask build_blocks(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                  int64_t head, const MaskResources& resources) {
  const MemoryReservation reserved = resources.budget.reserve(
      pooled_scores_bytes(problem, pattern.block), "the blocks of mask " + pattern.text);
  const BlockScores scores = pooled_scores(problem, batch, head, pattern.block, resources.stop);
  if (pattern.kind == PatternKind::topp) return Mask::blocks(keep_block_mass(scores, pattern.p));
  const int64_t share = share_up(pattern.keep, scores.key_blocks);
  const int64_t count = pattern.blocks > 0 ? pattern.blocks : std::max<int64_t>(share, 1);
  return Mask::blocks(keep_top_blocks(scores, count));
}

}  // namespace

int64_t comparable_band(const TokenGrid& grid) {
  int64_t band = 0;
  const auto fits = [&](int64_t b) {
    return grid.frames() * (2 * b + 1) * (2 * b + 1) <= grid.height() * grid.width();
  };
  while (fits(band + 1)) ++band;
  return band;
}

int64_t mask_bytes(const MaskPattern& pattern, const AttentionProblem& problem) {
  if (pattern.is_selector()) return selector_bytes(pattern, problem).kept;
  switch (pattern.kind) {
    case PatternKind::vertical_slash: {
      const int64_t lines = std::min(pattern.vertical, problem.num_keys()) +
                            std::min(pattern.slash, problem.num_queries() + problem.num_keys());
      return lines * 16;
    }
    case PatternKind::topk:
    case PatternKind::topp: {
      const int64_t rows = ceil_div(problem.num_queries(), pattern.block);
      const int64_t words = ceil_div(ceil_div(problem.num_keys(), pattern.block), 64);
      const auto bytes = checked_mul(rows, words * 8);
      if (!bytes) throw Error(ErrorCode::resource, "the blocks are too many for any memory");
      return *bytes;
    }
    default:
      return 0;
  }
}

int64_t least_build_bytes(const MaskPattern& pattern, const AttentionProblem& problem,
                          const TileBackend& backend) {
  if (pattern.is_selector()) return least_selector_bytes(pattern, problem, backend);
  switch (pattern.kind) {
    case PatternKind::vertical_slash: {
      const std::vector<int64_t> rows = sampled_rows(problem.num_queries(), pattern.rows);
      const HeadTask task{&problem, 0, 0, {}, rows, {0, problem.num_keys()}};
      return least_row_stream_bytes({&task, 1}, backend, LineCollector::bytes(problem));
    }
    case PatternKind::topk:
    case PatternKind::topp:
      return pooled_scores_bytes(problem, pattern.block);
    default:
      return 0;
  }
}

Mask build_mask(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                int64_t head, const MaskResources& resources) {
  if (pattern.is_selector()) {
    const MemoryReservation reserved = resources.budget.reserve(
        selector_bytes(pattern, problem).meanwhile, "the blocks of mask " + pattern.text);
    return selected_blocks(
        pattern, {problem, batch, head, resources.backend, resources.budget, resources.stop},
        resources.scores);
  }
  const TokenGrid& grid = problem.key_tokens();
  const auto on_grid = [&](auto make) {
    check_grid(pattern, problem);
    return with_text(pattern, problem, make());
  };
  switch (pattern.kind) {
    case PatternKind::none:
      return {};
    case PatternKind::causal:
      return Mask::causal();
    case PatternKind::window:
      return Mask::window(pattern.reach);
    case PatternKind::block_causal:
      return block_causal_mask(pattern.block);
    case PatternKind::spatial:
      return on_grid([&] { return spatial_mask(grid, pattern.frames); });
    case PatternKind::temporal:
      return on_grid([&] {
        return temporal_mask(grid, pattern.band < 0 ? comparable_band(grid) : pattern.band);
      });
    case PatternKind::tiles:
      return on_grid([&] { return tile_mask(grid, pattern.tile, pattern.window); });
    case PatternKind::natten:
      return on_grid([&] {
        return neighbourhood_mask(pattern.neighbourhood,
                                  {grid.frames(), grid.height(), grid.width()},
                                  grid.video_range().begin);
      });
    case PatternKind::radial:
      return on_grid([&] { return radial_mask(grid, pattern.block, pattern.decay, pattern.sink); });
    case PatternKind::vertical_slash:
      return with_text(pattern, problem, build_lines(pattern, problem, batch, head, resources));
    case PatternKind::topk:
    case PatternKind::topp:
      return with_text(pattern, problem, build_blocks(pattern, problem, batch, head, resources));
    default:
      return {};
  }
}

}  // namespace attnscope
