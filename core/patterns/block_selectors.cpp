#include "core/patterns/block_selectors.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/patterns/block_rules.h"
#include "core/patterns/block_scores.h"
#include "core/patterns/map_scores.h"
#include "core/patterns/picked_rows.h"
#include "core/patterns/token_blocks.h"

namespace attnscope {
namespace {

/// Keys that are added to a linear branch at once.
constexpr int64_t kLinearKeys = 1024;

[[noreturn]] void refuse(const MaskPattern& pattern, const AttentionProblem& problem,
                         const std::string& why) {
  throw usage_error("mask " + pattern.text + ": " + problem.name() + ": " + why);
}

/// Blocks of a side, at most.
int64_t most_blocks(const MaskPattern& pattern, const TokenGrid& tokens, int64_t block) {
  if (!has_tiles(pattern)) return ceil_div(tokens.tokens(), block);
  const auto tiles = tiles_of(tokens, pattern.tile);
  const int64_t volume = pattern.tile[0] * pattern.tile[1] * pattern.tile[2];
  int64_t others = 0;
  for (const IndexRange range : tokens.outside_video()) others += ceil_div(range.size(), volume);
  return tiles[0] * tiles[1] * tiles[2] + others;
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
                  int64_t head) {
  if (problem.mask().is_none()) return;
  const IndexRange queries = chosen_range(query_blocks_of(pattern, problem));
  const IndexRange keys = chosen_range(key_blocks_of(pattern, problem));
  if (queries.empty() || keys.empty()) return;
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

/// Makes what stands for the blocks that are dropped of one head.
class RestMaker {
 public:
  RestMaker(const MaskPattern& pattern, const ScoredHead& head, const ScoredBlocks& scored)
      : p_(pattern), head_(head), problem_(head.problem), s_(scored) {}

  DroppedTerms make() const {
    DroppedTerms terms;
    terms.rest = s_.rows.empty() || s_.columns.empty() ? BlockRest::renormalise : p_.rest;
    terms.scale = problem_.scale(head_.head);
    terms.gate = p_.gate;
    switch (terms.rest) {
      case BlockRest::renormalise:
      case BlockRest::lost:
        break;
      case BlockRest::row:
      case BlockRest::centroid:
        add_terms(terms);
        break;
      case BlockRest::coarse:
        add_coarse(terms);
        break;
      case BlockRest::linear:
        add_linear(terms);
        break;
    }
    return terms;
  }

 private:
  std::vector<double> means(const HeadTensor& tensor, const TokenBlocks& blocks,
                            const ChannelChange& change = {}) const {
    const bool queries = &tensor == &problem_.q();
    return block_means(tensor, head_.batch, queries ? head_.head : problem_.kv_head(head_.head),
                       blocks, head_.stop, change);
  }
  std::vector<double> query_means() const {
    return s_.query_means.empty() ? means(problem_.q(), s_.queries) : s_.query_means;
  }
  /// Less ScoredBlocks::centre, or one that is found here.
  std::pair<std::vector<double>, std::vector<double>> centred_keys() const {
    if (!s_.centre.empty()) return {s_.key_means, s_.centre};
    std::vector<double> keys = whole_keys();
    std::vector<double> centre = centre_means(keys, s_.keys.size(), problem_.head_dim());
    return {std::move(keys), std::move(centre)};
  }
  std::vector<double> whole_keys() const {
    if (s_.key_means.empty()) return means(problem_.k(), s_.keys);
    std::vector<double> keys = s_.key_means;
    if (!s_.centre.empty()) add(keys, s_.centre);
    return keys;
  }

  void add_terms(DroppedTerms& terms) const {
    if (terms.rest == BlockRest::row) {
      terms.key_means = whole_keys();
    } else {
      auto [keys, centre] = centred_keys();
      std::vector<int64_t> all_rows(static_cast<size_t>(s_.queries.size()));
      std::vector<int64_t> all_keys(static_cast<size_t>(s_.keys.size()));
      std::iota(all_rows.begin(), all_rows.end(), int64_t{0});
      std::iota(all_keys.begin(), all_keys.end(), int64_t{0});
      terms.shared = mean_products(query_means(), keys, all_rows, all_keys, problem_.head_dim(),
                                   terms.scale, head_.stop)
                         .values;
      terms.centre = std::move(centre);
    }
    if (problem_.v()) terms.value_means = means(problem_.v(), s_.keys);
  }

  /// softmax(scale·q̄·k̄)·v̄ among the blocks that are chosen among; 0 for other queries.
  void add_coarse(DroppedTerms& terms) const {
    if (!problem_.v()) return;
    BlockTable table = mean_products(query_means(), whole_keys(), s_.rows, s_.columns,
                                     problem_.head_dim(), terms.scale, head_.stop);
    softmax_rows(table);
    const std::vector<double> values = means(problem_.v(), s_.keys);
    const auto width = static_cast<size_t>(problem_.v().width());
    terms.coarse.resize(s_.queries.lengths.size() * width);
    for (int64_t i = 0; i < table.rows; ++i) {
      double* const out =
          terms.coarse.data() + static_cast<size_t>(s_.rows[static_cast<size_t>(i)]) * width;
      for (int64_t j = 0; j < table.columns; ++j) {
        const double share = table.row(i)[static_cast<size_t>(j)];
        const double* const value =
            values.data() + static_cast<size_t>(s_.columns[static_cast<size_t>(j)]) * width;
        for (size_t c = 0; c < width; ++c) out[c] += share * value[c];
      }
    }
  }

  /// As SLA's code has it, over all keys.
  void add_linear(DroppedTerms& terms) const {
    if (!problem_.v()) return;
    const auto width = static_cast<size_t>(problem_.head_dim());
    const auto outputs = static_cast<size_t>(problem_.v().width());
    terms.linear_keys.resize(width);
    terms.linear_values.resize(width * outputs);
    for (int64_t begin = 0; begin < problem_.num_keys(); begin += kLinearKeys) {
      const IndexRange part{begin, std::min(begin + kLinearKeys, problem_.num_keys())};
      std::vector<double> shares = rows_of(problem_.k(), part);
      const std::vector<double> values = rows_of(problem_.v(), part);
      for (int64_t key = 0; key < part.size(); ++key) {
        double* const share = shares.data() + static_cast<size_t>(key) * width;
        soft_shares({share, width});
        const double* const value = values.data() + static_cast<size_t>(key) * outputs;
        for (size_t d = 0; d < width; ++d) {
          terms.linear_keys[d] += share[d];
          for (size_t c = 0; c < outputs; ++c) {
            terms.linear_values[d * outputs + c] += share[d] * value[c];
          }
        }
      }
      stop_here(head_.stop);
    }
  }

  std::vector<double> rows_of(const HeadTensor& tensor, IndexRange tokens) const {
    std::vector<std::byte> raw(static_cast<size_t>(tokens.size() * tensor.row_bytes()));
    std::vector<float> floats(static_cast<size_t>(tokens.size() * tensor.width()));
    tensor.read_rows(head_.batch, problem_.kv_head(head_.head), tokens, raw.data());
    to_floats(tensor.dtype(), raw.data(), std::ssize(floats), floats.data());
    return {floats.begin(), floats.end()};
  }

  const MaskPattern& p_;
  const ScoredHead& head_;
  const AttentionProblem& problem_;
  const ScoredBlocks& s_;
};

void check_order(const MaskPattern& pattern, const AttentionProblem& problem) {
  for (const TokenGrid* tokens : {&problem.query_tokens(), &problem.key_tokens()}) {
    const std::string why = order_problem(pattern.order, OrderedSide::of(*tokens));
    if (why.empty()) continue;
    refuse(pattern, problem,
           (tokens == &problem.key_tokens() ? "its keys: " : "its queries: ") + why);
  }
}

}  // namespace

void check_selector(const MaskPattern& pattern, const AttentionProblem& problem, int64_t head) {
  const bool terms = pattern.rest == BlockRest::row || pattern.rest == BlockRest::centroid;
  if (terms && problem.score() != ScoreFunction{}) {
    refuse(pattern, problem,
           "its logits are not those of plain softmax, of which the terms of dropped blocks are "
           "(rest=renormalise goes without them)");
  }
  check_order(pattern, problem);
  if (has_tiles(pattern)) check_tiles(pattern, problem);
  require_open(pattern, problem, 0, head);
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
  int64_t parts = 1;
  if (pattern.kind == PatternKind::subblock || pattern.kind == PatternKind::dfs) {
    parts = std::max(pattern.cells[0], pattern.cells[1]);
  }
  if (pattern.kind == PatternKind::xattention) parts = pattern.block;
  const auto side = checked_mul(rows + keys, (width + 4) * 8);
  const auto means = side ? checked_mul(*side, 2 + parts) : std::nullopt;
  // Of a row of blocks: its cells' scores.
  const auto row = checked_mul(keys * 8, parts * parts);
  if (!kept_pairs || !table || !means || !row || tokens > (int64_t{1} << 40)) {
    throw Error(ErrorCode::resource, "the blocks are too many for any memory");
  }
  int64_t kept = *kept_pairs + *side + tokens * 4;
  int64_t meanwhile = *table + *means + *row + tokens * 16;
  if (pattern.rest == BlockRest::linear && problem.v()) {
    kept += (problem.head_dim() + 1) * problem.v().width() * 8;
    meanwhile += kLinearKeys * width * 16;
  }
  return {kept, kept + meanwhile};
}

int64_t picked_measuring_bytes(const MaskPattern& pattern, const AttentionProblem& problem,
                               int64_t rows, bool with_table) {
  const int64_t queries = most_blocks(pattern, problem.query_tokens(), query_block(pattern));
  const int64_t keys = most_blocks(pattern, problem.key_tokens(), key_block(pattern));
  return PickedGroup::bytes(problem.num_keys(), queries, keys, with_table) +
         PickedGroup::row_bytes(keys) * rows;
}

int64_t least_selector_bytes(const MaskPattern& pattern, const AttentionProblem& problem,
                             const TileBackend& backend) {
  int64_t bytes = selector_bytes(pattern, problem).meanwhile;
  if (reads_map(pattern)) {
    bytes += map_scores_bytes(problem, backend,
                              most_blocks(pattern, problem.query_tokens(), query_block(pattern)),
                              most_blocks(pattern, problem.key_tokens(), key_block(pattern)));
  }
  return bytes;
}

bool reads_map(const MaskPattern& pattern) {
  return pattern.kind == PatternKind::block_oracle || pattern.kind == PatternKind::skip_softmax;
}

Mask selected_blocks(const MaskPattern& pattern, const ScoredHead& head, ScoreKeeper* keeper) {
  check_selector(pattern, head.problem, head.head);
  require_open(pattern, head.problem, head.batch, head.head);
  ScoreKeeper alone;
  const std::shared_ptr<const ScoredBlocks> scored =
      (keeper != nullptr ? *keeper : alone).get(pattern, head);
  auto terms = std::make_shared<DroppedTerms>(RestMaker(pattern, head, *scored).make());
  terms->picks = std::make_shared<BlockPicks>(
      pick_blocks(pattern, *scored, head.problem.key_tokens(), head.stop));
  return picked_blocks_mask(std::move(terms), pattern.text);
}

}  // namespace attnscope
