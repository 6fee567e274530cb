#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/problem/rope_family.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// Where a model's caller places the tokens of a sequence: [tokens, axes], t, y and x first.
struct TokenPositions {
  int64_t axes = 0;
  std::vector<float> values;
};

/// The rotation of one head's rows. Families of a grid turn the cells of the video, and text where
/// the family says so; all else stays as it is. Immutable once made; thread-safe.
class HeadRotation {
 public:
  struct Shape {
    int64_t head_dim = 0;
    int64_t heads = 1;  ///< of the model (ltx, ltx2, ltx2_audio)
    int64_t head = 0;   ///< which of them
    RopeNumbers numbers = {};
    /// mochi: the model's pos_frequencies, [3, heads, head_dim / 2]; borrowed for the call.
    std::span<const float> learnt = {};
    /// Of all tokens, for families that takes_positions() names; null: t, y, x of cells from 0 on.
    std::shared_ptr<const TokenPositions> positions = nullptr;
  };

  /// Why the family does not suit; nothing where it does: no grid for a family that needs one, a
  /// head_dim that cannot be cut into its bands, no learnt frequencies, numbers that no family has,
  /// tokens whose positions only the model's caller knows.
  static std::optional<std::string> obstacle(RopeFamily family, const TokenGrid& tokens,
                                             const Shape& shape);
  /// Nothing where there is an obstacle.
  static std::optional<HeadRotation> make(RopeFamily family, const TokenGrid& tokens,
                                          const Shape& shape);

  /// Turns row [head_dim] of a token in place.
  void apply(int64_t token, float* row) const { turn(token, row, 1); }
  /// Turns it back.
  void undo(int64_t token, float* row) const { turn(token, row, -1); }

 private:
  static constexpr size_t kAxes = 4;  ///< t, y, x, and the place in the text
  /// Channels `first` and `second` are turned by the angle in column `column` of an axis' table.
  struct Pair {
    int32_t first = 0, second = 0;
    int32_t axis = 0, column = 0;
  };
  struct Axis {
    std::vector<double> frequencies;    ///< of its columns
    std::vector<float> cosines, sines;  ///< [cells along it, then text tokens; columns]
    int64_t cells = 0;
  };
  /// Positions of the cells along an axis, and of the text's tokens; those missing are not turned.
  struct Positions {
    std::vector<double> cells, text;
  };

  void turn(int64_t token, float* row, float direction) const;
  void turn_by_positions(int64_t token, float* row, double direction) const;
  explicit HeadRotation(const TokenGrid& tokens) : tokens_(tokens) {}
  void add_pair(int64_t first, int64_t second, size_t axis, double frequency);
  void add_bands(const BandLayout& layout, const Shape& shape);
  void add_line(const Shape& shape, double base, RopePairs pairs);
  /// Pairs take `axes` of t, y, x in turn.
  void add_ltx(const Shape& shape, double base, RopePairs pairs, int64_t axes = 3);
  void add_mochi(const Shape& shape);
  /// angle = frequency · position
  void fill_tables(const std::array<Positions, kAxes>& positions);
  /// position = index · factors[axis] + offsets[axis]
  std::array<Positions, kAxes> even_positions(std::array<double, 3> factors,
                                              std::array<double, 3> offsets) const;
  std::array<Positions, kAxes> band_positions(const BandLayout& layout, const Shape& shape) const;
  std::array<Positions, kAxes> ltx2_positions(double fps) const;
  /// Of sequences without a grid.
  std::array<Positions, kAxes> audio_positions() const;

  TokenGrid tokens_;
  bool by_place_ = false;                            ///< one axis, the index in the sequence
  bool turns_text_ = false;                          ///< tables have rows for the text
  std::shared_ptr<const TokenPositions> positions_;  ///< instead of tables
  std::vector<Pair> pairs_;
  std::array<Axis, kAxes> axes_;
};

}  // namespace attnscope
