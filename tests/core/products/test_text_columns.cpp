#include "core/products/text_columns.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("text columns are the map's, or a share of the row's text") {
  for (const std::string_view mask : {"none", "causal", "masked_rows"}) {
    const Oracle oracle(joint_case(mask));
    std::vector<HeadTask> tasks{whole_map(oracle.problem(), 1), whole_map(oracle.problem(), 3)};
    for (HeadTask& task : tasks) {
      task.rows = {4, 64};
      task.keys = {0, 4};
    }
    const std::vector<std::vector<int64_t>> chosen{{2, 3}, {0}};
    for (const auto& backend : two_backends()) {
      for (const bool within : {false, true}) {
        INFO(oracle.text() << " " << backend->name() << (within ? ", within the text" : ""));
        MemoryBudget budget(int64_t{1} << 24);
        TextColumns columns(tasks, chosen, within, budget);
        run_tasks(tasks, columns, *backend, budget);
        for (size_t t = 0; t < tasks.size(); ++t) {
          for (size_t n = 0; n < chosen[t].size(); ++n) {
            std::vector<double> expected;
            for (int64_t i = 4; i < 64; ++i) {
              const auto row = oracle.row(0, tasks[t].head, i).weights;
              const double text = row[0] + row[1] + row[2] + row[3];
              const double weight = row[static_cast<size_t>(chosen[t][n])];
              expected.push_back(!within ? weight : text > 0 ? weight / text : 0);
            }
            CHECK(count_wrong(columns.take(static_cast<int64_t>(t), n), expected) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("columns that do not fit the budget are refused") {
  const Oracle oracle(joint_case());
  std::vector<HeadTask> tasks{whole_map(oracle.problem(), 0)};
  const std::vector<std::vector<int64_t>> chosen{{0, 1, 2}};
  MemoryBudget budget(3 * 64 * 4 - 1);
  CHECK(refused([&] { TextColumns(tasks, chosen, false, budget); }, ErrorCode::resource,
                {"the columns of the text"}) == "");
}
