#include <cmath>
#include <limits>
#include <vector>

#include "io/metrics/run_spread.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("Student's quantiles are the tables'") {
  // 0.975 quantiles, to the digits that tables print.
  const std::pair<int64_t, double> known[] = {
      {1, 12.7062047364},  {2, 4.30265272991},  {3, 3.18244630528},
      {4, 2.77644510520},  {5, 2.57058183564},  {9, 2.26215716280},
      {10, 2.22813885196}, {29, 2.04522964213}, {99, 1.98421695151}};
  for (const auto& [freedom, t] : known) {
    INFO(freedom << " degrees of freedom");
    CHECK(std::abs(student_t95(freedom) - t) < 1e-9);
  }
  CHECK(std::abs(student_t95(40) - 2.021075) < 1e-6);
  CHECK(std::abs(student_t95(120) - 1.979930) < 1e-6);
  // Many are the normal distribution.
  CHECK(std::abs(student_t95(int64_t{1} << 40) - 1.959963984540054) < 1e-5);
}

TEST_CASE("runs have a mean, a deviation and an interval") {
  const std::vector<double> values{2, kNone, 4, 9};
  const RunSpread spread = spread_of(values);
  CHECK(spread.runs == 3);
  CHECK(spread.mean == 5);
  // √((9 + 1 + 16) / 2)
  CHECK(spread.deviation == Approx(std::sqrt(13.0)).epsilon(1e-15));
  CHECK(spread.interval == Approx(4.30265272991 * std::sqrt(13.0) / std::sqrt(3.0)).epsilon(1e-10));
  const RunSpread one = spread_of(std::vector<double>{7, kNone});
  CHECK(one.runs == 1);
  CHECK(one.mean == 7);
  CHECK(std::isnan(one.deviation));
  CHECK(std::isnan(one.interval));
  const RunSpread none = spread_of(std::vector<double>{kNone});
  CHECK(none.runs == 0);
  CHECK(std::isnan(none.mean));
}

TEST_CASE("means of two groups of runs differ within Welch's interval") {
  // Variances of means 1 and 4; degrees of freedom 25 / (1/3 + 16/4) = 5.77, so 5.
  const RunSpread a{4, 10, 2, 0}, b{5, 7, std::sqrt(20.0), 0};
  const RunSpread change = spread_of_difference(a, b);
  CHECK(change.runs == 4);
  CHECK(change.mean == 3);
  CHECK(change.interval == Approx(2.57058183564 * std::sqrt(5.0)).epsilon(1e-10));
  CHECK(std::isnan(spread_of_difference(a, {1, 7, kNone, kNone}).interval));
  CHECK(spread_of_difference({3, 1, 0, 0}, {3, 2, 0, 0}).interval == 0);
}
