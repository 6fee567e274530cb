#include "kernels/common/positive_features.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/base/checked_math.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kKeysAtOnce = 1024;

}  // namespace

PositiveFeatures::PositiveFeatures(const AttentionProblem& problem, int64_t batch, int64_t head)
    : problem_(problem),
      batch_(batch),
      head_(head),
      words_(ceil_div(problem.head_dim(), kWordBits)) {}

void PositiveFeatures::find(const HeadTensor& tensor, int64_t head, int64_t token,
                            uint64_t* to) const {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.row_bytes()));
  std::vector<float> row(static_cast<size_t>(tensor.width()));
  tensor.read_rows(batch_, head, {token, token + 1}, bytes.data());
  to_floats(tensor.dtype(), bytes.data(), tensor.width(), row.data());
  for (size_t c = 0; c < row.size(); ++c) {
    // A comparison of bits: whoever asks may be taking subnormal numbers for 0.
    const bool above = std::bit_cast<int32_t>(row[c]) > 0;
    to[c / kWordBits] |= uint64_t{above} << (c % kWordBits);
  }
}

void PositiveFeatures::find_keys() const {
  const auto words = static_cast<size_t>(words_);
  keys_.assign(static_cast<size_t>(problem_.num_keys()) * words, 0);
  any_.assign(words, 0);
  for (int64_t key = 0; key < problem_.num_keys(); ++key) {
    uint64_t* const at = keys_.data() + key * words_;
    find(problem_.k(), problem_.kv_head(head_), key, at);
    for (size_t w = 0; w < words; ++w) any_[w] |= at[w];
  }
}

bool PositiveFeatures::meets(const Bits& row, const uint64_t* key) const {
  for (size_t w = 0; w < row.size(); ++w) {
    if ((row[w] & key[w]) != 0) return true;
  }
  return false;
}

bool PositiveFeatures::meets_any(int64_t query) const {
  Bits row(static_cast<size_t>(words_), 0);
  find(problem_.q(), head_, query, row.data());
  if (std::all_of(row.begin(), row.end(), [](uint64_t bits) { return bits == 0; })) return false;
  std::call_once(once_, [this] { find_keys(); });
  if (!meets(row, any_.data())) return false;
  if (problem_.mask().is_none()) return true;
  float bias[kKeysAtOnce];
  for (int64_t first = 0; first < problem_.num_keys(); first += kKeysAtOnce) {
    const IndexRange keys{first, std::min(problem_.num_keys(), first + kKeysAtOnce)};
    problem_.mask().fill_bias(batch_, head_, {&query, 1}, keys, bias, kKeysAtOnce);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      if (bias[key - first] > kMasked && meets(row, keys_.data() + key * words_)) return true;
    }
  }
  return false;
}

}  // namespace attnscope
