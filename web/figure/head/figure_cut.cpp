#include "web/figure/head/figure_cut.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "core/problem/signed_weights.h"
#include "web/figure/figure_page.h"
#include "web/figure/head/figure_refusal.h"

namespace attnscope {
namespace {

/// Bytes of a page at most.
constexpr int64_t kMostPageBytes = 32'000'000;
constexpr int64_t kMostStride = int64_t{1} << 20;
/// A row's sum: a double and an exponent.
constexpr int64_t kNormBytes = 12;

CutTokens cut_tokens(const std::string& text, const std::string& option, int64_t stride,
                     int64_t total) {
  const IndexRange range = parse_crop(text.empty() ? ":" : text, option, total);
  return {range.begin, stride, ceil_div(range.size(), stride), total, range.end};
}

std::vector<std::byte> read_tokens(const HeadTensor& tensor, int64_t batch, int64_t head,
                                   const CutTokens& tokens) {
  const int64_t row_bytes = tensor.row_bytes();
  std::vector<std::byte> bytes(static_cast<size_t>(tokens.count * row_bytes));
  if (tokens.stride == 1) {
    tensor.read_rows(batch, head, {tokens.first, tokens.first + tokens.count}, bytes.data());
    return bytes;
  }
  for (int64_t i = 0; i < tokens.count; ++i) {
    const int64_t token = tokens.at(i);
    tensor.read_rows(batch, head, {token, token + 1}, bytes.data() + i * row_bytes);
  }
  return bytes;
}

void require_weights(const AttentionProblem& problem) {
  try {
    require_one_sign(problem, "a figure of weights");
  } catch (const Error& error) {
    throw FigureRefusal(error.code(), error.what());
  }
  if (!problem.mask().has_finite_bias()) return;
  throw FigureRefusal(
      ErrorCode::usage,
      fmt::format("{}: its mask ({}) adds biases to logits, which a page does not carry",
                  problem.name(), problem.mask().describe()));
}

/// The least stride from that of the cut on that makes its page small enough.
int64_t sufficient_stride(const FigureCut& cut) {
  FigureChoice choice = cut.choice;
  for (; choice.stride < kMostStride; ++choice.stride) {
    const FigureCut wider = make_cut(choice, *cut.problem, cut.batch, cut.head);
    if (wider.page_bytes() <= kMostPageBytes) break;
  }
  return choice.stride;
}

void require_small(const FigureCut& cut) {
  const FigureChoice& choice = cut.choice;
  const int64_t bytes = cut.page_bytes();
  if (bytes <= kMostPageBytes) return;
  const int64_t stride = sufficient_stride(cut);
  throw FigureRefusal(
      ErrorCode::usage,
      fmt::format("the page would have {:.1f} MB of queries and keys, more than the {} MB that are "
                  "sent and opened easily: take {} (one query and one key in {}), or a part by {} "
                  "and {} (of {} queries and {} keys)",
                  static_cast<double>(bytes) * 1e-6, kMostPageBytes / 1'000'000,
                  choice.option("stride", std::to_string(stride)), stride,
                  choice.option("rows", "A:B"), choice.option("cols", "A:B"),
                  cut.problem->num_queries(), cut.problem->num_keys()));
}

}  // namespace

int64_t FigureCut::norm_bytes() const {
  return needs_norms(problem->score(), Quantity::weights) ? rows.count * kNormBytes : 0;
}

int64_t FigureCut::page_bytes() const {
  return encoded_bytes(query_bytes()) + encoded_bytes(key_bytes()) + encoded_bytes(norm_bytes());
}

int FigureCut::base_level() const {
  int level = 0;
  while (ceil_div(std::max(rows.count, keys.count), int64_t{1} << level) > choice.base_texels) {
    ++level;
  }
  return level;
}

int64_t FigureCut::base_bytes() const {
  const int64_t side = int64_t{1} << base_level();
  return 2 * ceil_div(rows.count, side) * ceil_div(keys.count, side) *
         static_cast<int64_t>(sizeof(uint16_t));
}

FigureCut make_cut(const FigureChoice& choice, const AttentionProblem& problem, int64_t batch,
                   int64_t head) {
  const char* const dashes = choice.in_python ? "" : "--";
  return {
      &problem,
      batch,
      head,
      cut_tokens(choice.rows, dashes + std::string("rows"), choice.stride, problem.num_queries()),
      cut_tokens(choice.cols, dashes + std::string("cols"), choice.stride, problem.num_keys()),
      choice};
}

void require_page(const FigureCut& cut) {
  require_weights(*cut.problem);
  require_small(cut);
}

int64_t whole_page_bytes(const FigureCut& cut) {
  return cut.page_bytes() + encoded_bytes(cut.base_bytes()) + figure_frame_bytes();
}

std::vector<std::byte> read_queries(const FigureCut& cut) {
  return read_tokens(cut.problem->q(), cut.batch, cut.head, cut.rows);
}

std::vector<std::byte> read_keys(const FigureCut& cut) {
  return read_tokens(cut.problem->k(), cut.batch, cut.problem->kv_head(cut.head), cut.keys);
}

}  // namespace attnscope
