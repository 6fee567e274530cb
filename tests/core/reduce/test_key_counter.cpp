#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "core/reduce/key_counter.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The definition, for weights whose sums are exact.
KeyCounts counted_by_sorting(std::vector<float> weights) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  double total = 0;
  for (const float weight : weights) total += double{weight};
  KeyCounts counts{};
  double sum = 0;
  size_t share = 0;
  for (size_t i = 0; i < weights.size() && weights[i] > 0; ++i) {
    sum += double{weights[i]};
    while (share < counts.size() && sum >= kKeyShares[share] * total) {
      counts[share++] = static_cast<int64_t>(i) + 1;
    }
  }
  return counts;
}

KeyCounts count(KeyCounter& counter, const std::vector<float>& weights) {
  return counter.count(RowEntries<float>{weights.data(), 1}, static_cast<int64_t>(weights.size()));
}

}  // namespace

TEST_CASE("keys are counted as sorting counts them, row after row") {
  std::mt19937_64 random(3);
  KeyCounter counter;
  for (int round = 0; round < 400; ++round) {
    INFO("round " << round);
    std::vector<float> weights(static_cast<size_t>(pick(random, 1, 300)));
    // Few distinct weights, or many; small beside large ones; some are 0.
    const int64_t most = int64_t{1} << pick(random, 1, 20);
    for (float& weight : weights) {
      const int64_t value = pick(random, 0, 4) == 0 ? most : pick(random, 0, most);
      weight = std::ldexp(static_cast<float>(value), -20);
    }
    CHECK(count(counter, weights) == counted_by_sorting(weights));
  }
}

TEST_CASE("rows of one key, of nothing, and of weights above 1 are counted") {
  KeyCounter counter;
  CHECK(count(counter, {0.25f}) == KeyCounts{1, 1, 1, 1, 1});
  CHECK(count(counter, {0, 0, 0}) == KeyCounts{0, 0, 0, 0, 0});
  CHECK(count(counter, {1024, 1, 0}) == KeyCounts{1, 1, 1, 1, 1});
  CHECK(count(counter, {1, 1, 1, 1}) == KeyCounts{2, 4, 4, 4, 4});
  // Nothing of those rows is left.
  CHECK(count(counter, {0.5f, 0.5f}) == KeyCounts{1, 2, 2, 2, 2});
}
