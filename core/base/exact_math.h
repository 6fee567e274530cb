#pragma once

#include <cstdint>

namespace attnscope {

/// Functions whose last bit is the same on every machine with IEEE 754 doubles: they use nothing
/// but +, −, × and ÷ in a fixed order (compiled without contraction to fused multiply-adds), where
/// the C library's may differ from one version to the next. Thread-safe.

struct CosSin {
  double cos = 1;
  double sin = 0;
};

/// cos and sin of 2π·step/2^octave, error below 10⁻¹⁵. 1 ≤ octave ≤ 32, any step.
CosSin exact_turn(int64_t step, int octave);

/// Natural logarithm, relative error below 10⁻¹⁴. x must be finite and above 0.
double exact_log(double x);

/// Bits number `index` of the stream `key`: SplitMix64 (Steele, Lea, Flood 2014) as a counter.
constexpr uint64_t random_bits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace attnscope
