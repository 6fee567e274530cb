#include "core/base/exact_math.h"

#include <cassert>
#include <cmath>

namespace attnscope {
namespace {

/// Taylor series for |x| ≤ π/4: the first term left out is below 10⁻¹⁷.
CosSin small_angle(double x) {
  const double square = x * x;
  double cosine = 0;
  double sine = 0;
  for (int n = 8; n >= 1; --n) {
    cosine = (1 + cosine) * -square / static_cast<double>((2 * n - 1) * (2 * n));
    sine = (1 + sine) * -square / static_cast<double>((2 * n) * (2 * n + 1));
  }
  return {1 + cosine, x * (1 + sine)};
}

}  // namespace

CosSin exact_turn(int64_t step, int octave) {
  assert(octave >= 1 && octave <= 32);
  constexpr double kTwoPi = 0x1.921fb54442d18p+2;
  // In eighths of a turn over 2^octave, so that a quadrant's centre is a whole number.
  const int64_t turn = int64_t{8} << octave;
  const int64_t angle = static_cast<int64_t>(static_cast<uint64_t>(step) * 8) & (turn - 1);
  const int64_t quarter = turn / 4;
  const int64_t quadrant = (angle + turn / 8) / quarter;
  const auto rest = static_cast<double>(angle - quadrant * quarter);
  const CosSin r = small_angle(kTwoPi * (rest / static_cast<double>(turn)));
  switch (quadrant & 3) {
    case 0:
      return r;
    case 1:
      return {-r.sin, r.cos};
    case 2:
      return {-r.cos, -r.sin};
    default:
      return {r.sin, -r.cos};
  }
}

double exact_log(double x) {
  assert(x > 0);
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < 0.70710678) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2·artanh((m − 1)/(m + 1)), |argument| ≤ 0.172.
  const double z = (mantissa - 1) / (mantissa + 1);
  const double square = z * z;
  double series = 0;
  for (int n = 23; n >= 1; n -= 2) series = series * square + 1.0 / n;
  return 2 * z * series + exponent * kLn2;
}

}  // namespace attnscope
