#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/place_order.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// A name for an order of the tokens of a T×H×W grid. A value.
struct TokenOrder {
  enum class Kind : uint8_t {
    stored,   ///< as the capture has them
    axes,     ///< row-major, by axes[0] first, axes[2] fastest
    tiles,    ///< tile by tile, both tiles and the cells within one row-major by (t, y, x)
    hilbert,  ///< along a Hilbert curve
    morton,   ///< along a Z-order curve
    listed    ///< as a list says
  };
  Kind kind = Kind::stored;
  std::array<int, 3> axes{0, 1, 2};  ///< of Kind::axes: 0 is t, 1 is y, 2 is x
  std::array<int64_t, 3> tile{};     ///< of Kind::tiles: frames, rows, columns
  std::string file;                  ///< of Kind::listed: what the list was read from
  /// Of Kind::listed: the token at each place, of the whole sequence or of its grid alone.
  std::shared_ptr<const std::vector<int64_t>> list;

  /// "stored", "raster" (or "tyx"), "yxt" and the other orders of the axes, "tiles:4x8x8",
  /// "hilbert", "morton". Throws Error(usage) that lists them for anything else.
  static TokenOrder parse(const std::string& name);
  /// True of text in the form of one of these names, also with wrong values; else it names a file.
  static bool is_name(const std::string& text);
  /// The name that parse() reads, or the file.
  std::string text() const;
  /// A list is the same where it was read once.
  friend bool operator==(const TokenOrder&, const TokenOrder&) = default;
};

/// The tokens that an order moves: those of grids whose cells are known. Each grid keeps the places
/// that it has in the sequence, so that text stays where it is.
struct OrderedGrid {
  IndexRange tokens;
  std::array<int64_t, 3> grid{};
};
std::vector<OrderedGrid> ordered_grids(const TokenGrid& tokens);

/// The facts about a side's tokens that order_problem() needs.
struct OrderedSide {
  int64_t tokens = 0;
  int64_t grids = 0;  ///< ordered_grids()
  int64_t cells = 0;  ///< of all of them
  static OrderedSide of(const TokenGrid& tokens);
  friend bool operator==(const OrderedSide&, const OrderedSide&) = default;
};

/// Why a side with these tokens cannot stand in this order, one line; empty: it can.
std::string order_problem(const TokenOrder& order, const OrderedSide& side);

/// The order of a side with these tokens. Hilbert and Z-order curves are those of the smallest cube
/// with a power of two as its side that holds the grid; cells outside of the grid are left out.
/// Throws Error(usage) with order_problem().
PlaceOrder make_place_order(const TokenOrder& order, const TokenGrid& tokens);

}  // namespace attnscope
