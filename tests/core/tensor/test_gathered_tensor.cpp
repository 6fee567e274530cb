#include <algorithm>
#include <numeric>
#include <random>

#include "core/tensor/gathered_tensor.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a gathered tensor has every row at its new place, in every box") {
  constexpr int64_t kHeads = 3, kTokens = 700, kWidth = 5;
  std::vector<float> values(2 * kHeads * kTokens * kWidth);
  std::iota(values.begin(), values.end(), 0.0f);
  const HeadTensor stored(make_tensor("q", DType::f32, {2, kTokens, kHeads, kWidth}, values),
                          Layout::bshd);
  std::mt19937_64 random(5);
  // Neighbours, rows at a stride, and rows anywhere.
  for (const int kind : {0, 1, 2}) {
    std::vector<int32_t> tokens(kTokens);
    for (int32_t i = 0; i < kTokens; ++i) {
      tokens[static_cast<size_t>(i)] = kind == 0 ? kTokens - 1 - i : i % 7 * 100 + i / 7;
    }
    if (kind == 2) std::shuffle(tokens.begin(), tokens.end(), random);
    const PlaceOrder order(tokens);
    const auto gathered = gathered_tensor(stored, order);
    CHECK(gathered->name() == "q");
    CHECK(std::vector<int64_t>(gathered->shape().begin(), gathered->shape().end()) ==
          std::vector<int64_t>{2, kHeads, kTokens, kWidth});
    for (int round = 0; round < 40; ++round) {
      std::array<int64_t, 4> begin{}, count{};
      for (size_t axis = 0; axis < 4; ++axis) {
        begin[axis] = pick(random, 0, gathered->shape()[axis] - 1);
        count[axis] = pick(random, 1, gathered->shape()[axis] - begin[axis]);
      }
      std::vector<float> box(static_cast<size_t>(count[0] * count[1] * count[2] * count[3]), -1);
      gathered->read(begin, count, reinterpret_cast<std::byte*>(box.data()));
      size_t at = 0;
      int64_t wrong = 0;
      for (int64_t b = begin[0]; b < begin[0] + count[0]; ++b) {
        for (int64_t h = begin[1]; h < begin[1] + count[1]; ++h) {
          for (int64_t i = begin[2]; i < begin[2] + count[2]; ++i) {
            for (int64_t d = begin[3]; d < begin[3] + count[3]; ++d, ++at) {
              const int64_t token = tokens[static_cast<size_t>(i)];
              const auto expected =
                  static_cast<float>(((b * kTokens + token) * kHeads + h) * kWidth + d);
              wrong += box[at] == expected ? 0 : 1;
            }
          }
        }
      }
      CHECK(wrong == 0);
    }
  }
}
