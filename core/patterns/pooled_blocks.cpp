#include "core/patterns/pooled_blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/mask_cover.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// Means over blocks of `block` tokens: [blocks, width].
std::vector<float> pool(const HeadTensor& tensor, int64_t batch, int64_t head, int64_t block,
                        const std::stop_token& stop) {
  const int64_t width = tensor.width();
  const int64_t tokens = tensor.tokens();
  std::vector<float> means;
  means.reserve(static_cast<size_t>(ceil_div(tokens, block) * width));
  constexpr int64_t kReadRows = 64;
  std::vector<std::byte> raw(static_cast<size_t>(kReadRows * tensor.row_bytes()));
  std::vector<float> rows(static_cast<size_t>(kReadRows * width));
  std::vector<double> sums(static_cast<size_t>(width));
  for (int64_t begin = 0; begin < tokens; begin += block) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const int64_t end = std::min(begin + block, tokens);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t first = begin; first < end; first += kReadRows) {
      const IndexRange part{first, std::min(first + kReadRows, end)};
      tensor.read_rows(batch, head, part, raw.data());
      to_floats(tensor.dtype(), raw.data(), part.size() * width, rows.data());
      for (int64_t r = 0; r < part.size(); ++r) {
        const float* row = rows.data() + r * width;
        for (size_t c = 0; c < sums.size(); ++c) sums[c] += double{row[c]};
      }
    }
    for (double sum : sums)
      means.push_back(static_cast<float>(sum / static_cast<double>(end - begin)));
  }
  return means;
}

double dot(const float* a, const float* b, int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += double{a[c]} * double{b[c]};
  return sum;
}

BlockMask empty_mask(const BlockScores& scores) {
  return {1,
          scores.query_blocks,
          scores.key_blocks,
          scores.block,
          scores.block,
          std::vector<uint8_t>(scores.scores.size())};
}

/// The blocks of a row, the best first.
std::vector<int64_t> ranked(const float* row, int64_t blocks) {
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(),
            [row](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  return order;
}

}  // namespace

int64_t pooled_scores_bytes(const AttentionProblem& problem, int64_t block) {
  const int64_t query_blocks = ceil_div(problem.num_queries(), block);
  const int64_t key_blocks = ceil_div(problem.num_keys(), block);
  const auto pairs = checked_mul(query_blocks, key_blocks);
  // A score and a bit as a byte each.
  const auto scores = pairs ? checked_mul(*pairs, 5) : std::nullopt;
  const auto pooled = checked_mul(query_blocks + key_blocks, problem.head_dim() * 4);
  const auto total = scores && pooled ? checked_add(*scores, *pooled) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the blocks are too many for any memory");
  return *total;
}

BlockScores pooled_scores(const AttentionProblem& problem, int64_t batch, int64_t head,
                          int64_t block, std::stop_token stop) {
  const std::vector<float> queries = pool(problem.q(), batch, head, block, stop);
  const std::vector<float> keys = pool(problem.k(), batch, problem.kv_head(head), block, stop);
  BlockScores result{
      block, ceil_div(problem.num_queries(), block), ceil_div(problem.num_keys(), block), {}};
  result.scores.reserve(static_cast<size_t>(result.query_blocks * result.key_blocks));
  const int64_t width = problem.head_dim();
  for (int64_t i = 0; i < result.query_blocks; ++i) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange rows{i * block, std::min((i + 1) * block, problem.num_queries())};
    const std::vector<uint8_t> kept =
        kept_blocks(problem.mask(), batch, head, rows, problem.num_keys(), block);
    for (int64_t j = 0; j < result.key_blocks; ++j) {
      const double score =
          problem.scale(head) * dot(queries.data() + i * width, keys.data() + j * width, width);
      const bool any = kept[static_cast<size_t>(j)] != 0;
      result.scores.push_back(any ? static_cast<float>(score) : kMasked);
    }
  }
  return result;
}

BlockMask keep_top_blocks(const BlockScores& scores, int64_t count) {
  BlockMask mask = empty_mask(scores);
  for (int64_t i = 0; i < scores.query_blocks; ++i) {
    const float* row = scores.scores.data() + i * scores.key_blocks;
    const std::vector<int64_t> order = ranked(row, scores.key_blocks);
    for (int64_t n = 0; n < std::min(count, scores.key_blocks); ++n) {
      const int64_t j = order[static_cast<size_t>(n)];
      if (row[j] == kMasked) break;
      mask.bits[static_cast<size_t>(i * scores.key_blocks + j)] = 1;
    }
  }
  return mask;
}

BlockMask keep_block_mass(const BlockScores& scores, double p) {
  // Rounding must not ask for one more block.
  constexpr double kRounding = 1e-12;
  BlockMask mask = empty_mask(scores);
  for (int64_t i = 0; i < scores.query_blocks; ++i) {
    const float* row = scores.scores.data() + i * scores.key_blocks;
    const std::vector<int64_t> order = ranked(row, scores.key_blocks);
    const double top = row[order.front()];
    if (std::isinf(top)) continue;
    double total = 0;
    for (int64_t j : order) total += std::exp(row[j] - top);
    double mass = 0;
    for (int64_t j : order) {
      if (row[j] == kMasked || mass >= p * total * (1 - kRounding)) break;
      mass += std::exp(row[j] - top);
      mask.bits[static_cast<size_t>(i * scores.key_blocks + j)] = 1;
    }
  }
  return mask;
}

}  // namespace attnscope
