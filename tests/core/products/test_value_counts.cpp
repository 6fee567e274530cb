#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/products/value_counts.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

std::vector<float> random_values(size_t count, double spread) {
  std::mt19937_64 random(5);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(
        static_cast<float>(spread * (static_cast<double>(random() % 20001) / 10000.0 - 1)));
    if (i % 7 == 0) values.push_back(kMasked);
  }
  return values;
}

/// By the definition: every bin from that of the least value to that of the greatest.
std::vector<int64_t> counts_of(const std::vector<float>& values, double width) {
  std::map<int64_t, int64_t> bins;
  for (const float value : values) {
    if (value != kMasked) ++bins[static_cast<int64_t>(std::floor(double{value} / width))];
  }
  std::vector<int64_t> counts(static_cast<size_t>(bins.rbegin()->first - bins.begin()->first + 1));
  for (const auto& [bin, count] : bins) {
    counts[static_cast<size_t>(bin - bins.begin()->first)] = count;
  }
  return counts;
}

}  // namespace

TEST_CASE("values are counted in the narrowest bins, whatever their order and parts") {
  for (const double spread : {1e-6, 0.1, 3.0, 250.0, 1e30}) {
    std::vector<float> values = random_values(3000, spread);
    ValueCounts whole;
    whole.add(values);
    INFO(spread);
    CHECK(std::ssize(whole.counts()) <= ValueCounts::kMostBins);
    CHECK((whole.exponent() == ValueCounts::kLeastExponent ||
           std::ssize(whole.counts()) > ValueCounts::kMostBins / 2 - 1));
    CHECK(whole.total() == 3000);
    CHECK(whole.masked() == std::count(values.begin(), values.end(), kMasked));
    CHECK(whole.counts() == counts_of(values, whole.width()));
    std::sort(values.begin(), values.end());
    ValueCounts joined;
    for (size_t i = 0; i < values.size(); i += 100) {
      ValueCounts part;
      for (size_t j = i; j < std::min(i + 100, values.size()); ++j) part.add({&values[j], 1});
      joined.add(part);
    }
    CHECK(joined.exponent() == whole.exponent());
    CHECK(joined.edge(0) == whole.edge(0));
    CHECK(joined.counts() == whole.counts());
    CHECK(joined.masked() == whole.masked());
  }
}

TEST_CASE("nothing but masked values has no bins") {
  const std::vector<float> values(5, kMasked);
  ValueCounts counts;
  counts.add(values);
  CHECK(counts.counts().empty());
  CHECK(counts.total() == 0);
  CHECK(counts.masked() == 5);
}

TEST_CASE("values that are not finite are refused, the largest float32 ones are counted") {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float odd : {infinite, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> values{1, odd, 2};
    ValueCounts counts;
    CHECK_THROWS_AS(counts.add(values), Error);
    CHECK(counts.total() == 0);
    CHECK(counts.masked() == 0);
  }
  const std::vector<float> values{3e38F, -3e38F, 0, std::numeric_limits<float>::max()};
  ValueCounts counts;
  counts.add(values);
  CHECK(counts.total() == 4);
  CHECK(std::ssize(counts.counts()) <= ValueCounts::kMostBins);
  CHECK(counts.edge(0) <= -3e38);
  CHECK(counts.edge(counts.counts().size()) > double{std::numeric_limits<float>::max()});
  CHECK(counts.counts() == counts_of(values, counts.width()));
}

TEST_CASE("values below the least one are counted by themselves") {
  const std::vector<float> values{kMasked, -5, 1, 2, 0.5F};
  ValueCounts counts;
  counts.add(values, 1);
  CHECK(counts.total() == 2);
  CHECK(counts.masked() == 3);
  CHECK(counts.edge(0) == 1);
}

TEST_CASE("wider bins hold what the narrower ones did") {
  const std::vector<float> values = random_values(500, 3);
  ValueCounts counts;
  counts.add(values);
  counts.widen(0);
  CHECK(counts.width() == 1);
  CHECK(counts.counts() == counts_of(values, 1));
}
