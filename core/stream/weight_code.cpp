#include "core/stream/weight_code.h"

#include <algorithm>
#include <cmath>

namespace attnscope {

namespace {
/// Codes 1…255 span kCodeOctaves octaves in 254 steps.
constexpr double kStepsPerOctave = (kCodeMax - 1) / kCodeOctaves;
}  // namespace

uint8_t encode_u8_log2(double weight) {
  if (!(weight >= std::exp2(-kCodeOctaves))) return 0;
  const double code = std::round(kCodeMax + std::log2(weight) * kStepsPerOctave);
  return static_cast<uint8_t>(std::clamp(code, 1.0, static_cast<double>(kCodeMax)));
}

double decode_u8_log2(uint8_t code) {
  if (code == 0) return 0;
  return std::exp2((code - kCodeMax) / kStepsPerOctave);
}

}  // namespace attnscope
