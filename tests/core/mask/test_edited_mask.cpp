#include "core/mask/edited_mask.h"
#include "tests/core/mask/mask_rectangles.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE(
    "an edited mask says of the rectangles what the last edit says, of the rest what it did") {
  const MaskShape shape{2, 3, 90, 70};
  const std::vector<MaskEdit> edits{{3, 20, 5, 60, false},
                                    {10, 40, 30, 50, true},
                                    {15, 16, 31, 33, false},
                                    {80, 90, 0, 70, true}};
  for (const std::string_view name : {"none", "causal", "window", "keys", "blocks", "dense_bool"}) {
    INFO(std::string(name));
    const MaskCase of = mask_case(name, {2, 3, 3, 90, 70, 8});
    const Mask mask = edited_mask(of.mask, edits);
    const auto bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      std::optional<bool> said;
      for (const MaskEdit& e : edits) {
        if (i >= e.q0 && i < e.q1 && j >= e.k0 && j < e.k1) said = e.keep;
      }
      return said ? masked_unless(*said) : static_cast<float>(of.bias(b, h, i, j));
    };
    check_mask(mask, bias, shape, false, 400);
    mask.check_shape(2, 3, 90, 70);
    CHECK(contains(mask.describe(), "with 4 rectangles edited"));
  }
}

TEST_CASE("no edits leave a mask as it is, and empty or outlying ones are refused") {
  CHECK(edited_mask(Mask(), {}).is_none());
  const auto refusal = [](MaskEdit edit) {
    return refused([&] { edited_mask(Mask::causal(), {edit}); }, ErrorCode::usage,
                   {"nothing to edit in queries"});
  };
  CHECK(refusal({4, 4, 0, 8, true}) == "");
  CHECK(refusal({-1, 4, 0, 8, true}) == "");
  CHECK(
      refused(
          [&] {
            edited_mask(mask_case("dense_float", {2, 3, 3, 90, 70, 8}).mask, {{0, 1, 0, 1, true}});
          },
          ErrorCode::usage, {"which has biases"}) == "");
  const Mask mask = edited_mask(Mask::causal(), {{0, 64, 0, 100, false}});
  mask.check_shape(1, 1, 64, 100);
  CHECK(refused([&] { mask.check_shape(1, 1, 64, 99); }, ErrorCode::usage,
                {"queries 0:64, keys 0:100", "beyond a map of 64 x 99"}) == "");
}
