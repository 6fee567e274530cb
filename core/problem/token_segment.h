#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/latent_coord.h"

namespace attnscope {

/// The kind of content that the tokens of a segment stand for.
enum class Modality : uint8_t {
  video,
  image,
  text,
  audio,
  reference,
  history,
  registers,
  padding,
  other
};
std::string_view modality_name(Modality modality);
std::optional<Modality> parse_modality(std::string_view name);
/// All of them, in order.
std::vector<std::string> modality_names();

/// In which order the cells of a segment's grid stand in the sequence: row-major; in tiles, both
/// the tiles and the cells within one row-major, tiles at the far edges as small as they must be;
/// or as a list says, which may be unknown.
enum class CellOrder : uint8_t { raster, tiles, listed };

/// A run of tokens of a sequence that belong together: one encoder's words, a reference picture,
/// the video. A value.
struct TokenSegment {
  std::string name;  ///< unique in its sequence: no white space, colon, comma or slash
  Modality modality = Modality::other;
  IndexRange tokens;
  std::array<int64_t, 3> grid{};  ///< latent frames, rows, columns; zeros: none
  std::array<int64_t, 3> cell{};  ///< video frames and pixels a cell covers; zeros: unknown
  int64_t first_frame = 0;        ///< the latent frame of the stream that its frame 0 is
  /// The number in its stream of the first token, those of a stream counted from 0; the others
  /// follow it. Nothing: it is of no stream, or that is not known.
  std::optional<int64_t> position = std::nullopt;
  CellOrder order = CellOrder::raster;
  std::array<int64_t, 3> tile{};  ///< of CellOrder::tiles
  /// Of CellOrder::listed which row-major cell each token is, [tokens]; null: that is not known.
  std::shared_ptr<const std::vector<int32_t>> cells;
  /// The first so many tokens are no padding: one number, or one a batch item; empty: all.
  std::vector<int64_t> valid;
  /// Which tokens are no padding, [1 or batch][tokens]; null: `valid` tells.
  std::shared_ptr<const std::vector<std::vector<uint8_t>>> valid_tokens;

  bool has_grid() const { return grid[0] > 0; }
  /// True where its frames, rows and columns follow each other in the sequence.
  bool is_raster() const { return has_grid() && order == CellOrder::raster; }
  bool has_padding() const { return !valid.empty() || valid_tokens != nullptr; }
  /// Batch items that `valid` or `valid_tokens` tell apart; 1: none.
  int64_t valid_items() const;
  /// Of a token of the segment, counted from its first.
  bool is_valid(int64_t token, int64_t batch) const;
  /// The cell of a token, counted from its first; nothing where there is no grid, or its order is
  /// not known.
  std::optional<LatentCoord> coord(int64_t token) const;
  /// The token, counted from its first, at a position. Throws Error(usage) naming the valid range,
  /// or that there is no grid.
  int64_t token_at(LatentCoord place) const;

  /// Bytes that it holds: what a map of many segments, and of listed places, costs.
  int64_t held_bytes() const;

  friend bool operator==(const TokenSegment& a, const TokenSegment& b);
};

/// Throws Error(usage) "T = 13 is outside the grid (valid: 0 to 12)".
void check_inside(LatentCoord coord, const std::array<int64_t, 3>& grid);

}  // namespace attnscope
