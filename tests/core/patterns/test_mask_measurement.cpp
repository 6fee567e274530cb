#include <cmath>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/mask_timing.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("masks are measured on one head without files") {
  AttentionCase c = joint_case();
  c.value_width = 5;
  const Oracle oracle(c);
  const HeadTask head = whole_map(oracle.problem(), 1);
  const int64_t n = oracle.problem().num_queries();
  double kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Oracle::Row row = oracle.row(0, 1, i);
    for (int64_t j = 0; j <= i; ++j) kept += row.weights[static_cast<size_t>(j)];
  }
  const std::vector<Mask> masks{Mask(), Mask::causal()};
  for (const auto& backend : two_backends()) {
    MemoryBudget budget(int64_t{64} << 20);
    double last = 0;
    bool ascends = true;
    const auto measured = measure_masks(head, masks, {*backend, budget}, [&](double share) {
      ascends = ascends && share >= last;
      last = share;
    });
    REQUIRE(measured.size() == 2);
    CHECK(ascends);
    CHECK(last == 1);
    CHECK(measured[0].density == 1);
    CHECK(near(measured[0].recall.value(), 1));
    CHECK(near(measured[0].oracle_recall.value(), 1));
    CHECK(near(measured[1].density, double(n + 1) / double(2 * n)));
    CHECK(near(measured[1].recall.value(), kept / double(n)));
    CHECK(measured[0].output_error.value() < 1e-6);
    CHECK(measured[1].output_error.value() > 1e-3);
    CHECK(measured[1].oracle_recall.value() >= measured[1].recall.value());
    // So few rows are all measured.
    CHECK(measured[1].sampled_rows == n);
    CHECK_FALSE(measured[1].oracle_stderr.has_value());
    CHECK(budget.used() == 0);
  }
}

TEST_CASE("measuring a mask ends where it is stopped") {
  const Oracle oracle(joint_case());
  const std::vector<Mask> masks{Mask::causal()};
  const auto backend = std::move(two_backends().front());
  MemoryBudget budget(int64_t{64} << 20);
  std::stop_source stop;
  stop.request_stop();
  const std::string text = thrown_text(ErrorCode::interrupted, [&] {
    measure_masks(whole_map(oracle.problem(), 0), masks, {*backend, budget, stop.get_token()});
  });
  CHECK(text.starts_with("interrupted"));
  CHECK(budget.used() == 0);
}

TEST_CASE("the time that a mask saves is a ratio of times within the budget") {
  const Oracle oracle(joint_case());
  const HeadTask head = whole_map(oracle.problem(), 0);
  const auto backend = std::move(two_backends().back());
  MemoryBudget budget(int64_t{64} << 20);
  const double ratio = mask_time_ratio(head, Mask::causal(), 16, *backend, budget);
  CHECK(std::isfinite(ratio));
  CHECK(ratio > 0);
  CHECK(budget.used() == 0);
  MemoryBudget small(16);
  const std::string text = thrown_text(
      ErrorCode::resource, [&] { mask_time_ratio(head, Mask::causal(), 16, *backend, small); });
  CHECK(text.find("the timed blocks") != std::string::npos);
}
