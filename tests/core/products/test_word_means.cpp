#include <cmath>

#include "core/products/word_means.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("words have the mean over heads of what their tokens get together") {
  const std::vector<IndexRange> words{{0, 1}, {1, 3}};
  const std::vector<int64_t> some{4, 9, 10, 11, 30, 63};
  for (const std::string_view mask : {"none", "causal", "masked_rows"}) {
    const Oracle oracle(joint_case(mask));
    for (const auto& backend : two_backends()) {
      for (const bool listed : {false, true}) {
        INFO(oracle.text() << " " << backend->name() << (listed ? ", some rows" : ""));
        std::vector<int64_t> rows = some;
        for (int64_t i = 4; !listed && i < 64; ++i) {
          if (i == 4) rows.clear();
          rows.push_back(i);
        }
        MemoryBudget budget(int64_t{1} << 24);
        WordMeans means(words, std::ssize(rows), 4, budget);
        for (const int64_t head : {1, 3}) {
          HeadTask task = whole_map(oracle.problem(), head);
          task.rows = {4, 64};
          if (listed) task.row_list = rows;
          task.keys = {0, 4};
          run_tasks({&task, 1}, means, *backend, budget);
        }
        for (size_t w = 0; w < words.size(); ++w) {
          const std::vector<float> got = means.mean(w);
          REQUIRE(got.size() == rows.size());
          for (size_t r = 0; r < rows.size(); ++r) {
            double sum = 0;
            int64_t live = 0;
            for (const int64_t head : {1, 3}) {
              const auto row = oracle.row(0, head, rows[r]).weights;
              double all = 0;
              for (const double weight : row) all += weight;
              live += all > 0 ? 1 : 0;
              for (int64_t k = words[w].begin; k < words[w].end; ++k) {
                sum += row[static_cast<size_t>(k)];
              }
            }
            INFO("word " << w << " row " << rows[r]);
            if (live == 0) {
              CHECK(std::isnan(got[r]));
            } else {
              CHECK(near(double{got[r]}, sum / static_cast<double>(live)));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("words that do not fit the budget are refused") {
  const std::vector<IndexRange> words{{0, 1}, {1, 3}};
  MemoryBudget budget(3 * 64 * 4 - 1);
  CHECK(refused([&] { WordMeans(words, 64, 4, budget); }, ErrorCode::resource,
                {"the words over the video"}) == "");
}
