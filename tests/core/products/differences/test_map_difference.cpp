#include <cmath>
#include <limits>
#include <random>

#include "core/products/differences/map_difference.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Weights of a peaked row: exp of `spread` times a normal number, normalised; some are 0.
std::vector<float> random_row(size_t keys, double spread, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(keys);
  double sum = 0;
  for (double& value : values) {
    value = random() % 16 == 0 ? 0 : std::exp(spread * normal(random));
    sum += value;
  }
  std::vector<float> row;
  for (const double value : values) row.push_back(static_cast<float>(value / sum));
  return row;
}

/// The definition, with the C library's logarithm in long double.
double divergence(const std::vector<float>& a, const std::vector<float>& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const long double x = a[i], y = b[i], m = (x + y) / 2;
    if (x > 0) sum += x * std::log2(x / m) / 2;
    if (y > 0) sum += y * std::log2(y / m) / 2;
  }
  return static_cast<double>(sum);
}

/// Cosine and H(a) − H(b) by their definitions.
struct Shape {
  double cosine = 0, entropy = 0;
};
Shape shape_of(const std::vector<float>& a, const std::vector<float>& b) {
  long double ab = 0, aa = 0, bb = 0, entropy = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const long double x = a[i], y = b[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
    if (x > 0) entropy -= x * std::log(x);
    if (y > 0) entropy += y * std::log(y);
  }
  return {static_cast<double>(ab / std::sqrt(aa * bb)), static_cast<double>(entropy)};
}

}  // namespace

TEST_CASE("a difference is read back from its name") {
  CHECK(difference_names() == std::vector<std::string>{"off", "signed", "abs", "logratio"});
  for (const std::string& name : difference_names()) {
    CHECK(difference_name(*parse_difference(name)) == name);
  }
  CHECK_FALSE(parse_difference("Signed"));
  CHECK(difference_suits(Difference::log_ratio, Quantity::weights));
  CHECK_FALSE(difference_suits(Difference::log_ratio, Quantity::logits));
  CHECK(is_signed(Difference::log_ratio));
  CHECK_FALSE(is_signed(Difference::absolute));
}

TEST_CASE("entries are taken from one another as each difference says") {
  const std::vector<float> a{0.5f, 0.25f, 0, 0, kNan}, b{0.125f, 0.5f, 0.25f, 0, 0.5f};
  std::vector<float> out(a.size());
  const auto taken = [&](Difference how) {
    take_difference(how, a, b, out);
    CHECK(std::isnan(out[4]));
    return std::vector<float>(out.begin(), out.begin() + 4);
  };
  CHECK(taken(Difference::signed_difference) == std::vector<float>{0.375f, -0.25f, -0.25f, 0});
  CHECK(taken(Difference::absolute) == std::vector<float>{0.375f, 0.25f, 0.25f, 0});
  // There is no ratio to 0, of either side.
  CHECK(taken(Difference::log_ratio) == std::vector<float>{2, -1, -kInf, -kInf});
  // A masked logit has no difference, not an infinite one.
  take_difference(Difference::signed_difference, std::vector<float>{-kInf, 1, -kInf},
                  std::vector<float>{2, -kInf, -kInf}, std::span(out).first(3));
  CHECK(std::vector<float>(out.begin(), out.begin() + 3) ==
        std::vector<float>{-kInf, -kInf, -kInf});
}

TEST_CASE("the divergence of rows is the definition's") {
  for (const double spread : {0.01, 1.0, 6.0}) {
    for (unsigned seed = 1; seed < 8; ++seed) {
      const std::vector<float> a = random_row(991, spread, seed);
      const std::vector<float> b = random_row(991, spread, seed + 100);
      const double expected = divergence(a, b);
      INFO("spread " << spread << " seed " << seed);
      CHECK(expected > 1e-3);
      // Float32 rows add up to 1 but for 10⁻⁶ or so, which the definition sees as well.
      CHECK(std::abs(compare_rows(a, b).divergence - expected) < 1e-12);
      CHECK(compare_rows(a, b).divergence == compare_rows(b, a).divergence);
      CHECK(std::abs(row_divergence(a, b) - expected) < 1e-12);
    }
  }
  // Rows that are next to the same: far below what a sum of logarithms would leave.
  std::vector<float> a = random_row(500, 1, 3), b = a;
  for (size_t i = 0; i < b.size(); ++i) b[i] *= i % 2 == 0 ? 1.0001f : 0.9999f;
  const double expected = divergence(a, b);
  CHECK(expected > 1e-10);
  CHECK(std::abs(compare_rows(a, b).divergence - expected) < 1e-6 * expected);
}

TEST_CASE("cosine and entropies of rows are the definition's") {
  for (const double spread : {0.01, 1.0, 6.0}) {
    for (unsigned seed = 1; seed < 8; ++seed) {
      const std::vector<float> a = random_row(991, spread, seed);
      const std::vector<float> b = random_row(991, spread / 2, seed + 100);
      const Shape expected = shape_of(a, b);
      const RowDifference got = compare_rows(a, b), turned = compare_rows(b, a);
      INFO("spread " << spread << " seed " << seed);
      CHECK(std::abs(expected.entropy) > 1e-4);
      CHECK(std::abs(got.cosine - expected.cosine) < 1e-13);
      CHECK(std::abs(got.entropy - expected.entropy) < 1e-11);
      CHECK(turned.cosine == got.cosine);
      CHECK(turned.entropy == -got.entropy);
    }
  }
  // Rows that are next to the same: entropies of 6 that differ by 10⁻⁹.
  std::vector<float> a = random_row(500, 1, 3), b = a;
  b[7] = std::nextafter(b[7], 1.0f);
  const Shape expected = shape_of(a, b);
  CHECK(expected.entropy != 0);
  CHECK(std::abs(compare_rows(a, b).entropy - expected.entropy) <
        1e-6 * std::abs(expected.entropy));
  CHECK(compare_rows(a, a).cosine == 1);
  CHECK(compare_rows(a, a).entropy == 0);
  // All on one key is no bit, spread over four is two: 2·ln 2 nats.
  const std::vector<float> one{1, 0, 0, 0}, four(4, 0.25f), none(4, 0.0f);
  CHECK(compare_rows(four, one).entropy == Approx(2 * std::log(2)).epsilon(1e-12));
  CHECK(compare_rows(four, one).cosine == 0.5);
  CHECK(std::isnan(compare_rows(one, none).cosine));
  CHECK(std::isnan(compare_rows(one, none).entropy));
  // Rows that are no distributions have an angle all the same.
  CHECK(compare_rows(four, one, false).cosine == 0.5);
  CHECK(std::isnan(compare_rows(four, one, false).entropy));
}

TEST_CASE("divergences end at 0 and at a bit") {
  const std::vector<float> a{0.5f, 0.5f, 0, 0}, b{0, 0, 0.25f, 0.75f}, none(4, 0.0f);
  CHECK(compare_rows(a, a).divergence == 0);
  CHECK(compare_rows(a, b).divergence == Approx(1).epsilon(1e-12));
  const RowDifference row = compare_rows(a, b);
  CHECK(row.sum_abs == 2);
  CHECK(row.max_abs == 0.75);
  CHECK(row.max_key == 3);
  // A masked row is no distribution, nor are rows that need not add up to 1.
  CHECK(std::isnan(compare_rows(a, none).divergence));
  CHECK(std::isnan(row_divergence(a, none)));
  CHECK(compare_rows(a, none).sum_abs == 1);
  CHECK(std::isnan(compare_rows(a, b, false).divergence));
  CHECK(compare_rows(a, b, false).max_abs == 0.75);
  // An entry that is not there makes a row's numbers unknown, not 0.
  const std::vector<float> missing{0.5f, kNan, 0, 0};
  CHECK(std::isnan(compare_rows(missing, b).sum_abs));
  CHECK(std::isnan(compare_rows(missing, b).max_abs));
  CHECK(std::isnan(compare_rows(missing, b).divergence));
  CHECK(std::isnan(row_divergence(missing, b)));
  CHECK(std::isnan(compare_rows(missing, b).cosine));
  CHECK(std::isnan(compare_rows(missing, b).entropy));
}

TEST_CASE("entries that are not there are not compared") {
  const std::vector<float> a{0.5f, kNan, 0.25f, 0.125f, -kInf}, b{0.25f, 0.5f, kNan, 0.25f, -kInf};
  const RowDifference row = compare_held_rows(a, b, true);
  CHECK(row.entries == 2);
  CHECK(row.sum_abs == 0.375);
  CHECK(row.max_abs == 0.25);
  CHECK(row.max_key == 0);
  CHECK(std::isnan(row.divergence));
  CHECK(std::isnan(row.cosine));
  CHECK(std::isnan(row.entropy));
  // Rows that are there are the rows that they are.
  const std::vector<float> x = random_row(100, 2, 1), y = random_row(100, 2, 2);
  CHECK(compare_held_rows(x, y, true).divergence == compare_rows(x, y).divergence);
  CHECK(compare_held_rows(x, y, true).entries == 100);
}
