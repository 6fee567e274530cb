#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/products/differences/head_difference.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The numbers of a row in double.
RowDifference expected_row(const Oracle& a, int64_t head_a, const Oracle& b, int64_t head_b,
                           int64_t row) {
  const Oracle::Row x = a.row(0, head_a, row), y = b.row(0, head_b, row);
  RowDifference expected;
  double mass_a = 0, mass_b = 0, divergence = 0, entropy = 0, ab = 0, aa = 0, bb = 0;
  for (size_t j = 0; j < x.weights.size(); ++j) {
    const double p = x.weights[j], q = y.weights[j], m = (p + q) / 2;
    expected.sum_abs += std::abs(p - q);
    expected.max_abs = std::max(expected.max_abs, std::abs(p - q));
    if (p > 0) divergence += p * std::log2(p / m) / 2;
    if (q > 0) divergence += q * std::log2(q / m) / 2;
    if (p > 0) entropy -= p * std::log(p);
    if (q > 0) entropy += q * std::log(q);
    ab += p * q;
    aa += p * p;
    bb += q * q;
    mass_a += p;
    mass_b += q;
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  const bool both = mass_a > 0 && mass_b > 0;
  expected.divergence = both ? divergence : none;
  expected.entropy = both ? entropy : none;
  expected.cosine = both ? ab / std::sqrt(aa * bb) : none;
  expected.lse = std::isfinite(x.lse) && std::isfinite(y.lse) ? x.lse - y.lse : none;
  return expected;
}

bool close(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  return std::abs(got - expected) <= tolerance;
}

void check_pair(const std::string& mask, const TileBackend& backend, int64_t memory) {
  const Oracle a(joint_case(mask)), b(joint_case(mask, ScoreFunction::softmax, 7));
  const HeadPair pair{whole_map(a.problem(), 0), whole_map(b.problem(), 3)};
  MemoryBudget budget(memory);
  const DifferencePlan plan = plan_difference(pair, backend, memory, 3);
  CHECK(plan.bytes <= memory);
  const auto rows = compare_heads(pair, plan, backend, budget);
  REQUIRE(rows);
  REQUIRE(rows->size() == 64);
  CHECK(budget.used() == 0);
  CHECK(budget.peak() == plan.bytes);
  double total = 0, largest = 0, entropies = 0, cosines = 0;
  size_t with_divergence = 0;
  for (int64_t i = 0; i < 64; ++i) {
    INFO(backend.name() << ", mask " << mask << ", row " << i);
    const RowDifference expected = expected_row(a, 0, b, 3, i);
    const RowDifference& got = (*rows)[static_cast<size_t>(i)];
    CHECK(close(got.sum_abs, expected.sum_abs, 1e-5));
    CHECK(close(got.max_abs, expected.max_abs, 1e-6));
    CHECK(close(got.divergence, expected.divergence, 1e-6));
    CHECK(close(got.lse, expected.lse, 1e-5));
    CHECK(close(got.cosine, expected.cosine, 1e-6));
    CHECK(close(got.entropy, expected.entropy, 1e-5));
    total += expected.sum_abs;
    entropies += std::isnan(expected.entropy) ? 0 : expected.entropy;
    cosines += std::isnan(expected.cosine) ? 0 : expected.cosine;
    with_divergence += std::isnan(expected.divergence) ? 0 : 1;
    largest = std::max(largest, expected.max_abs);
  }
  // Nothing of this can be said of zeros.
  CHECK(total > 10);
  const HeadDifference head = summarise_rows(pair, *rows, 5);
  CHECK(head.rows == 64);
  CHECK(close(head.mean_abs, total / 64 / 64, 1e-7));
  REQUIRE(head.total_variation);
  CHECK(close(*head.total_variation, total / 64 / 2, 1e-5));
  CHECK(close(head.max_abs, largest, 1e-6));
  const auto compared = static_cast<double>(with_divergence);
  REQUIRE(head.cosine_mean);
  CHECK(close(*head.cosine_mean, cosines / compared, 1e-6));
  REQUIRE(head.entropy_change);
  CHECK(std::abs(entropies) > 0.01);
  CHECK(close(*head.entropy_change, entropies / compared, 1e-5));
  REQUIRE(head.top.size() == std::min<size_t>(5, with_divergence));
  CHECK(head.masked_rows == 64 - static_cast<int64_t>(with_divergence));
  CHECK(head.top.front().row == head.divergence_row);
  CHECK(head.top.front().divergence == *head.divergence_max);
  for (size_t i = 1; i < head.top.size(); ++i)
    CHECK(head.top[i - 1].divergence >= head.top[i].divergence);
}

}  // namespace

TEST_CASE("two heads are compared as in double, whatever computes them") {
  for (const auto& backend : two_backends()) {
    for (const std::string mask : {"none", "causal", "masked_rows"}) {
      check_pair(mask, *backend, int64_t{64} << 20);
    }
  }
}

TEST_CASE("results do not depend on memory, threads or which side is first") {
  const Oracle a(joint_case()), b(joint_case("none", ScoreFunction::softmax, 7));
  const HeadPair pair{whole_map(a.problem(), 1), whole_map(b.problem(), 2)};
  const auto backends = two_backends();
  const TileBackend& backend = *backends.back();
  const auto compared = [&](const HeadPair& of, int64_t memory, int threads) {
    MemoryBudget budget(memory);
    return *compare_heads(of, plan_difference(of, backend, memory, threads), backend, budget);
  };
  const auto rows = compared(pair, int64_t{64} << 20, 4);
  // The least that is enough, which the refusal of too little tells.
  int64_t least = 0;
  try {
    plan_difference(pair, backend, 100);
    FAIL("100 bytes were enough");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::resource);
    const std::string text = error.what();
    least = std::stoll(text.substr(text.rfind(" is ") + 4));
  }
  CHECK_THROWS_AS(plan_difference(pair, backend, least - 1), Error);
  const auto slow = compared(pair, least, 1);
  const auto other = compared({pair.b, pair.a}, int64_t{64} << 20, 2);
  for (size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i);
    CHECK(rows[i].sum_abs == slow[i].sum_abs);
    CHECK(rows[i].divergence == slow[i].divergence);
    CHECK(rows[i].lse == slow[i].lse);
    CHECK(rows[i].cosine == slow[i].cosine);
    CHECK(rows[i].entropy == slow[i].entropy);
    CHECK(rows[i].max_key == slow[i].max_key);
    CHECK(rows[i].divergence == other[i].divergence);
    CHECK(rows[i].lse == -other[i].lse);
  }
}

TEST_CASE("some rows of a pair have the numbers that they have among all") {
  const Oracle a(joint_case());
  const std::vector<int64_t> some{3, 17, 63};
  HeadPair all{whole_map(a.problem(), 0), whole_map(a.problem(), 1)}, few = all;
  few.a.row_list = few.b.row_list = some;
  const auto backends = two_backends();
  const auto compared = [&](const HeadPair& of) {
    MemoryBudget budget(int64_t{64} << 20);
    return *compare_heads(of, plan_difference(of, *backends.back(), budget.limit()),
                          *backends.back(), budget);
  };
  const auto rows = compared(all), sample = compared(few);
  REQUIRE(sample.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(sample[i].divergence == rows[static_cast<size_t>(some[i])].divergence);
    CHECK(sample[i].divergence > 0);
  }
  const HeadDifference head = summarise_rows(few, sample, 2);
  CHECK(head.rows == 3);
  CHECK(head.rows_of == 64);
  CHECK(std::count(some.begin(), some.end(), head.top.front().row) == 1);
}

TEST_CASE("a head is no different from itself") {
  const Oracle a(joint_case());
  const HeadPair pair{whole_map(a.problem(), 2), whole_map(a.problem(), 2)};
  const auto backends = two_backends();
  MemoryBudget budget(int64_t{64} << 20);
  const auto rows = compare_heads(pair, plan_difference(pair, *backends.back(), budget.limit()),
                                  *backends.back(), budget);
  const HeadDifference head = summarise_rows(pair, *rows, 3);
  CHECK(head.max_abs == 0);
  CHECK(*head.divergence_max == 0);
  CHECK(*head.lse_max_abs == 0);
}

TEST_CASE("scores that are no distributions have no divergence") {
  const Oracle a(joint_case("none", ScoreFunction::sigmoid)),
      b(joint_case("none", ScoreFunction::sigmoid, 7));
  const HeadPair pair{whole_map(a.problem(), 0), whole_map(b.problem(), 0)};
  const auto backends = two_backends();
  MemoryBudget budget(int64_t{64} << 20);
  const auto rows = compare_heads(pair, plan_difference(pair, *backends.back(), budget.limit()),
                                  *backends.back(), budget);
  const HeadDifference head = summarise_rows(pair, *rows, 3);
  CHECK(head.max_abs > 0.01);
  CHECK_FALSE(head.divergence_mean);
  CHECK_FALSE(head.entropy_change);
  REQUIRE(head.cosine_mean);
  CHECK(*head.cosine_mean > 0);
  CHECK(*head.cosine_mean < 1);
  CHECK_FALSE(head.lse_mean);
  CHECK(head.masked_rows == 0);
  CHECK(head.top.empty());
}

TEST_CASE("what cannot be compared is refused by its sizes or scores") {
  const Oracle a(joint_case());
  AttentionCase small = joint_case();
  small.shape.keys = small.shape.queries = 10;
  small.grid = {};
  small.text = 0;
  small.place = TextPlace::none;
  const Oracle b(small), sigmoid(joint_case("none", ScoreFunction::sigmoid));
  CHECK_THROWS_WITH(check_comparable(a.problem(), b.problem()),
                    Catch::Contains("different sizes") && Catch::Contains("64 queries") &&
                        Catch::Contains("10 queries"));
  CHECK_THROWS_WITH(check_comparable(a.problem(), sigmoid.problem()),
                    Catch::Contains("softmax") && Catch::Contains("sigmoid"));
}

TEST_CASE("a stopped comparison gives nothing") {
  const Oracle a(joint_case());
  const HeadPair pair{whole_map(a.problem(), 0), whole_map(a.problem(), 1)};
  const auto backends = two_backends();
  MemoryBudget budget(int64_t{64} << 20);
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(compare_heads(pair, plan_difference(pair, *backends.back(), budget.limit()),
                            *backends.back(), budget, {stop.get_token(), {}, {}}));
}
