#include "kernels/cpu/packing/row_packer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/dtype.h"
#include "kernels/common/feature_map.h"

namespace attnscope {
namespace {

/// The bf16 number nearest to x; where that is infinite and x is not, the one below.
bf16 to_finite_bf16(float x) {
  constexpr uint16_t kExponent = 0x7f80;
  const bf16 nearest = to_bf16(x);
  if ((nearest.bits & kExponent) != kExponent) return nearest;
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
}

/// √Σx², in eight sums that a processor can form at once. Not less than the true length by more
/// than 1e-5 of it, also where squares below 2⁻¹²⁶ count as 0: no number of those is above 2⁻⁶³.
float length_of(const float* row, int64_t count) {
  float sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t lane = 0; lane < 8; ++lane) sums[lane] += row[i + lane] * row[i + lane];
  }
  for (; i < count; ++i) sums[0] += row[i] * row[i];
  float sum = 0;
  for (const float lane : sums) sum += lane;
  return std::sqrt(sum) + 0x1p-63f * std::sqrt(static_cast<float>(count));
}

/// Four elements as the bits that they are: those of bf16 pairs may be a signalling NaN's.
using FourElements = uint32_t __attribute__((vector_size(16)));
constexpr int64_t kTogether = 4;

FourElements load_four(const std::byte* elements) {
  FourElements loaded;
  std::memcpy(&loaded, elements, sizeof(loaded));
  return loaded;
}

void store_four(FourElements elements, float* out) {
  std::memcpy(out, &elements, sizeof(elements));
}

}  // namespace

bool RowPacker::stored_as_elements() const {
  switch (format_.products) {
    case PackedProducts::floats:
      return format_.dtype == DType::f32 && !is_linear(format_.score);
    case PackedProducts::bf16_pairs:
      return format_.head_dim % 2 == 0;
    case PackedProducts::tiles:
      return false;
  }
  return false;
}

int RowPacker::exponent(const std::byte* row) const {
  if (format_.score != ScoreFunction::linear_elu1) return 0;
  to_floats(format_.dtype, row, format_.head_dim, floats_);
  return feature_exponent(format_.score, *std::max_element(floats_, floats_ + format_.head_dim));
}

float RowPacker::pack(const std::byte* row, int exponent, float* elements) const {
  switch (format_.products) {
    case PackedProducts::floats:
      to_floats(format_.dtype, row, format_.head_dim, elements);
      apply_feature_map(format_.score, elements, format_.head_dim, exponent);
      return 0;
    case PackedProducts::bf16_pairs:
      copy_pairs(row, elements);
      return 0;
    case PackedProducts::tiles:
      to_floats(format_.dtype, row, format_.head_dim, floats_);
      const float length = length_of(floats_, format_.head_dim);
      if (format_.parts() == 1) {
        copy_pairs(row, elements);
      } else {
        split(elements);
      }
      return length;
  }
  return 0;
}

/// Bits of bf16 numbers may be those of a signalling NaN once taken for a float: they are copied
/// as bytes.
void RowPacker::copy_pairs(const std::byte* row, float* elements) const {
  const auto bytes = static_cast<size_t>(format_.head_dim * 2);
  std::memcpy(elements, row, bytes);
  std::memset(reinterpret_cast<std::byte*>(elements) + bytes, 0,
              static_cast<size_t>(format_.steps() * 4) - bytes);
}

/// Spoils floats_.
void RowPacker::split(float* elements) const {
  auto* const out = reinterpret_cast<std::byte*>(elements);
  const int64_t part_bytes = format_.steps() / format_.parts() * 4;
  std::memset(out, 0, static_cast<size_t>(format_.steps() * 4));
  for (int64_t part = 0; part < format_.parts(); ++part) {
    for (int64_t i = 0; i < format_.head_dim; ++i) {
      const bf16 number = to_finite_bf16(floats_[i]);
      floats_[i] -= to_float(number);
      std::memcpy(out + part * part_bytes + i * 2, &number, sizeof(number));
    }
  }
}

void transpose_elements(const std::byte* first_row, int64_t row_bytes, int64_t rows, int64_t steps,
                        float* packed) {
  constexpr int64_t kElementBytes = sizeof(float);
  const int64_t whole = steps / kTogether * kTogether;
  for (int64_t step = 0; step < whole; step += kTogether) {
    for (int64_t row = 0; row < rows; row += kTogether) {
      const std::byte* const from = first_row + row * row_bytes + step * kElementBytes;
      const FourElements a = load_four(from);
      const FourElements b = load_four(from + row_bytes);
      const FourElements c = load_four(from + 2 * row_bytes);
      const FourElements d = load_four(from + 3 * row_bytes);
      const FourElements ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const FourElements cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const FourElements ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const FourElements cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* const to = packed + step * rows + row;
      store_four(__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), to);
      store_four(__builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), to + rows);
      store_four(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), to + 2 * rows);
      store_four(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), to + 3 * rows);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t step = whole; step < steps; ++step) {
      std::memcpy(packed + step * rows + row, first_row + row * row_bytes + step * kElementBytes,
                  sizeof(float));
    }
  }
}

}  // namespace attnscope
