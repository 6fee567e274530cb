#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/problem/token_grid.h"

namespace attnscope {

/// How a model family turns pairs of channels by their token's position (rotary embedding, Su et
/// al. 2021, arXiv:2104.09864). Bands and bases are those of the families' public code (diffusers).
enum class RopeFamily : uint8_t {
  cogvideox,  ///< t, y, x bands of d/4, 3d/8, 3d/8 channels, base 10000
  hunyuan,    ///< bands of d/8, 7d/16, 7d/16, base 256
  flux,       ///< the same bands, base 10000; Open-Sora 2 as well
  wan,        ///< y and x bands of 2⌊d/6⌋, t the rest, base 10000
  ltx,        ///< t, y, x in turn over the channels of all heads, fractional positions
  mochi,      ///< every pair by t, y and x together, by learnt frequencies; y and x centred
  gptj,       ///< one axis, the place in the sequence; neighbouring channels, base 10000
  llama,      ///< the same, channel i with channel i + d/2
};

std::string_view rope_name(RopeFamily family);
std::optional<RopeFamily> parse_rope(std::string_view name);
/// All families, in the order above.
std::span<const RopeFamily> rope_families();

/// The rotation of one head's rows. Video families turn video tokens alone: text stays as it is.
/// Immutable once made; thread-safe.
class HeadRotation {
 public:
  struct Shape {
    int64_t head_dim = 0;
    int64_t heads = 1;  ///< of the model (ltx)
    int64_t head = 0;   ///< which of them
    double base = 0;    ///< instead of the family's; 0: the family's own
    /// mochi: the model's pos_frequencies, [3, heads, head_dim / 2]; borrowed for the call.
    std::span<const float> learnt = {};
  };

  /// Nothing where the family does not suit: no grid for a family that needs one, a head_dim
  /// that cannot be cut into its bands, no learnt frequencies.
  static std::optional<HeadRotation> make(RopeFamily family, const TokenGrid& tokens,
                                          const Shape& shape);

  /// Turns row [head_dim] of a token in place.
  void apply(int64_t token, float* row) const { turn(token, row, 1); }
  /// Turns it back.
  void undo(int64_t token, float* row) const { turn(token, row, -1); }

 private:
  /// Channels `first` and `second` are turned by the angle in column `column` of an axis' table.
  struct Pair {
    int32_t first = 0, second = 0;
    int32_t axis = 0, column = 0;
  };
  struct Axis {
    int64_t positions = 0;
    std::vector<double> frequencies;    ///< of its columns
    std::vector<float> cosines, sines;  ///< [positions, columns]
  };

  void turn(int64_t token, float* row, float direction) const;
  explicit HeadRotation(const TokenGrid& tokens) : tokens_(tokens) {}
  void add_pair(int64_t first, int64_t second, size_t axis, double frequency);
  void add_bands(std::array<int64_t, 3> bands, double base);
  void add_line(const Shape& shape, double base, bool halves);
  void add_ltx(const Shape& shape, double base);
  void add_mochi(const Shape& shape);
  /// angle = frequency · (position · factors[axis] + offsets[axis])
  void fill_tables(std::array<double, 3> factors, std::array<double, 3> offsets);

  TokenGrid tokens_;
  bool by_place_ = false;  ///< one axis, the index in the sequence
  std::vector<Pair> pairs_;
  std::array<Axis, 3> axes_;
};

}  // namespace attnscope
