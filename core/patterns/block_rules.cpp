#include "core/patterns/block_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/patterns/block_scores.h"
#include "core/patterns/token_blocks.h"

namespace attnscope {
namespace {

/// SubBlock's kernels take blocks by the eight.
constexpr int64_t kSubBlockStep = 8;
/// Kernels score in float32 or bf16: scores that are nearer than this, relatively, may change
/// places.
constexpr double kTie = 1e-5;

bool is_near(double score, double threshold) {
  return std::abs(score - threshold) <= kTie * std::max(1.0, std::abs(threshold));
}

/// Picks by one rule.
class BlockRule {
 public:
  BlockRule(const MaskPattern& pattern, const ScoredBlocks& scored, const TokenGrid& keys,
            const std::stop_token& stop)
      : p_(pattern), s_(scored), grid_(keys), stop_(stop) {
    picks_.queries = scored.queries;
    picks_.keys = scored.keys;
    picks_.kept.assign(static_cast<size_t>(picks_.queries.size() * picks_.keys.size()), 0);
  }

  BlockPicks pick() {
    if (!s_.rows.empty() && !s_.columns.empty()) apply();
    keep_exempt();
    return std::move(picks_);
  }

 private:
  void apply() {
    const BlockTable& table = s_.scores;
    const int64_t rounded_down = static_cast<int64_t>(p_.keep * double(table.columns));
    switch (p_.kind) {
      case PatternKind::sol:
        return pick_sol();
      case PatternKind::subblock:
        return keep_best(
            ceil_div(std::max<int64_t>(share_up(p_.keep, table.columns), 1), kSubBlockStep) *
            kSubBlockStep);
      case PatternKind::vsa:
      case PatternKind::block_oracle:
        return keep_best(vsa_count());
      case PatternKind::sla:
        return keep_best(rounded_down);
      case PatternKind::dfs:
        return keep_best(std::max<int64_t>(rounded_down, 1));
      case PatternKind::sparge:
        return pick_sparge();
      case PatternKind::nabla:
        keep_mass_from_below();
        return keep_window(false);
      case PatternKind::draft:
        return keep_above_quantile();
      case PatternKind::xattention:
        return keep_mass_from_above();
      case PatternKind::skip_softmax:
        return keep_near_maximum();
      default:
        keep_best(p_.blocks > 0 ? p_.blocks : usual_ssta_blocks(grid_));
        return keep_window(true);
    }
  }

  /// Of the tiles of the video; where those of text compete, as many more as they are.
  int64_t vsa_count() const {
    int64_t competing = 0;
    if (p_.kind == PatternKind::vsa && p_.text_rule == TextRule::compete) {
      competing = s_.scores.columns - video_tiles();
    }
    const int64_t tiles = s_.scores.columns - competing;
    const int64_t count = std::max<int64_t>(share_up(p_.keep, tiles), 1);
    // FastVideo's code: all tiles of the video are all there are.
    return count == tiles ? s_.scores.columns : count + competing;
  }
  int64_t video_tiles() const {
    const auto tiles = tiles_of(grid_, p_.tile);
    return tiles[0] * tiles[1] * tiles[2];
  }

  /// Equal scores go to the lower index.
  void keep_best(int64_t count) {
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = s_.scores.row(i);
      const std::vector<int64_t> best = best_first(row, count);
      for (const int64_t j : best) keep(i, j);
      if (best.empty() || std::ssize(best) == std::ssize(row)) continue;
      const double last = row[static_cast<size_t>(best.back())];
      // Itself is near.
      add_ties(row, last, 1);
    }
  }

  void add_ties(std::span<const double> row, double threshold, int64_t less) {
    const auto near = std::count_if(row.begin(), row.end(),
                                    [&](double score) { return is_near(score, threshold); });
    picks_.ties += std::max<int64_t>(near - less, 0);
  }

  /// All but the least ones whose sum stays below 1 − p.
  void keep_mass_from_below() {
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = s_.scores.row(i);
      std::vector<int64_t> order(row.size());
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return row[static_cast<size_t>(a)] < row[static_cast<size_t>(b)];
      });
      double sum = 0;
      for (const int64_t j : order) {
        sum += row[static_cast<size_t>(j)];
        if (sum >= 1 - p_.p) keep(i, j);
        picks_.ties += is_near(sum, 1 - p_.p) ? 1 : 0;
      }
    }
  }

  /// The best as long as the sum of the better ones stays below the share; the first column
  /// wherever a row drops any, because the code sends unused ranks to index 0.
  void keep_mass_from_above() {
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = s_.scores.row(i);
      const double wanted = p_.p * std::accumulate(row.begin(), row.end(), 0.0);
      double better = 0;
      for (const int64_t j : best_first(row, std::ssize(row))) {
        picks_.ties += is_near(better, wanted) ? 1 : 0;
        if (!(better < wanted)) break;
        keep(i, j);
        better += row[static_cast<size_t>(j)];
      }
      keep(i, 0, BlockPicks::kForced);
    }
  }

  /// Scores are a block's largest logit below the largest so far.
  void keep_near_maximum() {
    const double least = std::log(p_.lambda);
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = s_.scores.row(i);
      for (int64_t j = 0; j < s_.scores.columns; ++j) {
        if (row[static_cast<size_t>(j)] > least) keep(i, j);
      }
      add_ties(row, least, 0);
    }
  }

  /// One threshold for the whole head: rows get as many as lie above it.
  void keep_above_quantile() {
    std::vector<double> all = s_.scores.values;
    // A share that is a whole number of pairs but for rounding is that number.
    constexpr double kRounding = 1e-9;
    const auto below =
        static_cast<int64_t>((1 - p_.keep) * static_cast<double>(all.size()) + kRounding);
    double least = -std::numeric_limits<double>::infinity();
    if (below > 0) {
      std::nth_element(all.begin(), all.begin() + (below - 1), all.end());
      least = all[static_cast<size_t>(below - 1)];
      add_ties(all, least, 1);
    }
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      for (int64_t j = 0; j < s_.scores.columns; ++j) {
        if (s_.scores.row(i)[static_cast<size_t>(j)] >= least) keep(i, j);
      }
    }
  }

  /// The tiles around each, with the window moved inwards at the edges or not.
  void keep_window(bool inwards) {
    if (p_.window[0] == 0) return;
    const std::array<int64_t, 3> tiles = tiles_of(grid_, p_.tile);
    const auto near = [&](int64_t query, int64_t key, size_t axis) {
      const int64_t half = p_.window[axis] / 2;
      const int64_t centre =
          inwards ? std::min(std::max(query, half), tiles[axis] - 1 - half) : query;
      return std::abs(centre - key) <= half;
    };
    const auto place = [&](int64_t tile) {
      return std::array{tile / tiles[2] / tiles[1], tile / tiles[2] % tiles[1], tile % tiles[2]};
    };
    for (int64_t i = 0; i < std::ssize(s_.rows); ++i) {
      const auto q = place(i);
      for (int64_t j = 0; j < std::ssize(s_.columns); ++j) {
        const auto k = place(j);
        if (near(q[0], k[0], 0) && near(q[1], k[1], 1) && near(q[2], k[2], 2)) {
          keep(i, j, BlockPicks::kForced);
        }
      }
    }
  }

  void pick_sol() {
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = s_.scores.row(i);
      const double least =
          p_.keep > 0 ? sol_budget(row) : p_.tau * s_.deviations[static_cast<size_t>(i)];
      add_ties(row, least, p_.keep > 0 ? 1 : 0);
      for (int64_t j = 0; j < s_.scores.columns; ++j) {
        const double score = row[static_cast<size_t>(j)];
        if (p_.keep > 0 ? score >= least : score > least) keep(i, j);
        if (s_.same_tokens &&
            std::abs(s_.rows[static_cast<size_t>(i)] - s_.columns[static_cast<size_t>(j)]) <= 1) {
          keep(i, j, BlockPicks::kForced);
        }
      }
    }
  }

  /// The least score that a budget of blocks reaches; all that are equal to it are kept.
  double sol_budget(std::span<const double> row) const {
    const auto free = static_cast<double>(row.size());
    const double rounded = std::max(1.0, std::nearbyint(p_.keep * free));
    const auto count = static_cast<size_t>(std::max(0.0, std::min(free - 1, rounded)));
    if (count == 0) return std::numeric_limits<double>::infinity();
    std::vector<double> sorted(row.begin(), row.end());
    std::nth_element(sorted.begin(), sorted.begin() + (count - 1), sorted.end(), std::greater<>());
    return sorted[count - 1];
  }

  void pick_sparge() {
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      stop_here(stop_);
      const bool all = s_.alike_rows[static_cast<size_t>(s_.rows[static_cast<size_t>(i)])] == 0;
      keep_sparge_row(i, all);
    }
  }

  void keep_sparge_row(int64_t i, bool all) {
    const std::span<const double> row = s_.scores.row(i);
    const std::vector<int64_t> order = best_first(row, std::ssize(row));
    auto count = static_cast<int64_t>(p_.keep * static_cast<double>(row.size()));
    if (p_.keep == 0) {
      // The block that crosses the share is dropped.
      double mass = 0;
      for (; count < std::ssize(order); ++count) {
        mass += row[static_cast<size_t>(order[static_cast<size_t>(count)])];
        picks_.ties += is_near(mass, p_.cdf) ? 1 : 0;
        if (!(mass <= p_.cdf)) break;
      }
    }
    count = std::max<int64_t>(count, 1);
    for (int64_t n = 0; n < std::ssize(order); ++n) {
      const int64_t j = order[static_cast<size_t>(n)];
      const auto block = static_cast<size_t>(s_.columns[static_cast<size_t>(j)]);
      if (n < count) {
        keep(i, j);
      } else if (all || s_.alike_columns[block] == 0) {
        keep(i, j, BlockPicks::kForced);
      }
    }
  }

  /// Both among the free blocks. What is chosen is not forced as well.
  void keep(int64_t row, int64_t column, uint8_t why = BlockPicks::kChosen) {
    uint8_t& kept =
        picks_.kept[static_cast<size_t>(s_.rows[static_cast<size_t>(row)] * picks_.keys.size() +
                                        s_.columns[static_cast<size_t>(column)])];
    if (kept == 0) kept = why;
  }

  void keep_exempt() {
    for (int64_t i = 0; i < picks_.queries.size(); ++i) {
      const bool dense = picks_.queries.exempt[static_cast<size_t>(i)] != 0;
      for (int64_t j = 0; j < picks_.keys.size(); ++j) {
        if (!dense && picks_.keys.exempt[static_cast<size_t>(j)] == 0) continue;
        picks_.kept[static_cast<size_t>(i * picks_.keys.size() + j)] = BlockPicks::kForced;
      }
    }
  }

  const MaskPattern& p_;
  const ScoredBlocks& s_;
  const TokenGrid& grid_;
  const std::stop_token& stop_;
  BlockPicks picks_;
};

}  // namespace

int64_t usual_ssta_blocks(const TokenGrid& tokens) { return tokens.frames() <= 31 ? 32 : 64; }

BlockPicks pick_blocks(const MaskPattern& pattern, const ScoredBlocks& scored,
                       const TokenGrid& keys, const std::stop_token& stop) {
  return BlockRule(pattern, scored, keys, stop).pick();
}

}  // namespace attnscope
