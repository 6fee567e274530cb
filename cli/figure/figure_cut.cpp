#include "cli/figure/figure_cut.h"

#include <fmt/core.h>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "web/figure/figure_page.h"

namespace attnscope {
namespace {

/// Bytes of a page at most.
constexpr int64_t kMostPageBytes = 32'000'000;
/// A row's sum: a double and an exponent.
constexpr int64_t kNormBytes = 12;

CutTokens cut_tokens(const std::string& text, const char* option, int64_t stride, int64_t total) {
  const IndexRange range = parse_crop(text.empty() ? ":" : text, option, total);
  return {range.begin, stride, ceil_div(range.size(), stride), total};
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

/// The least stride that makes a page small enough.
int64_t sufficient_stride(FigureRequest request, const FigureCut& cut) {
  int64_t stride = request.stride;
  for (; stride < 1 << 20; ++stride) {
    request.stride = stride;
    if (make_cut(request, *cut.problem, cut.batch, cut.head).page_bytes() <= kMostPageBytes) break;
  }
  return stride;
}

}  // namespace

int64_t FigureCut::norm_bytes() const {
  return needs_norms(problem->score(), Quantity::weights) ? rows.count * kNormBytes : 0;
}

int64_t FigureCut::page_bytes() const {
  return encoded_bytes(query_bytes()) + encoded_bytes(key_bytes()) + encoded_bytes(norm_bytes());
}

FigureCut make_cut(const FigureRequest& request, const AttentionProblem& problem, int64_t batch,
                   int64_t head) {
  return {&problem, batch, head,
          cut_tokens(request.rows, "--rows", request.stride, problem.num_queries()),
          cut_tokens(request.cols, "--cols", request.stride, problem.num_keys())};
}

void require_small(const FigureRequest& request, const FigureCut& cut) {
  const int64_t bytes = cut.page_bytes();
  if (bytes <= kMostPageBytes) return;
  throw usage_error(
      fmt::format("the page would have {:.1f} MB of queries and keys, more than the {} MB that are "
                  "sent and opened "
                  "easily: take --stride {} (one query and one key in {}), or a part by --rows A:B "
                  "and --cols A:B (of {} "
                  "queries and {} keys)",
                  static_cast<double>(bytes) * 1e-6, kMostPageBytes / 1'000'000,
                  sufficient_stride(request, cut), sufficient_stride(request, cut),
                  cut.problem->num_queries(), cut.problem->num_keys()));
}

std::vector<std::byte> read_queries(const FigureCut& cut) {
  return read_tokens(cut.problem->q(), cut.batch, cut.head, cut.rows);
}

std::vector<std::byte> read_keys(const FigureCut& cut) {
  return read_tokens(cut.problem->k(), cut.batch, cut.problem->kv_head(cut.head), cut.keys);
}

}  // namespace attnscope
