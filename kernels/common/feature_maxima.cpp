#include "kernels/common/feature_maxima.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

bool meet(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  for (size_t c = 0; c < a.size(); ++c) {
    if (a[c] > 0 && b[c] > 0) return true;
  }
  return false;
}

}  // namespace

std::vector<int32_t> FeatureMaxima::features(const HeadTensor& tensor, int64_t head,
                                             int64_t token) const {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.row_bytes()));
  std::vector<float> row(static_cast<size_t>(tensor.width()));
  tensor.read_rows(batch_, head, {token, token + 1}, bytes.data());
  to_floats(tensor.dtype(), bytes.data(), tensor.width(), row.data());
  // Comparisons of bits: whoever asks may be taking subnormal numbers for 0.
  std::vector<int32_t> bits;
  for (const float x : row) bits.push_back(std::max(std::bit_cast<int32_t>(x), 0));
  return bits;
}

void FeatureMaxima::find() const {
  largest_.assign(static_cast<size_t>(problem_.head_dim()), 0);
  for (int64_t key = 0; key < problem_.num_keys(); ++key) {
    const std::vector<int32_t> row = features(problem_.k(), problem_.kv_head(head_), key);
    for (size_t c = 0; c < row.size(); ++c) largest_[c] = std::max(largest_[c], row[c]);
  }
}

bool FeatureMaxima::meets_any(int64_t query) const {
  const std::vector<int32_t> row = features(problem_.q(), head_, query);
  if (std::none_of(row.begin(), row.end(), [](int32_t bits) { return bits > 0; })) return false;
  std::call_once(once_, [this] { find(); });
  if (!meet(row, largest_)) return false;
  if (problem_.mask().is_none()) return true;
  for (int64_t key = 0; key < problem_.num_keys(); ++key) {
    float bias = 0;
    problem_.mask().fill_bias(batch_, head_, {&query, 1}, {key, key + 1}, &bias, 1);
    if (bias > kMasked && meet(row, features(problem_.k(), problem_.kv_head(head_), key))) {
      return true;
    }
  }
  return false;
}

}  // namespace attnscope
