#include "core/patterns/keys_seen.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("the keys that rows see are those that masks leave a weight") {
  const std::vector<int64_t> rows{0, 1, 5, 17, 30, 39};
  for (const std::string_view mask : {"none", "causal", "window", "keys", "segments", "blocks",
                                      "dense_bool", "masked_rows", "padded_keys", "valid"}) {
    AttentionCase description;
    description.shape = {2, 4, 2, 40, 40, 8};
    description.mask = mask;
    const Oracle oracle(description);
    INFO(oracle.text());
    for (const int64_t head : {0, 3}) {
      int64_t sum = 0, live = 0;
      for (const int64_t row : rows) {
        int64_t seen = 0;
        for (const double weight : oracle.row(1, head, row).weights) seen += weight > 0 ? 1 : 0;
        sum += seen;
        live += seen > 0 ? 1 : 0;
      }
      const auto found = mean_keys_seen(oracle.problem(), 1, head, rows);
      if (live == 0) {
        CHECK_FALSE(found);
      } else {
        REQUIRE(found);
        CHECK(*found == static_cast<double>(sum) / static_cast<double>(live));
      }
    }
  }
  const Oracle oracle(AttentionCase{});
  CHECK_FALSE(mean_keys_seen(oracle.problem(), 0, 0, {}));
}
