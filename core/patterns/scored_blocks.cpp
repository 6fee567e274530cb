#include "core/patterns/scored_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/checked_math.h"
#include "core/patterns/map_scores.h"
#include "core/patterns/token_blocks.h"

namespace attnscope {
namespace {

std::vector<int64_t> free_blocks(const TokenBlocks& blocks) {
  std::vector<int64_t> list;
  for (int64_t b = 0; b < blocks.size(); ++b) {
    if (blocks.exempt[static_cast<size_t>(b)] == 0) list.push_back(b);
  }
  return list;
}

/// The listed rows and columns of a table of all blocks.
BlockTable part_of(const BlockTable& all, const std::vector<int64_t>& rows,
                   const std::vector<int64_t>& columns) {
  BlockTable part{std::ssize(rows), std::ssize(columns), {}};
  part.values.reserve(rows.size() * columns.size());
  for (const int64_t i : rows) {
    for (const int64_t j : columns) part.values.push_back(all.row(i)[static_cast<size_t>(j)]);
  }
  return part;
}

/// Scores one head's blocks.
class BlockScorer {
 public:
  BlockScorer(const MaskPattern& pattern, const ScoredHead& head)
      : p_(pattern), head_(head), problem_(head.problem) {
    s_.queries = query_blocks_of(p_, problem_);
    s_.keys = key_blocks_of(p_, problem_);
    s_.rows = free_blocks(s_.queries);
    s_.columns = free_blocks(s_.keys);
    s_.same_tokens = problem_.same_tokens();
  }

  ScoredBlocks score() {
    if (!s_.rows.empty() && !s_.columns.empty()) take_scores();
    return std::move(s_);
  }

 private:
  std::vector<double> means(const HeadTensor& tensor, const TokenBlocks& blocks,
                            const ChannelChange& change = {}) const {
    const bool queries = &tensor == &problem_.q();
    return block_means(tensor, head_.batch, queries ? head_.head : problem_.kv_head(head_.head),
                       blocks, head_.stop, change);
  }

  void take_scores() {
    switch (p_.kind) {
      case PatternKind::block_oracle:
        return take_map(MapScore::mass);
      case PatternKind::skip_softmax:
        return take_map(MapScore::below_maximum);
      case PatternKind::xattention:
        return score_antidiagonals();
      default:
        break;
    }
    s_.query_means = means(problem_.q(), s_.queries);
    s_.key_means = means(problem_.k(), s_.keys);
    switch (p_.kind) {
      case PatternKind::sol:
        return score_centred();
      case PatternKind::subblock:
        return score_cells();
      case PatternKind::dfs:
        return score_soft_cells();
      case PatternKind::sparge:
        return score_alike();
      case PatternKind::ssta:
        s_.scores = importance(s_.query_means, s_.key_means, s_.rows, s_.columns,
                               problem_.head_dim(), p_.lambda, head_.stop);
        return;
      default:
        s_.scores = products(problem_.scale(head_.head));
        if (p_.kind == PatternKind::nabla || p_.kind == PatternKind::draft) softmax_rows(s_.scores);
    }
  }

  void take_map(MapScore which) {
    s_.scores = part_of(map_scores(head_, s_.queries, s_.keys, which), s_.rows, s_.columns);
  }

  BlockTable products(double factor) const {
    return mean_products(s_.query_means, s_.key_means, s_.rows, s_.columns, problem_.head_dim(),
                         factor, head_.stop);
  }

  void score_centred() {
    const int64_t width = problem_.head_dim();
    s_.centre = centre_means(s_.key_means, s_.keys.size(), width);
    const double factor = problem_.scale(head_.head) * kLog2E;
    s_.scores = products(factor);
    s_.deviations = score_deviations(s_.query_means, s_.key_means, s_.rows, width, factor,
                                     p_.exact_variance, head_.stop);
  }

  TokenBlocks cells(const TokenGrid& tokens, int64_t size) const {
    return consecutive_blocks(tokens, size, make_place_order(p_.order, tokens), false);
  }

  void score_cells() {
    const TokenBlocks queries = cells(problem_.query_tokens(), p_.block / p_.cells[0]);
    const TokenBlocks keys = cells(problem_.key_tokens(), p_.block / p_.cells[1]);
    const std::vector<double> query_means = means(problem_.q(), queries);
    const std::vector<double> key_means = means(problem_.k(), keys);
    s_.scores =
        cell_sums({query_means, p_.cells[0], queries.size()}, {key_means, p_.cells[1], keys.size()},
                  s_.rows, s_.columns, problem_.head_dim(), problem_.scale(head_.head), head_.stop);
  }

  /// Means of cells that zeros fill up, `parts` a block.
  std::vector<double> filled_cells(const HeadTensor& tensor, const TokenGrid& tokens,
                                   int64_t blocks, int64_t parts) const {
    const TokenBlocks cut = cells(tokens, p_.block / parts);
    std::vector<double> filled = means(tensor, cut);
    const auto width = static_cast<size_t>(tensor.width());
    const double last = static_cast<double>(cut.lengths.back());
    for (size_t c = filled.size() - width; c < filled.size(); ++c) {
      filled[c] *= last / static_cast<double>(p_.block / parts);
    }
    filled.resize(static_cast<size_t>(blocks * parts) * width);
    return filled;
  }

  /// A softmax over all cells of the listed blocks, summed over those of a block.
  void score_soft_cells() {
    const int64_t parts = p_.cells[0];
    const std::vector<double> q =
        filled_cells(problem_.q(), problem_.query_tokens(), s_.queries.size(), parts);
    const std::vector<double> k =
        filled_cells(problem_.k(), problem_.key_tokens(), s_.keys.size(), parts);
    const auto cells_of = [&](const std::vector<int64_t>& blocks) {
      std::vector<int64_t> list;
      for (const int64_t block : blocks) {
        for (int64_t part = 0; part < parts; ++part) list.push_back(block * parts + part);
      }
      return list;
    };
    const std::vector<int64_t> columns = cells_of(s_.columns);
    s_.scores = sum_softmax(q, k, columns, problem_.head_dim(), parts, problem_.scale(head_.head));
  }

  /// Of each row of blocks, in turn: `parts` rows of scores, softmaxed and added to their blocks.
  BlockTable sum_softmax(const std::vector<double>& q, const std::vector<double>& k,
                         const std::vector<int64_t>& columns, int64_t width, int64_t parts,
                         double factor) const {
    BlockTable sums{std::ssize(s_.rows), std::ssize(s_.columns), {}};
    sums.values.resize(s_.rows.size() * s_.columns.size());
    std::vector<int64_t> rows(static_cast<size_t>(parts));
    for (int64_t i = 0; i < sums.rows; ++i) {
      for (int64_t part = 0; part < parts; ++part) {
        rows[static_cast<size_t>(part)] = s_.rows[static_cast<size_t>(i)] * parts + part;
      }
      BlockTable table = mean_products(q, k, rows, columns, width, factor, head_.stop);
      softmax_rows(table);
      for (int64_t part = 0; part < parts; ++part) {
        const std::span<const double> row = table.row(part);
        for (size_t j = 0; j < row.size(); ++j) {
          sums.row(i)[j / static_cast<size_t>(parts)] += row[j];
        }
      }
    }
    return sums;
  }

  /// Rows of `stride` tokens beside each other, as one of stride·d channels; zeros fill up the
  /// last.
  std::vector<double> strides(const HeadTensor& tensor, bool backwards, int64_t count) const {
    TokenBlocks places;
    places.lengths.assign(static_cast<size_t>(count * p_.stride), 1);
    for (int64_t token = 0; token < tensor.tokens(); ++token) {
      const int64_t at = token % p_.stride;
      places.of_token.push_back(
          static_cast<int32_t>(token - at + (backwards ? p_.stride - 1 - at : at)));
    }
    return means(tensor, places);
  }

  /// Sums over antidiagonals of squares of `stride` tokens, softmaxed and added to their blocks.
  /// Squares without a key take no part.
  void score_antidiagonals() {
    const int64_t parts = p_.block / p_.stride;
    const std::vector<double> q = strides(problem_.q(), true, s_.queries.size() * parts);
    const std::vector<double> k = strides(problem_.k(), false, s_.keys.size() * parts);
    const int64_t groups = ceil_div(problem_.num_keys(), p_.stride);
    std::vector<int64_t> columns;
    for (const int64_t block : s_.columns) {
      for (int64_t part = 0; part < parts; ++part) {
        if (block * parts + part < groups) columns.push_back(block * parts + part);
      }
    }
    s_.scores = sum_softmax(q, k, columns, p_.stride * problem_.head_dim(), parts,
                            problem_.scale(head_.head) / static_cast<double>(p_.stride));
  }

  void score_alike() {
    const int64_t width = problem_.head_dim();
    const std::vector<double> middle = token_mean(s_.key_means, s_.keys.lengths, width);
    subtract(s_.key_means, middle);
    const auto unit = [](std::span<double> row) {
      double square = 0;
      for (const double x : row) square += x * x;
      for (double& x : row) x /= std::sqrt(square);
    };
    s_.alike_rows = alike(means(problem_.q(), s_.queries, unit), s_.queries, kSpargeQueries);
    s_.alike_columns = alike(means(problem_.k(), s_.keys,
                                   [&](std::span<double> row) {
                                     for (size_t c = 0; c < row.size(); ++c) row[c] -= middle[c];
                                     unit(row);
                                   }),
                             s_.keys, kSpargeKeys);
    s_.scores = products(problem_.scale(head_.head));
    for (int64_t i = 0; i < s_.scores.rows; ++i) {
      for (int64_t j = 0; j < s_.scores.columns; ++j) {
        if (s_.alike_columns[static_cast<size_t>(s_.columns[static_cast<size_t>(j)])] == 0) {
          s_.scores.row(i)[static_cast<size_t>(j)] = -std::numeric_limits<double>::infinity();
        }
      }
    }
    softmax_rows(s_.scores);
    // The terms of dropped blocks are of the keys as they are.
    add(s_.key_means, middle);
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

  const MaskPattern& p_;
  const ScoredHead& head_;
  const AttentionProblem& problem_;
  ScoredBlocks s_;
};

TokenBlocks blocks_of(const MaskPattern& pattern, const TokenGrid& tokens, int64_t block,
                      bool chosen_text) {
  if (!has_tiles(pattern)) {
    return consecutive_blocks(tokens, block, make_place_order(pattern.order, tokens),
                              pattern.text_rule == TextRule::keep);
  }
  if (pattern.kind == PatternKind::vsa && pattern.text_rule == TextRule::compete) {
    return packed_tiles(tokens, pattern.tile, !chosen_text);
  }
  return tile_blocks(tokens, pattern.tile);
}

}  // namespace

bool has_tiles(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::vsa || pattern.kind == PatternKind::nabla ||
         pattern.kind == PatternKind::draft || pattern.kind == PatternKind::ssta;
}

int64_t query_block(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::sparge ? kSpargeQueries : pattern.block;
}
int64_t key_block(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::sparge ? kSpargeKeys : pattern.block;
}

TokenBlocks query_blocks_of(const MaskPattern& pattern, const AttentionProblem& problem) {
  return blocks_of(pattern, problem.query_tokens(), query_block(pattern), false);
}
TokenBlocks key_blocks_of(const MaskPattern& pattern, const AttentionProblem& problem) {
  return blocks_of(pattern, problem.key_tokens(), key_block(pattern), true);
}

ScoredBlocks score_blocks(const MaskPattern& pattern, const ScoredHead& head) {
  return BlockScorer(pattern, head).score();
}

std::string score_identity(const MaskPattern& p) {
  std::string text = std::to_string(static_cast<int>(p.kind));
  const auto add = [&](const auto& value) { text += " " + std::to_string(value); };
  add(static_cast<int>(p.text_rule));
  for (const int64_t side : p.tile) add(side);
  for (const int64_t side : p.cells) add(side);
  add(p.block);
  add(p.stride);
  add(p.exact_variance);
  // Others decide by these two, and not by their scores.
  if (p.kind == PatternKind::sparge) add(p.sim);
  if (p.kind == PatternKind::ssta) add(p.lambda);
  return text + " " + p.order.text();
}

std::shared_ptr<const ScoredBlocks> ScoreKeeper::get(const MaskPattern& pattern,
                                                     const ScoredHead& head) {
  const std::string identity = score_identity(pattern);
  const bool there = kept_ != nullptr && problem_ == &head.problem && batch_ == head.batch &&
                     head_ == head.head && identity_ == identity;
  if (there) return kept_;
  kept_ = nullptr;
  kept_ = std::make_shared<ScoredBlocks>(score_blocks(pattern, head));
  problem_ = &head.problem;
  batch_ = head.batch;
  head_ = head.head;
  identity_ = identity;
  return kept_;
}

}  // namespace attnscope
