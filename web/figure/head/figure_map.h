#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/stream/tile_sink.h"
#include "web/engine/page_mask.h"
#include "web/figure/head/figure_cut.h"

namespace attnscope {

/// Blocks of 2^level × 2^level entries of a cut, as a page carries them.
struct FigurePyramid {
  int level = 0;
  int64_t rows = 0, cols = 0;
  /// [2, rows, cols] the largest and the mean weights: 0 of a weight of 0 (or one below 2⁻¹²⁷),
  /// else 1 + 512·(127 + log₂ w), rounded.
  std::vector<uint16_t> codes;
  /// log₂ of the weights at which colours begin and end: of the maxima that are not 0, 1 % lie
  /// below the first, 0.1 % above the last.
  double low = -1, high = 0;
  /// log₂ of mass_ends() of the maxima, then of the means; each cell holds its mean.
  std::array<std::array<double, 2>, 2> mass{{{-1, 0}, {-1, 0}}};
};

/// The weight that a texel's code stands for.
double weight_of_code(uint16_t code);

/// All that a page carries of a head.
struct FigureMap {
  std::vector<std::byte> q, k;
  std::vector<double> sums;  ///< of RowNorm; empty where rows are not normalised
  std::vector<int32_t> exponents;
  std::optional<PageMask> mask;
  FigurePyramid pyramid;
};

/// Streams the tasks' tiles into the sink, once their tensors were looked through for NaN and Inf.
using FigureStream = std::function<void(std::span<const HeadTask> tasks, TileSink& sink)>;

/// Bytes that making it holds beside what streams do.
int64_t figure_map_bytes(const FigureCut& cut);

/// Reads and computes it. Throws what `stream` throws, and what page_mask_of() throws.
FigureMap make_figure_map(const FigureCut& cut, const FigureStream& stream);

}  // namespace attnscope
