#include "kernels/cpu/cpu_packing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "kernels/cpu/cpu_kernels.h"

namespace attnscope {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;

/// Keys read at a time: whole panels. The widest row, 4096 float32, still gives two.
int64_t keys_per_read(const PackedFormat& format, int64_t num_keys) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  const int64_t panels = std::max<int64_t>(1, kReadBytes / (row_bytes * kPanelKeys));
  return std::min(panels * kPanelKeys, round_up(num_keys, kPanelKeys));
}

/// One row to every `stride`-th element of `packed`, as float32.
void scatter_floats(const PackedFormat& format, const std::byte* row, int64_t stride, float* packed,
                    float* scratch, int exponent) {
  to_floats(format.dtype, row, format.head_dim, scratch);
  apply_feature_map(format.score, scratch, format.head_dim, exponent);
  for (int64_t i = 0; i < format.head_dim; ++i) packed[i * stride] = scratch[i];
}

/// The same as pairs of bf16. Their bits may be those of a signalling NaN once taken for a float,
/// so they are copied as bytes.
void scatter_pairs(const PackedFormat& format, const std::byte* row, int64_t stride,
                   float* packed) {
  for (int64_t i = 0; i < format.steps(); ++i) {
    const int64_t channels = std::min<int64_t>(2, format.head_dim - 2 * i);
    uint16_t pair[2] = {0, 0};
    std::memcpy(pair, row + 4 * i, static_cast<size_t>(2 * channels));
    const uint32_t bits = static_cast<uint32_t>(pair[1]) << 16 | pair[0];
    std::memcpy(packed + i * stride, &bits, sizeof(bits));
  }
}

void scatter_row(const PackedFormat& format, const std::byte* row, int64_t stride, float* packed,
                 float* scratch, int exponent) {
  if (format.bf16_pairs) {
    scatter_pairs(format, row, stride, packed);
  } else {
    scatter_floats(format, row, stride, packed, scratch, exponent);
  }
}

/// The row's exponent; 0 for all scores but linear:elu1.
int row_exponent(const PackedFormat& format, const std::byte* row, float* scratch) {
  if (format.score != ScoreFunction::linear_elu1) return 0;
  to_floats(format.dtype, row, format.head_dim, scratch);
  return feature_exponent(format.score, *std::max_element(scratch, scratch + format.head_dim));
}

/// The exponent of a whole head of K: of its largest number.
int head_exponent(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                  int64_t piece, std::byte* rows, float* scratch) {
  if (format.score != ScoreFunction::linear_elu1) return 0;
  int largest = std::numeric_limits<int>::min();
  for (int64_t begin = 0; begin < k.tokens(); begin += piece) {
    const IndexRange keys{begin, std::min(begin + piece, k.tokens())};
    k.read_rows(batch, head, keys, rows);
    for (int64_t key = 0; key < keys.size(); ++key) {
      largest = std::max(largest, row_exponent(format, rows + key * k.row_bytes(), scratch));
      if (largest == 0) return 0;
    }
  }
  return largest;
}

}  // namespace

int feature_exponent(ScoreFunction score, float largest) {
  // exp(x) ≥ 2⁻²⁰ is far enough from float32's end for products of two of them.
  constexpr float kSmall = -20 * std::numbers::ln2_v<float>;
  if (score != ScoreFunction::linear_elu1 || largest >= kSmall) return 0;
  return static_cast<int>(std::floor(static_cast<double>(largest) * std::numbers::log2e));
}

void apply_feature_map(ScoreFunction score, float* values, int64_t count, int exponent) {
  if (score == ScoreFunction::linear_relu) {
    for (int64_t i = 0; i < count; ++i) values[i] = std::max(values[i], 0.0f);
  } else if (score == ScoreFunction::linear_elu1 && exponent == 0) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = values[i] > 0 ? values[i] + 1.0f : std::exp(values[i]);
    }
  } else if (score == ScoreFunction::linear_elu1) {
    // Every value is far below 0.
    const double shift = exponent * std::numbers::ln2;
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(std::exp(static_cast<double>(values[i]) - shift));
    }
  }
}

int64_t packed_key_elements(const PackedFormat& format, int64_t num_keys) {
  return round_up(num_keys, kPanelKeys) * format.steps();
}

int64_t pack_keys_transient_bytes(const PackedFormat& format, int64_t num_keys) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  return keys_per_read(format, num_keys) * row_bytes +
         format.head_dim * static_cast<int64_t>(sizeof(float));
}

int pack_keys(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
              float* panels) {
  const int64_t piece = keys_per_read(format, k.tokens());
  const int64_t panel_elements = format.steps() * kPanelKeys;
  std::vector<std::byte> rows(static_cast<size_t>(piece * k.row_bytes()));
  std::vector<float> scratch(static_cast<size_t>(format.head_dim));
  const int exponent = head_exponent(format, k, batch, head, piece, rows.data(), scratch.data());
  for (int64_t begin = 0; begin < k.tokens(); begin += piece) {
    const IndexRange keys{begin, std::min(begin + piece, k.tokens())};
    k.read_rows(batch, head, keys, rows.data());
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      float* panel = panels + key / kPanelKeys * panel_elements;
      scatter_row(format, rows.data() + (key - begin) * k.row_bytes(), kPanelKeys,
                  panel + key % kPanelKeys, scratch.data(), exponent);
    }
  }
  // The ragged end of the last panel.
  const int64_t padded = round_up(k.tokens(), kPanelKeys);
  for (int64_t key = k.tokens(); key < padded; ++key) {
    float* lane = panels + key / kPanelKeys * panel_elements + key % kPanelKeys;
    for (int64_t step = 0; step < format.steps(); ++step) lane[step * kPanelKeys] = 0;
  }
  return exponent;
}

void pack_queries(const PackedFormat& format, const std::byte* rows, int64_t count, float* group,
                  float* scratch, float* exponents) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  if (count < kGroupRows) std::fill_n(group, format.steps() * kGroupRows, 0.0f);
  std::fill_n(exponents, kGroupRows, 0.0f);
  for (int64_t row = 0; row < count; ++row) {
    const std::byte* source = rows + row * row_bytes;
    const int exponent = row_exponent(format, source, scratch);
    scatter_row(format, source, kGroupRows, group + row, scratch, exponent);
    exponents[row] = static_cast<float>(exponent);
  }
}

}  // namespace attnscope
