#include "core/patterns/keys_seen.h"

#include <algorithm>
#include <array>

#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

constexpr int64_t kKeysAtOnce = 2048;

int64_t keys_seen(const AttentionProblem& problem, int64_t batch, int64_t head, int64_t row) {
  const Mask& mask = problem.mask();
  std::array<float, kKeysAtOnce> bias{};
  int64_t seen = 0;
  for (int64_t begin = 0; begin < problem.num_keys(); begin += kKeysAtOnce) {
    const IndexRange keys{begin, std::min(begin + kKeysAtOnce, problem.num_keys())};
    const TileClass kept = mask.classify(batch, head, {row, row + 1}, keys);
    if (kept == TileClass::full) seen += keys.size();
    if (kept != TileClass::mixed) continue;
    mask.fill_bias(batch, head, {&row, 1}, keys, bias.data(), kKeysAtOnce);
    seen += std::count_if(bias.begin(), bias.begin() + keys.size(),
                          [](float value) { return value > kMasked; });
  }
  return seen;
}

}  // namespace

std::optional<double> mean_keys_seen(const AttentionProblem& problem, int64_t batch, int64_t head,
                                     std::span<const int64_t> rows) {
  if (rows.empty()) return std::nullopt;
  if (problem.mask().is_none()) return static_cast<double>(problem.num_keys());
  int64_t sum = 0, live = 0;
  for (const int64_t row : rows) {
    const int64_t seen = keys_seen(problem, batch, head, row);
    sum += seen;
    live += seen > 0 ? 1 : 0;
  }
  if (live == 0) return std::nullopt;
  return static_cast<double>(sum) / static_cast<double>(live);
}

}  // namespace attnscope
