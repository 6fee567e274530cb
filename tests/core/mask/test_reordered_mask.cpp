#include <numeric>
#include <random>

#include "core/mask/reordered_mask.h"
#include "tests/core/mask/mask_rectangles.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

PlaceOrder shuffled(int64_t tokens, unsigned seed) {
  std::vector<int32_t> order(static_cast<size_t>(tokens));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return PlaceOrder(std::move(order));
}

}  // namespace

TEST_CASE("a mask in another order says of places what it says of their tokens") {
  const MaskShape shape{2, 3, 90, 70};
  for (const std::string_view name : kMaskNames) {
    if (name == "none") continue;
    INFO(std::string(name));
    const MaskCase of = mask_case(name, {2, 3, 3, 90, 70, 8});
    for (const bool rows : {true, false}) {
      for (const bool keys : {true, false}) {
        const MapPlaces places{rows ? shuffled(90, 3) : PlaceOrder(),
                               keys ? shuffled(70, 4) : PlaceOrder()};
        const Mask mask = reordered_mask(of.mask, places);
        const auto bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
          return static_cast<float>(of.bias(b, h, places.rows.token(i), places.keys.token(j)));
        };
        check_mask(mask, bias, shape, false, 120);
        CHECK(mask.has_finite_bias() == of.mask.has_finite_bias());
      }
    }
  }
}

TEST_CASE("no mask in another order is no mask") {
  CHECK(reordered_mask(Mask(), {shuffled(8, 1), {}}).is_none());
}
