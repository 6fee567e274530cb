#include <limits>

#include "core/products/row_mean.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

RowSums sums_of(const std::vector<std::vector<float>>& rows, Quantity quantity) {
  RowSums sums(static_cast<int64_t>(rows.front().size()), quantity);
  for (const std::vector<float>& row : rows) sums.add(row);
  return sums;
}

}  // namespace

TEST_CASE("rows are averaged entry by entry, logits without those that are masked") {
  const std::vector<std::vector<float>> rows{
      {1, 2, kMasked}, {2, kMasked, kMasked}, {6, 4, kMasked}};
  CHECK(sums_of(rows, Quantity::logits).mean(3) == std::vector<float>{3, 3, kMasked});
  CHECK(sums_of({{1, 0.5f}, {0, 0.25f}}, Quantity::weights).mean(2) ==
        std::vector<float>{0.5f, 0.375f});
}

TEST_CASE("groups add up alike in whatever order they come") {
  constexpr int64_t kRows = 3 * RowMean::kGroupRows + 5;
  CHECK(RowMean::groups(kRows) == 4);
  CHECK(RowMean::groups(RowMean::kGroupRows) == 1);
  for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
    std::vector<RowSums> groups;
    double expected = 0;
    int64_t kept = 0;
    for (int64_t group = 0; group < 4; ++group) {
      RowSums sums(1, quantity);
      const int64_t end = std::min(kRows, (group + 1) * RowMean::kGroupRows);
      for (int64_t row = group * RowMean::kGroupRows; row < end; ++row) {
        const bool masked = quantity == Quantity::logits && row % 7 == 0;
        const float value = masked ? kMasked : 1.0f / static_cast<float>(row + 3);
        sums.add({&value, 1});
        if (masked) continue;
        expected += double{value};
        ++kept;
      }
      groups.push_back(sums);
    }
    std::vector<std::vector<float>> means;
    for (const std::vector<int64_t>& order :
         {std::vector<int64_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}) {
      RowMean mean(kRows);
      CHECK(mean.groups_left() == 4);
      for (const int64_t group : order) {
        CHECK_FALSE(mean.complete());
        mean.add(group, groups[static_cast<size_t>(group)]);
      }
      CHECK(mean.complete());
      CHECK(mean.groups_left() == 0);
      means.push_back(mean.take());
    }
    REQUIRE(means[0].size() == 1);
    CHECK(means[0][0] == Approx(expected / static_cast<double>(kept)).epsilon(1e-6));
    CHECK(means[1] == means[0]);
    CHECK(means[2] == means[0]);
  }
}
