#include "core/patterns/block_selectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/patterns/block_scores.h"
#include "core/patterns/token_blocks.h"

namespace attnscope {
namespace {

/// SubBlock's kernels take blocks by the eight.
constexpr int64_t kSubBlockStep = 8;

[[noreturn]] void refuse(const MaskPattern& pattern, const AttentionProblem& problem,
                         const std::string& why) {
  throw usage_error("mask " + pattern.text + ": " + problem.name() + ": " + why);
}

bool has_tiles(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::vsa || pattern.kind == PatternKind::nabla ||
         pattern.kind == PatternKind::draft || pattern.kind == PatternKind::ssta;
}

TokenBlocks blocks_of(const MaskPattern& pattern, const TokenGrid& tokens, int64_t block) {
  if (has_tiles(pattern)) return tile_blocks(tokens, pattern.tile);
  return consecutive_blocks(tokens, block, make_place_order(pattern.order, tokens),
                            pattern.text_rule == TextRule::keep);
}

int64_t query_block(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::sparge ? kSpargeQueries : pattern.block;
}
int64_t key_block(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::sparge ? kSpargeKeys : pattern.block;
}

/// Blocks of a side, at most.
int64_t most_blocks(const MaskPattern& pattern, const TokenGrid& tokens, int64_t block) {
  if (!has_tiles(pattern)) return ceil_div(tokens.tokens(), block);
  const auto tiles = tiles_of(tokens, pattern.tile);
  return tiles[0] * tiles[1] * tiles[2] + std::ssize(tokens.outside_video());
}

/// The tokens from the first to the last that a selector chooses among.
IndexRange chosen_range(const TokenBlocks& blocks) {
  IndexRange range{std::ssize(blocks.of_token), 0};
  for (int64_t token = 0; token < std::ssize(blocks.of_token); ++token) {
    const auto block = static_cast<size_t>(blocks.of_token[static_cast<size_t>(token)]);
    if (blocks.exempt[block] != 0) continue;
    range.begin = std::min(range.begin, token);
    range.end = token + 1;
  }
  return range;
}

/// The rules are of calls in which every query may see every key.
void require_open(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                  int64_t head, const BlockPicks& picks) {
  const IndexRange queries = chosen_range(picks.queries), keys = chosen_range(picks.keys);
  if (queries.empty() || keys.empty() || problem.mask().is_none()) return;
  if (problem.mask().classify(batch, head, queries, keys) == TileClass::full) return;
  refuse(pattern, problem,
         "has a mask of its own (" + problem.mask().describe() +
             ") among the tokens whose blocks are chosen; the rule is of full attention (" +
             (pattern.text_rule == TextRule::compete ? "text=keep leaves text aside, " : "") +
             "--own-mask none measures without it)");
}

void check_tiles(const MaskPattern& pattern, const AttentionProblem& problem) {
  const TokenGrid& grid = problem.key_tokens();
  if (problem.id().kind == CallKind::cross || !problem.same_tokens()) {
    refuse(pattern, problem, "its tiles are of calls whose keys are the queries' tokens");
  }
  if (!grid.has_grid()) {
    refuse(pattern, problem,
           grid.has_map() ? "its token map has no video whose cells stand row by row"
                          : "has no token grid; give --grid TxHxW");
  }
  const bool whole = grid.frames() % pattern.tile[0] == 0 && grid.height() % pattern.tile[1] == 0 &&
                     grid.width() % pattern.tile[2] == 0;
  if (whole || pattern.kind == PatternKind::vsa || pattern.kind == PatternKind::ssta) return;
  refuse(pattern, problem,
         "a grid of " + grid.grid_text() + " is not made of whole tiles of " +
             std::to_string(pattern.tile[0]) + "x" + std::to_string(pattern.tile[1]) + "x" +
             std::to_string(pattern.tile[2]) + ", which the published code needs");
}

/// Selects for one head.
class Selector {
 public:
  Selector(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch, int64_t head,
           std::stop_token stop)
      : p_(pattern),
        problem_(problem),
        batch_(batch),
        head_(head),
        stop_(std::move(stop)),
        picks_(std::make_shared<BlockPicks>()) {
    picks_->queries = blocks_of(p_, problem_.query_tokens(), query_block(p_));
    picks_->keys = blocks_of(p_, problem_.key_tokens(), key_block(p_));
    picks_->kept.assign(static_cast<size_t>(picks_->queries.size() * picks_->keys.size()), 0);
    require_open(p_, problem_, batch_, head_, *picks_);
    rows_ = free_blocks(picks_->queries);
    keys_ = free_blocks(picks_->keys);
  }

  Mask select() {
    if (!rows_.empty() && !keys_.empty()) pick();
    keep_exempt();
    return picked_blocks_mask(picks_, p_.text, dropped_terms());
  }

 private:
  static std::vector<int64_t> free_blocks(const TokenBlocks& blocks) {
    std::vector<int64_t> list;
    for (int64_t b = 0; b < blocks.size(); ++b) {
      if (blocks.exempt[static_cast<size_t>(b)] == 0) list.push_back(b);
    }
    return list;
  }

  std::vector<double> means(const HeadTensor& tensor, const TokenBlocks& blocks,
                            const ChannelChange& change = {}) const {
    const bool queries = &tensor == &problem_.q();
    return block_means(tensor, batch_, queries ? head_ : problem_.kv_head(head_), blocks, stop_,
                       change);
  }

  void pick() {
    switch (p_.kind) {
      case PatternKind::sol:
        return pick_sol();
      case PatternKind::subblock:
        return pick_subblock();
      case PatternKind::sparge:
        return pick_sparge();
      default:
        query_means_ = means(problem_.q(), picks_->queries);
        key_means_ = means(problem_.k(), picks_->keys);
        return pick_by_means();
    }
  }

  /// Scores of means: of the free blocks, [rows, keys].
  BlockTable scores(double factor) const {
    return mean_products(query_means_, key_means_, rows_, keys_, problem_.head_dim(), factor,
                         stop_);
  }

  void pick_by_means() {
    const double scale = problem_.scale(head_);
    BlockTable table = scores(scale);
    switch (p_.kind) {
      case PatternKind::vsa:
        return keep_best(table, std::max<int64_t>(share_up(p_.keep, table.columns), 1));
      case PatternKind::sla:
        // No scale and centred keys order the blocks of a row alike.
        return keep_best(table, static_cast<int64_t>(p_.keep * double(table.columns)));
      case PatternKind::nabla:
        softmax_rows(table);
        keep_mass_from_below(table, p_.p);
        return keep_window(false);
      case PatternKind::draft:
        softmax_rows(table);
        return keep_above_quantile(table, p_.keep);
      default:
        return pick_ssta();
    }
  }

  /// Equal scores go to the lower index.
  void keep_best(const BlockTable& table, int64_t count) {
    for (int64_t i = 0; i < table.rows; ++i) {
      stop_here(stop_);
      for (const int64_t j : best_first(table.row(i), count)) keep(i, j);
    }
  }

  /// All but the least ones whose sum stays below 1 − p.
  void keep_mass_from_below(const BlockTable& table, double p) {
    for (int64_t i = 0; i < table.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = table.row(i);
      std::vector<int64_t> order(row.size());
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return row[static_cast<size_t>(a)] < row[static_cast<size_t>(b)];
      });
      double sum = 0;
      for (const int64_t j : order) {
        sum += row[static_cast<size_t>(j)];
        if (sum >= 1 - p) keep(i, j);
      }
    }
  }

  /// One threshold for the whole head: rows get as many as lie above it.
  void keep_above_quantile(const BlockTable& table, double share) {
    std::vector<double> all = table.values;
    // A share that is a whole number of pairs but for rounding is that number.
    constexpr double kRounding = 1e-9;
    const auto below =
        static_cast<int64_t>((1 - share) * static_cast<double>(all.size()) + kRounding);
    double least = -std::numeric_limits<double>::infinity();
    if (below > 0) {
      std::nth_element(all.begin(), all.begin() + (below - 1), all.end());
      least = all[static_cast<size_t>(below - 1)];
    }
    for (int64_t i = 0; i < table.rows; ++i) {
      for (int64_t j = 0; j < table.columns; ++j) {
        if (table.row(i)[static_cast<size_t>(j)] >= least) keep(i, j);
      }
    }
  }

  /// The tiles around each, with the window moved inwards at the edges or not.
  void keep_window(bool inwards) {
    if (p_.window[0] == 0) return;
    const std::array<int64_t, 3> tiles = tiles_of(problem_.key_tokens(), p_.tile);
    const auto near = [&](int64_t query, int64_t key, size_t axis) {
      const int64_t half = p_.window[axis] / 2;
      const int64_t centre =
          inwards ? std::min(std::max(query, half), tiles[axis] - 1 - half) : query;
      return std::abs(centre - key) <= half;
    };
    const auto place = [&](int64_t tile) {
      return std::array{tile / tiles[2] / tiles[1], tile / tiles[2] % tiles[1], tile % tiles[2]};
    };
    for (int64_t i = 0; i < std::ssize(rows_); ++i) {
      const auto q = place(i);
      for (int64_t j = 0; j < std::ssize(keys_); ++j) {
        const auto k = place(j);
        if (near(q[0], k[0], 0) && near(q[1], k[1], 1) && near(q[2], k[2], 2)) keep(i, j);
      }
    }
  }

  void pick_ssta() {
    keep_best(
        importance(query_means_, key_means_, rows_, keys_, problem_.head_dim(), p_.lambda, stop_),
        p_.blocks > 0 ? p_.blocks : usual_ssta_blocks(problem_.key_tokens()));
    keep_window(true);
  }

  void pick_sol() {
    query_means_ = means(problem_.q(), picks_->queries);
    key_means_ = means(problem_.k(), picks_->keys);
    centre_ = centre_means(key_means_, picks_->keys.size(), problem_.head_dim());
    const double scale = problem_.scale(head_);
    const BlockTable table = scores(scale * kLog2E);
    const std::vector<double> deviations =
        score_deviations(query_means_, key_means_, rows_, problem_.head_dim(), scale * kLog2E,
                         p_.exact_variance, stop_);
    for (int64_t i = 0; i < table.rows; ++i) {
      stop_here(stop_);
      const std::span<const double> row = table.row(i);
      const double least =
          p_.keep > 0 ? sol_budget(row) : p_.tau * deviations[static_cast<size_t>(i)];
      for (int64_t j = 0; j < table.columns; ++j) {
        const double score = row[static_cast<size_t>(j)];
        if (p_.keep > 0 ? score >= least : score > least) keep(i, j);
        if (problem_.same_tokens() &&
            std::abs(rows_[static_cast<size_t>(i)] - keys_[static_cast<size_t>(j)]) <= 1) {
          keep(i, j);
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

  void pick_subblock() {
    const auto cells = [&](const TokenGrid& tokens, int64_t parts) {
      return consecutive_blocks(tokens, p_.block / parts, make_place_order(p_.order, tokens),
                                false);
    };
    const TokenBlocks queries = cells(problem_.query_tokens(), p_.cells[0]);
    const TokenBlocks keys = cells(problem_.key_tokens(), p_.cells[1]);
    const std::vector<double> query_means = means(problem_.q(), queries);
    const std::vector<double> key_means = means(problem_.k(), keys);
    const BlockTable table =
        cell_sums({query_means, p_.cells[0], queries.size()}, {key_means, p_.cells[1], keys.size()},
                  rows_, keys_, problem_.head_dim(), problem_.scale(head_), stop_);
    const int64_t wanted = std::max<int64_t>(share_up(p_.keep, table.columns), 1);
    keep_best(table, ceil_div(wanted, kSubBlockStep) * kSubBlockStep);
  }

  void pick_sparge() {
    const int64_t width = problem_.head_dim();
    query_means_ = means(problem_.q(), picks_->queries);
    key_means_ = means(problem_.k(), picks_->keys);
    const std::vector<double> middle = token_mean(key_means_, picks_->keys.lengths, width);
    subtract(key_means_, middle);
    const auto unit = [](std::span<double> row) {
      double square = 0;
      for (const double x : row) square += x * x;
      for (double& x : row) x /= std::sqrt(square);
    };
    const std::vector<uint8_t> alike_rows =
        alike(means(problem_.q(), picks_->queries, unit), picks_->queries, kSpargeQueries);
    const std::vector<uint8_t> alike_keys = alike(means(problem_.k(), picks_->keys,
                                                        [&](std::span<double> row) {
                                                          for (size_t c = 0; c < row.size(); ++c)
                                                            row[c] -= middle[c];
                                                          unit(row);
                                                        }),
                                                  picks_->keys, kSpargeKeys);
    BlockTable table = scores(problem_.scale(head_));
    for (int64_t i = 0; i < table.rows; ++i) {
      for (int64_t j = 0; j < table.columns; ++j) {
        if (alike_keys[static_cast<size_t>(keys_[static_cast<size_t>(j)])] == 0) {
          table.row(i)[static_cast<size_t>(j)] = -std::numeric_limits<double>::infinity();
        }
      }
    }
    softmax_rows(table);
    for (int64_t i = 0; i < table.rows; ++i) {
      stop_here(stop_);
      const bool all = alike_rows[static_cast<size_t>(rows_[static_cast<size_t>(i)])] == 0;
      keep_sparge_row(table.row(i), i, alike_keys, all);
    }
  }

  void keep_sparge_row(std::span<const double> row, int64_t i,
                       const std::vector<uint8_t>& alike_keys, bool all) {
    const std::vector<int64_t> order = best_first(row, std::ssize(row));
    auto count = static_cast<int64_t>(p_.keep * static_cast<double>(row.size()));
    if (p_.keep == 0) {
      // The block that crosses the share is dropped.
      double mass = 0;
      for (; count < std::ssize(order); ++count) {
        mass += row[static_cast<size_t>(order[static_cast<size_t>(count)])];
        if (!(mass <= p_.cdf)) break;
      }
    }
    count = std::max<int64_t>(count, 1);
    for (int64_t n = 0; n < std::ssize(order); ++n) {
      const int64_t j = order[static_cast<size_t>(n)];
      const bool unlike = alike_keys[static_cast<size_t>(keys_[static_cast<size_t>(j)])] == 0;
      if (n < count || unlike || all) keep(i, j);
    }
  }

  /// 1 where a block's unit rows have a mean longer than √sim. A ragged block never is: the kernel
  /// divides its padding by a norm of 0.
  std::vector<uint8_t> alike(const std::vector<double>& units, const TokenBlocks& blocks,
                             int64_t whole) const {
    const auto width = static_cast<size_t>(problem_.head_dim());
    std::vector<uint8_t> result(blocks.lengths.size());
    for (size_t b = 0; b < result.size(); ++b) {
      double square = 0;
      for (size_t c = 0; c < width; ++c) square += units[b * width + c] * units[b * width + c];
      result[b] = square > p_.sim && blocks.lengths[b] == whole ? 1 : 0;
    }
    return result;
  }

  /// Both among the free blocks.
  void keep(int64_t row, int64_t key) {
    picks_->kept[static_cast<size_t>(rows_[static_cast<size_t>(row)] * picks_->keys.size() +
                                     keys_[static_cast<size_t>(key)])] = 1;
  }

  void keep_exempt() {
    for (int64_t i = 0; i < picks_->queries.size(); ++i) {
      const bool dense = picks_->queries.exempt[static_cast<size_t>(i)] != 0;
      for (int64_t j = 0; j < picks_->keys.size(); ++j) {
        if (!dense && picks_->keys.exempt[static_cast<size_t>(j)] == 0) continue;
        picks_->kept[static_cast<size_t>(i * picks_->keys.size() + j)] = 1;
      }
    }
  }

  std::shared_ptr<const DroppedTerms> dropped_terms() {
    if (p_.tail == BlockTail::none || rows_.empty() || keys_.empty()) return nullptr;
    auto terms = std::make_shared<DroppedTerms>();
    terms->picks = picks_;
    terms->scale = problem_.scale(head_);
    const int64_t width = problem_.head_dim();
    if (p_.tail == BlockTail::centroid) {
      std::vector<int64_t> all_rows(static_cast<size_t>(picks_->queries.size()));
      std::vector<int64_t> all_keys(static_cast<size_t>(picks_->keys.size()));
      std::iota(all_rows.begin(), all_rows.end(), int64_t{0});
      std::iota(all_keys.begin(), all_keys.end(), int64_t{0});
      terms->shared =
          mean_products(query_means_, key_means_, all_rows, all_keys, width, terms->scale, stop_)
              .values;
      terms->centre = centre_;
    } else {
      add(key_means_, centre_);
      terms->key_means = std::move(key_means_);
    }
    if (problem_.v()) terms->value_means = means(problem_.v(), picks_->keys);
    return terms;
  }

  const MaskPattern& p_;
  const AttentionProblem& problem_;
  const int64_t batch_, head_;
  const std::stop_token stop_;
  const std::shared_ptr<BlockPicks> picks_;
  std::vector<int64_t> rows_, keys_;  ///< the blocks that are chosen among
  std::vector<double> query_means_, key_means_, centre_;
};

}  // namespace

int64_t usual_ssta_blocks(const TokenGrid& tokens) { return tokens.frames() <= 31 ? 32 : 64; }

void check_selector(const MaskPattern& pattern, const AttentionProblem& problem, int64_t head) {
  if (pattern.tail != BlockTail::none && problem.score() != ScoreFunction{}) {
    refuse(pattern, problem,
           "its logits are not those of plain softmax, of which the terms of dropped blocks are "
           "(tail=none goes without them)");
  }
  for (const TokenGrid* tokens : {&problem.query_tokens(), &problem.key_tokens()}) {
    const std::string why = order_problem(pattern.order, OrderedSide::of(*tokens));
    if (why.empty()) continue;
    refuse(pattern, problem,
           (tokens == &problem.key_tokens() ? "its keys: " : "its queries: ") + why);
  }
  if (has_tiles(pattern)) check_tiles(pattern, problem);
  require_open(pattern, problem, 0, head,
               {blocks_of(pattern, problem.query_tokens(), query_block(pattern)),
                blocks_of(pattern, problem.key_tokens(), key_block(pattern)),
                {}});
}

SelectorBytes selector_bytes(const MaskPattern& pattern, const AttentionProblem& problem) {
  const int64_t rows = most_blocks(pattern, problem.query_tokens(), query_block(pattern));
  const int64_t keys = most_blocks(pattern, problem.key_tokens(), key_block(pattern));
  const int64_t tokens = problem.num_queries() + problem.num_keys();
  const int64_t width = problem.head_dim() + (problem.v() ? problem.v().width() : 0);
  const auto pairs = checked_mul(rows, keys);
  // A byte and a bit a pair, with terms a logit; of means, two copies.
  const auto kept_pairs = pairs ? checked_mul(*pairs, 10) : std::nullopt;
  const auto table = pairs ? checked_mul(*pairs, 16) : std::nullopt;
  const int64_t parts =
      pattern.kind == PatternKind::subblock ? std::max(pattern.cells[0], pattern.cells[1]) : 1;
  const auto side = checked_mul(rows + keys, (width + 4) * 8);
  const auto means = side ? checked_mul(*side, 2 + parts) : std::nullopt;
  if (!kept_pairs || !table || !means || tokens > (int64_t{1} << 40)) {
    throw Error(ErrorCode::resource, "the blocks are too many for any memory");
  }
  const int64_t kept = *kept_pairs + *side + tokens * 4;
  return {kept, kept + *table + *means + tokens * 16};
}

Mask selected_blocks(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                     int64_t head, std::stop_token stop) {
  check_selector(pattern, problem, head);
  return Selector(pattern, problem, batch, head, std::move(stop)).select();
}

}  // namespace attnscope
