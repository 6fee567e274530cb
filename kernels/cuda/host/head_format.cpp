#include "kernels/cuda/host/head_format.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "kernels/cpu/cpu_packing.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

HeadFormat HeadFormat::of(const AttentionProblem& problem, bool tiled) {
  constexpr int64_t kStep = 16;
  HeadFormat format;
  format.source = problem.q().dtype();
  format.score = problem.score();
  format.head_dim = static_cast<int>(problem.head_dim());
  format.padded_dim = static_cast<int>(round_up(problem.head_dim(), kStep));
  format.element_bytes = is_linear(format.score) ? 4 : dtype_bytes(format.source);
  format.tiled = tiled;
  return format;
}

int64_t HeadFormat::row_bytes() const {
  return (tiled ? round_up(padded_dim, kChunkChannels) : padded_dim) * element_bytes;
}

int64_t HeadFormat::row_unit() const { return tiled ? kTileRows : 1; }

int row_exponent(const HeadFormat& format, const std::byte* row, std::span<float> scratch) {
  if (format.score != ScoreFunction::linear_elu1) return 0;
  to_floats(format.source, row, format.head_dim, scratch.data());
  return feature_exponent(format.score,
                          *std::max_element(scratch.begin(), scratch.begin() + format.head_dim));
}

namespace {

/// The row in units of 16 bytes, zeros behind its end; put(unit, bytes of it).
template <typename Put>
void for_each_unit(std::span<const std::byte> row, int64_t units, Put put) {
  for (int64_t unit = 0; unit < units; ++unit) {
    std::byte bytes[kUnitBytes] = {};
    const auto at = static_cast<size_t>(unit * kUnitBytes);
    if (at < row.size())
      std::copy_n(row.data() + at, std::min<size_t>(kUnitBytes, row.size() - at), bytes);
    put(unit, bytes);
  }
}

void pack_in_tile(const HeadFormat& format, Operand operand, std::span<const std::byte> row,
                  int64_t index, std::byte* packed) {
  constexpr int64_t kChunkUnits = kChunkRowBytes / kUnitBytes;
  const auto row_of_tile = static_cast<int>(index % kTileRows);
  const int64_t in_tile = operand == Operand::queries ? query_place(row_of_tile) : row_of_tile;
  std::byte* const tile = packed + (index - row_of_tile) * format.row_bytes();
  for_each_unit(row, format.row_bytes() / kUnitBytes, [&](int64_t unit, const std::byte* bytes) {
    const int64_t place = (unit % kChunkUnits) ^ (in_tile % kChunkUnits);
    std::copy_n(
        bytes, kUnitBytes,
        tile + unit / kChunkUnits * kChunkBytes + in_tile * kChunkRowBytes + place * kUnitBytes);
  });
}

}  // namespace

void pack_row(const HeadFormat& format, Operand operand, const std::byte* row, int exponent,
              std::span<float> scratch, int64_t index, std::byte* packed) {
  const auto row_bytes = static_cast<size_t>(format.head_dim * format.element_bytes);
  if (row != nullptr && is_linear(format.score)) {
    to_floats(format.source, row, format.head_dim, scratch.data());
    apply_feature_map(format.score, scratch.data(), format.head_dim, exponent);
    row = reinterpret_cast<const std::byte*>(scratch.data());
  }
  const std::span<const std::byte> bytes(row, row == nullptr ? 0 : row_bytes);
  if (format.tiled) {
    pack_in_tile(format, operand, bytes, index, packed);
    return;
  }
  std::byte* const to = packed + index * format.row_bytes();
  std::copy(bytes.begin(), bytes.end(), to);
  std::fill_n(to + bytes.size(), static_cast<size_t>(format.row_bytes()) - bytes.size(),
              std::byte{0});
}

}  // namespace attnscope::cuda
