#include "web/engine/page_map.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/cpu_backend.h"

namespace attnscope {
namespace {

/// Rows that the kernels take at once, and entries that are held for pooling.
constexpr int64_t kPageRows = 96;
constexpr int64_t kPooledEntries = int64_t{1} << 20;

HeadTensor copied_tensor(const char* name, const std::byte* data, DType dtype, int64_t tokens,
                         int64_t width) {
  std::vector<std::byte> bytes(static_cast<size_t>(tokens * width * dtype_bytes(dtype)));
  std::memcpy(bytes.data(), data, bytes.size());
  return HeadTensor(std::make_shared<MemoryTensor>(name, dtype, std::vector<int64_t>{tokens, width},
                                                   std::move(bytes)),
                    Layout::sd);
}

}  // namespace

AttentionProblem page_problem(PageHead& head) {
  if (head.queries < 1 || head.keys < 1 || head.dim < 1) throw usage_error("an empty map");
  const bool divided = needs_norms(head.score, Quantity::weights);
  if (divided && static_cast<int64_t>(head.norms.size()) != head.queries) {
    throw usage_error("the page's row sums are of another number of queries");
  }
  AttentionProblem::Parts parts;
  parts.q = copied_tensor("q", head.q, head.dtype, head.queries, head.dim);
  parts.k = copied_tensor("k", head.k, head.dtype, head.keys, head.dim);
  parts.scale = head.scale;
  parts.score = head.score;
  parts.name = "the page's head";
  parts.id.kind = CallKind::cross;  // of queries and keys that were chosen, any number of each
  if (head.mask) parts.mask = page_mask(std::move(*head.mask), head.keys);
  return AttentionProblem::make(std::move(parts));
}

void pool_row(const float* entries, int64_t count, int64_t side, float* max, double* sum) {
  for (int64_t begin = 0, texel = 0; begin < count; begin += side, ++texel) {
    const int64_t end = std::min(begin + side, count);
    float largest = max[texel];
    double total = 0;
    for (int64_t i = begin; i < end; ++i) {
      largest = std::max(largest, entries[i]);
      total += static_cast<double>(entries[i]);
    }
    max[texel] = largest;
    sum[texel] += total;
  }
}

PageMap::PageMap(PageHead head)
    : backend_(make_cpu_backend({.threads = 1})),
      problem_(page_problem(head)),
      head_(backend_->bind(problem_, 0, 0)),
      all_keys_(head.all_keys),
      given_norms_(std::move(head.norms)) {
  if (!needs_norms(problem_.score(), Quantity::weights)) return;
  own_norms_.resize(static_cast<size_t>(queries()));
  has_own_norm_.resize(own_norms_.size());
}

std::span<const RowNorm> PageMap::own_norms(IndexRange rows, const QueryBlock& block) {
  const auto first = static_cast<size_t>(rows.begin);
  const auto count = static_cast<size_t>(rows.size());
  const std::span<RowNorm> norms = std::span(own_norms_).subspan(first, count);
  const std::span<uint8_t> known = std::span(has_own_norm_).subspan(first, count);
  if (std::find(known.begin(), known.end(), 0) != known.end()) {
    head_->row_norms(block, norms, workspace_);
    std::fill(known.begin(), known.end(), uint8_t{1});
  }
  return norms;
}

void PageMap::compute(IndexRange rows, IndexRange keys, Quantity quantity, bool own, float* out) {
  const int64_t row_bytes = problem_.q().row_bytes();
  queries_.resize(static_cast<size_t>(kPageRows * row_bytes));
  index_.resize(static_cast<size_t>(kPageRows));
  const int64_t needed = backend_->workspace_bytes(problem_, kPageRows, problem_.num_keys(), false);
  if (static_cast<int64_t>(workspace_.size()) < needed) {
    workspace_.resize(static_cast<size_t>(needed));
  }
  for (int64_t row = rows.begin; row < rows.end; row += kPageRows) {
    const IndexRange part{row, std::min(row + kPageRows, rows.end)};
    const auto count = static_cast<size_t>(part.size());
    problem_.q().read_rows(0, 0, part, queries_.data());
    std::iota(index_.begin(), index_.begin() + part.size(), row);
    const QueryBlock block{queries_.data(), std::span(index_).first(count)};
    std::span<const RowNorm> norms;
    if (needs_norms(problem_.score(), quantity)) {
      norms = own && all_keys_ ? own_norms(part, block)
                               : std::span(given_norms_).subspan(static_cast<size_t>(row), count);
    }
    std::byte* const place = reinterpret_cast<std::byte*>(out + (row - rows.begin) * keys.size());
    const EmitTarget target{{&place, 1}, keys.size(), keys.size(), Encoding::f32};
    head_->emit(block, norms, keys, quantity, target, workspace_);
  }
}

std::span<const float> PageMap::entries(IndexRange rows, IndexRange keys, Quantity quantity,
                                        bool own) {
  entries_.resize(static_cast<size_t>(rows.size() * keys.size()));
  compute(rows, keys, quantity, own, entries_.data());
  return entries_;
}

void PageMap::texels(int level, IndexRange rows, IndexRange cols, float* max, float* mean) {
  const int64_t side = int64_t{1} << level;
  const IndexRange keys{cols.begin * side, std::min(cols.end * side, this->keys())};
  const int64_t at_once = std::clamp<int64_t>(kPooledEntries / keys.size(),
                                              std::min<int64_t>(kPageRows, side), kPageRows);
  std::vector<float> buffer(static_cast<size_t>(at_once * keys.size()));
  std::vector<double> sums(static_cast<size_t>(cols.size()));
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    float* const largest = max + (row - rows.begin) * cols.size();
    std::fill_n(largest, cols.size(), 0.0f);
    std::fill(sums.begin(), sums.end(), 0.0);
    const IndexRange covered{row * side, std::min((row + 1) * side, queries())};
    for (int64_t first = covered.begin; first < covered.end; first += at_once) {
      const IndexRange part{first, std::min(first + at_once, covered.end)};
      compute(part, keys, Quantity::weights, false, buffer.data());
      for (int64_t r = 0; r < part.size(); ++r) {
        pool_row(buffer.data() + r * keys.size(), keys.size(), side, largest, sums.data());
      }
    }
    for (int64_t col = 0; col < cols.size(); ++col) {
      const int64_t width = std::min(side, keys.size() - col * side);
      mean[(row - rows.begin) * cols.size() + col] = static_cast<float>(
          sums[static_cast<size_t>(col)] / static_cast<double>(covered.size() * width));
    }
  }
}

double PageMap::lse(int64_t row) {
  if (!needs_norms(problem_.score(), Quantity::weights)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (!all_keys_) return given_norms_[static_cast<size_t>(row)].lse();
  entries({row, row + 1}, {0, 1}, Quantity::weights, true);
  return own_norms_[static_cast<size_t>(row)].lse();
}

}  // namespace attnscope
