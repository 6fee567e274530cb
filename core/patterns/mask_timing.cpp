#include "core/patterns/mask_timing.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/mask_cover.h"
#include "core/problem/attention_problem.h"

namespace attnscope {
namespace {

constexpr int64_t kPanelRows = 96;
constexpr int64_t kPanels = 8;

/// The rows of the panels, panel by panel.
std::vector<IndexRange> spread_panels(int64_t rows) {
  const int64_t height = std::min(kPanelRows, rows);
  const int64_t count = std::min(kPanels, rows / height);
  std::vector<IndexRange> panels;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = (2 * i + 1) * (rows - height) / (2 * count);
    panels.push_back({begin, begin + height});
  }
  return panels;
}

/// The blocks of the panels' rows that the mask keeps anything of; other rows are left empty.
BlockMask cover_panels(const HeadTask& head, const Mask& mask,
                       const std::vector<IndexRange>& panels, int64_t block) {
  const int64_t rows = head.problem->num_queries();
  const int64_t keys = head.problem->num_keys();
  BlockMask cover{1, ceil_div(rows, block), ceil_div(keys, block), block, block, {}};
  cover.bits.resize(static_cast<size_t>(cover.query_blocks * cover.key_blocks));
  for (const IndexRange& panel : panels) {
    for (int64_t b = panel.begin / block; b <= (panel.end - 1) / block; ++b) {
      const IndexRange queries{b * block, std::min((b + 1) * block, rows)};
      const auto kept = kept_blocks(mask, head.batch, head.head, queries, keys, block);
      std::copy(kept.begin(), kept.end(), cover.bits.begin() + b * cover.key_blocks);
    }
  }
  return cover;
}

double time_panels(const AttentionProblem& problem, const HeadTask& head,
                   const std::vector<IndexRange>& panels, const TileBackend& backend,
                   MemoryBudget& budget) {
  const int64_t height = panels.front().size();
  const auto cost = backend.bind_cost(problem);
  const int64_t workspace_bytes = backend.workspace_bytes(problem, height, 0, false);
  const int64_t row_bytes = problem.q().row_bytes();
  const MemoryReservation reserved = budget.reserve(
      cost.resident + cost.transient + workspace_bytes + height * (row_bytes + 32), "the timing");
  const auto bound = backend.bind(problem, head.batch, head.head);
  std::vector<std::byte> workspace(static_cast<size_t>(workspace_bytes) + 64);
  void* aligned = workspace.data();
  size_t space = workspace.size();
  std::align(64, static_cast<size_t>(workspace_bytes), aligned, space);
  std::vector<std::byte> queries(static_cast<size_t>(height * row_bytes));
  std::vector<int64_t> index(static_cast<size_t>(height));
  std::vector<RowNorm> norms(static_cast<size_t>(height));
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 2; ++run) {
    double seconds = 0;
    for (const IndexRange& panel : panels) {
      problem.q().read_rows(head.batch, head.head, panel, queries.data());
      std::iota(index.begin(), index.end(), panel.begin);
      const auto start = std::chrono::steady_clock::now();
      bound->row_norms({queries.data(), index}, norms,
                       {static_cast<std::byte*>(aligned), static_cast<size_t>(workspace_bytes)});
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    best = std::min(best, seconds);
  }
  return best;
}

}  // namespace

double mask_time_ratio(const HeadTask& head, const Mask& mask, int64_t block,
                       const TileBackend& backend, MemoryBudget& budget) {
  const AttentionProblem& plain = *head.problem;
  const std::vector<IndexRange> panels = spread_panels(plain.num_queries());
  const auto blocks =
      checked_mul(ceil_div(plain.num_queries(), block), ceil_div(plain.num_keys(), block) * 2);
  if (!blocks) throw Error(ErrorCode::resource, "the timed blocks are too many for any memory");
  const MemoryReservation reserved = budget.reserve(*blocks, "the timed blocks");
  const AttentionProblem masked =
      plain.with_mask(Mask::blocks(cover_panels(head, mask, panels, block)));
  const double with = time_panels(masked, head, panels, backend, budget);
  return with / time_panels(plain, head, panels, backend, budget);
}

}  // namespace attnscope
