#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mass_range.h"
#include "core/base/number_words.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("numbers are decimals where people read them, else powers of ten") {
  CHECK(number_words(0) == "0");
  CHECK(number_words(0.05) == "0.05");
  CHECK(number_words(0.00123) == "0.00123");
  CHECK(number_words(0.0009996) == "0.001");
  CHECK(number_words(0.000999) == "9.99×10⁻⁴");
  CHECK(number_words(0.00002) == "2×10⁻⁵");
  CHECK(number_words(1e-8) == "10⁻⁸");
  CHECK(number_words(-3.21e-12) == "-3.21×10⁻¹²");
  CHECK(number_words(17.8234) == "17.8");
  CHECK(number_words(999.6) == "999.6");
  CHECK(number_words(17776) == "17776");
  CHECK(number_words(100000) == "100000");
  CHECK(number_words(4.2e9) == "4.2×10⁹");
  CHECK(number_words(1.0367, 2) == "1");
  CHECK(number_words(0.3125) == "0.313");
  CHECK(number_words(1.40371e-4, 4) == "1.404×10⁻⁴");
  CHECK(number_words(std::nan("")) == "nan");
  CHECK(number_words(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(number_words(std::numeric_limits<double>::denorm_min()) == "4.94×10⁻³²⁴");
  CHECK(number_words(std::numeric_limits<double>::max()) == "1.8×10³⁰⁸");
}

TEST_CASE("shares are per cent, and less than all is not told as all") {
  CHECK(share_words(0) == "0\u00a0%");
  CHECK(share_words(1) == "100\u00a0%");
  CHECK(share_words(0.123) == "12.3\u00a0%");
  CHECK(share_words(0.00393) == "0.393\u00a0%");
  CHECK(share_words(2.76e-6) == "0.000276\u00a0%");
  CHECK(share_words(1.2e-9) == "1.2×10⁻⁹");
  CHECK(share_words(-0.5) == "-50\u00a0%");
  CHECK(share_words(0.000803, 2) == "0.08\u00a0%");
  CHECK(share_words(0.9951, 2) == "99.5\u00a0%");
  CHECK(share_words(0.9998) == "99.98\u00a0%");
  CHECK(share_words(0.99999) == "99.999\u00a0%");
  CHECK(share_words(1.25) == "125\u00a0%");
  CHECK(share_words(std::nan("")) == "nan");
}

TEST_CASE("ticks are 1, 2 or 5 times powers of ten, as many as were asked for at most") {
  CHECK(linear_ticks(0, 1, 6) == std::vector<double>{0, 0.2, 0.2 * 2, 0.2 * 3, 0.2 * 4, 0.2 * 5});
  CHECK(linear_ticks(-3, 3, 3) == std::vector<double>{0});
  CHECK(linear_ticks(1, 1, 5).empty());
  CHECK(linear_ticks(0, std::numeric_limits<double>::infinity(), 5).empty());
  for (const double low : {-7.3, 0.0, 1e-9, 2e5}) {
    for (const double size : {1e-6, 0.37, 1.0, 12345.0}) {
      for (int most = 1; most < 30; ++most) {
        const auto linear = linear_ticks(low, low + size, most);
        INFO(low << " + " << size << ", " << most);
        CHECK(static_cast<int>(linear.size()) <= most);
        if (most >= 6) CHECK(linear.size() >= 2);
        for (const double tick : linear) {
          CHECK(tick >= low - 1e-6 * size);
          CHECK(tick <= low + size * (1 + 1e-6));
        }
      }
    }
  }
}

TEST_CASE("ticks of logarithms are decades, and steps between them where these are few") {
  const auto words = [](double low, double high, int most) {
    return tick_words(log_ticks(low, high, most));
  };
  using Words = std::vector<std::string>;
  CHECK(words(3e-6, 0.3, 8) == Words{"10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"});
  CHECK(words(1e-9, 1, 4) == Words{"10⁻⁹", "10⁻⁶", "10⁻³", "1"});
  CHECK(words(1.16e-4, 0.117, 4) == Words{"0.001", "0.1"});
  CHECK(words(0.003, 30, 8) == Words{"0.01", "0.1", "1", "10"});
  CHECK(words(8e-3, 3, 40) == Words{"0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"});
  CHECK(words(8e-5, 2e-3, 8) == Words{"0.0001", "0.0002", "0.0005", "0.001", "0.002"});
  CHECK(words(3e-6, 6e-5, 8) == Words{"5×10⁻⁶", "10⁻⁵", "2×10⁻⁵", "5×10⁻⁵"});
  CHECK(words(0.21, 0.45, 8) == Words{"0.3", "0.4"});
  CHECK(log_ticks(0, 1, 5).empty());
  CHECK(log_ticks(2, 1, 5).empty());
  for (const double low : {1e-300, 3e-9, 0.7, 5e4}) {
    for (const double ratio : {1.5, 4.0, 60.0, 1e4, 1e30}) {
      for (int most = 2; most < 40; ++most) {
        const auto ticks = log_ticks(low, low * ratio, most);
        INFO(low << " × " << ratio << ", " << most);
        CHECK(static_cast<int>(ticks.size()) <= most);
        for (size_t i = 1; i < ticks.size(); ++i) {
          CHECK(std::log(ticks[i] / ticks[i - 1]) >= std::log(ratio) / (most - 1) * 0.99);
        }
      }
    }
  }
}

TEST_CASE("the words of an axis are of one notation and differ") {
  using Words = std::vector<std::string>;
  CHECK(tick_words(std::vector<double>{0, 0.0005, 0.001, 0.0015}) ==
        Words{"0", "0.0005", "0.001", "0.0015"});
  CHECK(tick_words(std::vector<double>{0, 2e-5, 4e-5}) == Words{"0", "2×10⁻⁵", "4×10⁻⁵"});
  CHECK(tick_words(std::vector<double>{-0.1, 0, 0.1}) == Words{"-0.1", "0", "0.1"});
  CHECK(tick_words(std::vector<double>{0.1, 0.1 + 0.2}) == Words{"0.1", "0.3"});
  CHECK(tick_words(std::vector<double>{1.0002, 1.0004}) == Words{"1.0002", "1.0004"});
  CHECK(tick_words(std::vector<double>{}).empty());
  CHECK(tick_words(std::vector<double>{0}) == Words{"0"});
  for (const double low : {17.0, 1e3, 1e6, 1e-5}) {
    const auto texts = tick_words(linear_ticks(low, low * 1.0003, 7));
    CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == texts.size());
  }
}

TEST_CASE("powers of ten are written for all sizes, but those next to 1") {
  CHECK(power_words(0, 2) == "0");
  CHECK(power_words(0.4, 2) == "4×10⁻¹");
  CHECK(power_words(-0.0512, 2) == "-5.1×10⁻²");
  CHECK(power_words(1e-6, 2) == "10⁻⁶");
  CHECK(power_words(3.14, 2) == "3.1");
  CHECK(power_words(10, 2) == "10");
  CHECK(power_words(12345, 2) == "1.2×10⁴");
}

TEST_CASE("the ends that keep the mass are some of the values") {
  const std::vector<ValueMass> beyond{{1, 10}, {2, 8}, {8, 8}};
  CHECK(mass_keeping_end(0.5, beyond, 1000) == 0.5);
  CHECK(mass_keeping_end(0.5, beyond, 200) == 1);
  CHECK(mass_keeping_end(0.5, beyond, 100) == 2);
  CHECK(mass_keeping_end(0.5, beyond, 40) == 8);
  CHECK(mass_keeping_end(0.5, {}, 0) == 0.5);

  const auto low_of = [](const std::vector<ValueMass>& values) {
    double total = 0;
    for (const ValueMass& each : values) total += each.mass;
    return mass_covering_end(
        values.size(), [&](size_t i) { return values[i]; }, total);
  };
  // A thousandth lies below 3, more than that below 4.
  CHECK(low_of({{1e-30, 0.4}, {2, 0.6}, {3, 1}, {4, 998}}) == 3);
  CHECK(low_of({{1e-30, 0.4}, {2, 0.7}, {3, 1}, {4, 998}}) == 2);
  CHECK(low_of({{5, 1}}) == 5);

  const auto ends_of = [](const std::vector<ValueMass>& cells) {
    const MassEnds ends = mass_ends(cells);
    return std::pair(ends.low, ends.high);
  };
  // One of 2000 cells lies beyond by its count, but not where it holds a fifth of the mass.
  CHECK(ends_of({{1, 0.1, 100}, {2, 99.9, 1899}, {9, 0.01, 1}}) == std::pair(2.0, 2.0));
  CHECK(ends_of({{1, 0.2, 100}, {2, 99.9, 1899}, {9, 25, 1}}) == std::pair(1.0, 9.0));
  CHECK(ends_of({{3, 1}}) == std::pair(3.0, 3.0));
  CHECK(low_of({}) == 0);
}
