#include <cmath>
#include <limits>

#include "core/base/checked_math.h"
#include "core/problem/score.h"
#include "core/stream/tile_backend.h"
#include "core/stream/weight_code.h"
#include "core/tensor/strided_view.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("the u8 code covers 24 octaves within 3.34 %") {
  CHECK(encode_u8_log2(0) == 0);
  CHECK(encode_u8_log2(std::nextafter(0x1p-24, 0)) == 0);
  CHECK(encode_u8_log2(0x1p-24) == 1);
  CHECK(encode_u8_log2(1) == 255);
  CHECK(encode_u8_log2(2) == 255);
  CHECK(encode_u8_log2(std::numeric_limits<double>::quiet_NaN()) == 0);
  CHECK(decode_u8_log2(0) == 0);
  CHECK(decode_u8_log2(255) == 1);
  CHECK(decode_u8_log2(1) == Approx(0x1p-24).epsilon(1e-12));
  for (int code = 0; code <= 255; ++code) {
    CHECK(encode_u8_log2(decode_u8_log2(static_cast<uint8_t>(code))) == code);
  }
  double worst = 0;
  for (double weight = 0x1p-24; weight < 1; weight *= 1.0007) {
    worst = std::max(worst, std::abs(decode_u8_log2(encode_u8_log2(weight)) / weight - 1));
  }
  CHECK(worst < 0.0333);
  CHECK(worst > 0.03);
}

TEST_CASE("a row's normaliser is a fraction and an exponent") {
  for (const double value : {1.0, 1.5, 0.3, 17776.0, 1e300, 5e-324, std::nextafter(2.0, 0.0)}) {
    INFO(value);
    const RowNorm norm = RowNorm::from_value(value);
    CHECK(norm.sum >= 1);
    CHECK(norm.sum < 2);
    CHECK(std::ldexp(norm.sum, static_cast<int>(norm.exponent)) == value);
    CHECK(norm.lse() == Approx(std::log(value)).margin(1e-12));
  }
  // Logits of 10⁴: far outside double's range as a sum of exponentials.
  CHECK(RowNorm{1.25, 14427}.lse() == Approx(std::log(1.25) + 14427 * std::log(2.0)));
  CHECK(RowNorm::from_value(0).sum == 0);
  CHECK(RowNorm{}.lse() == -std::numeric_limits<double>::infinity());
}

TEST_CASE("score functions have names") {
  for (const auto score : {ScoreFunction::softmax, ScoreFunction::sigmoid,
                           ScoreFunction::linear_elu1, ScoreFunction::linear_relu}) {
    CHECK(parse_score(score_name(score)) == score);
  }
  CHECK(score_name(ScoreFunction::linear_elu1) == "linear:elu1");
  CHECK_FALSE(parse_score("linear").has_value());
  CHECK(is_linear(ScoreFunction::linear_relu));
  CHECK_FALSE(is_linear(ScoreFunction::sigmoid));
  CHECK_FALSE(is_normalised(ScoreFunction::sigmoid));
  CHECK(is_normalised(ScoreFunction::linear_elu1));
}

TEST_CASE("sizes are checked for overflow") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(checked_mul(3, 4) == 12);
  CHECK(checked_mul(0, kMost) == 0);
  CHECK_FALSE(checked_mul(int64_t{1} << 32, int64_t{1} << 31).has_value());
  CHECK_FALSE(checked_mul(-1, 2).has_value());
  CHECK(checked_add(kMost - 1, 1) == kMost);
  CHECK_FALSE(checked_add(kMost, 1).has_value());
  CHECK_FALSE(checked_add(3, -1).has_value());
  CHECK(checked_count({}) == 1);
  const int64_t good[] = {2, 3, 0}, large[] = {int64_t{1} << 40, int64_t{1} << 40}, bad[] = {0, -1};
  CHECK(checked_count(good) == 0);
  CHECK_FALSE(checked_count(large).has_value());
  CHECK_FALSE(checked_count(bad).has_value());
  CHECK(ceil_div(0, 4) == 0);
  CHECK(ceil_div(5, 4) == 2);
  CHECK(round_up(5, 4) == 8);
  CHECK(round_up(8, 4) == 8);
}

TEST_CASE("strided views") {
  int data[24] = {};
  for (int i = 0; i < 24; ++i) data[i] = i;
  const StridedView<int, 3> packed(data, {2, 3, 4});
  CHECK(packed(1, 2, 3) == 23);
  CHECK(packed.stride(0) == 12);
  const StridedView<int, 2> transposed(data, {4, 6}, {1, 4});
  CHECK(transposed(3, 5) == 23);
  CHECK(transposed.extent(1) == 6);
}
