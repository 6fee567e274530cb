#include "core/problem/token_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/problem_names.h"

namespace attnscope {
namespace {

constexpr std::string_view kTiles = "tiles:";
constexpr std::string_view kAxisNames = "tyx";

/// "yxt" → {1, 2, 0}.
std::optional<std::array<int, 3>> parse_axes(const std::string& name) {
  if (name == "raster") return std::array{0, 1, 2};
  std::string sorted = name;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != "txy") return std::nullopt;
  std::array<int, 3> axes{};
  for (size_t i = 0; i < 3; ++i) axes[i] = static_cast<int>(kAxisNames.find(name[i]));
  return axes;
}

using Cell = std::array<int64_t, 3>;

uint64_t interleaved(const std::array<uint64_t, 3>& bits, int width) {
  uint64_t index = 0;
  for (int bit = width - 1; bit >= 0; --bit) {
    for (const uint64_t axis : bits) index = index << 1 | (axis >> bit & 1);
  }
  return index;
}

std::array<uint64_t, 3> unsigned_cell(const Cell& cell) {
  return {static_cast<uint64_t>(cell[0]), static_cast<uint64_t>(cell[1]),
          static_cast<uint64_t>(cell[2])};
}

/// The index on a Hilbert curve in a cube of side 2^width: J. Skilling, Programming the Hilbert
/// curve, AIP Conference Proceedings 707 (2004), from axes to the transposed index.
uint64_t hilbert_index(const Cell& cell, int width) {
  std::array<uint64_t, 3> x = unsigned_cell(cell);
  for (uint64_t bit = width > 0 ? uint64_t{1} << (width - 1) : 0; bit > 1; bit >>= 1) {
    const uint64_t low = bit - 1;
    for (uint64_t& axis : x) {
      if ((axis & bit) != 0) {
        x[0] ^= low;
      } else {
        const uint64_t swapped = (x[0] ^ axis) & low;
        x[0] ^= swapped;
        axis ^= swapped;
      }
    }
  }
  x[1] ^= x[0];
  x[2] ^= x[1];
  uint64_t turned = 0;
  for (uint64_t bit = width > 0 ? uint64_t{1} << (width - 1) : 0; bit > 1; bit >>= 1) {
    if ((x[2] & bit) != 0) turned ^= bit - 1;
  }
  for (uint64_t& axis : x) axis ^= turned;
  return interleaved(x, width);
}

/// Bits that the longest side of a grid takes.
int bits_of(const std::array<int64_t, 3>& grid) {
  int width = 0;
  while ((int64_t{1} << width) < *std::max_element(grid.begin(), grid.end())) ++width;
  return width;
}

/// Where a cell comes in an order: smaller numbers first, each once.
std::function<uint64_t(const Cell&)> rank_of(const TokenOrder& order,
                                             const std::array<int64_t, 3>& grid) {
  const int width = bits_of(grid);
  if (order.kind == TokenOrder::Kind::hilbert) {
    return [width](const Cell& cell) { return hilbert_index(cell, width); };
  }
  if (order.kind == TokenOrder::Kind::morton) {
    return [width](const Cell& cell) { return interleaved(unsigned_cell(cell), width); };
  }
  if (order.kind == TokenOrder::Kind::tiles) {
    return [grid, tile = order.tile](const Cell& cell) {
      int64_t outer = 0, inner = 0;
      for (size_t a = 0; a < 3; ++a) {
        outer = outer * ((grid[a] + tile[a] - 1) / tile[a]) + cell[a] / tile[a];
        inner = inner * tile[a] + cell[a] % tile[a];
      }
      return static_cast<uint64_t>(outer * tile[0] * tile[1] * tile[2] + inner);
    };
  }
  return [grid, axes = order.axes](const Cell& cell) {
    int64_t rank = 0;
    for (const int axis : axes) {
      const auto a = static_cast<size_t>(axis);
      rank = rank * grid[a] + cell[a];
    }
    return static_cast<uint64_t>(rank);
  };
}

/// Puts the tokens of one grid in order, within the places that they have.
void order_grid(const TokenOrder& order, const TokenGrid& tokens, const OrderedGrid& part,
                std::vector<int32_t>& out) {
  const auto rank = rank_of(order, part.grid);
  std::vector<std::pair<uint64_t, int32_t>> ranked;
  ranked.reserve(static_cast<size_t>(part.tokens.size()));
  for (int64_t token = part.tokens.begin; token < part.tokens.end; ++token) {
    const LatentCoord at = *tokens.any_coord(token);
    ranked.emplace_back(rank({at.t, at.y, at.x}), static_cast<int32_t>(token));
  }
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i < ranked.size(); ++i) {
    out[static_cast<size_t>(part.tokens.begin) + i] = ranked[i].second;
  }
}

/// True of a list of the tokens of the one grid, not of the whole sequence.
bool is_of_grid(const TokenOrder& order, const OrderedSide& side) {
  const auto length = static_cast<int64_t>(order.list->size());
  return length != side.tokens && side.grids == 1 && length == side.cells;
}

std::string list_problem(const TokenOrder& order, const OrderedSide& side) {
  if (static_cast<int64_t>(order.list->size()) != side.tokens && !is_of_grid(order, side)) {
    const std::string of_grid = side.grids == 1 && side.cells != side.tokens
                                    ? " or, of the grid alone, " + std::to_string(side.cells)
                                    : "";
    return order.file + ": has " + std::to_string(order.list->size()) + " numbers, expected " +
           std::to_string(side.tokens) + of_grid;
  }
  const auto length = static_cast<int64_t>(order.list->size());
  std::vector<int64_t> found(order.list->size(), -1);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t token = (*order.list)[static_cast<size_t>(i)];
    if (token < 0 || token >= length) {
      return order.file + ": number " + std::to_string(i) + " is " + std::to_string(token) +
             ", expected 0 to " + std::to_string(length - 1);
    }
    int64_t& before = found[static_cast<size_t>(token)];
    if (before >= 0) {
      return order.file + ": " + std::to_string(token) + " is there twice, as number " +
             std::to_string(before) + " and " + std::to_string(i) +
             "; an order has every token once";
    }
    before = i;
  }
  return "";
}

}  // namespace

std::vector<std::string> token_order_names() {
  return {"stored", "raster", "yxt", "hilbert", "morton", "tiles:TxHxW"};
}

bool TokenOrder::is_name(const std::string& text) {
  const std::vector<std::string> known = token_order_names();
  return text.starts_with(kTiles) || parse_axes(text) ||
         std::find(known.begin(), known.end(), text) != known.end();
}

TokenOrder TokenOrder::parse(const std::string& name) {
  TokenOrder order;
  if (name == "stored") return order;
  if (name == "hilbert" || name == "morton") {
    order.kind = name == "hilbert" ? Kind::hilbert : Kind::morton;
    return order;
  }
  if (const auto axes = parse_axes(name)) {
    order.kind = Kind::axes;
    order.axes = *axes;
    return order;
  }
  if (name.starts_with(kTiles)) {
    order.kind = Kind::tiles;
    try {
      order.tile = parse_grid(name.substr(kTiles.size()));
    } catch (const Error&) {
      throw usage_error("order " + one_line(name) +
                        ": expected tiles:TxHxW, three numbers of 1 or more");
    }
    // More than any grid has, so that no product of them overflows.
    for (int64_t& side : order.tile) side = std::min(side, int64_t{1} << 20);
    return order;
  }
  const std::string nearest = nearest_word(name, token_order_names());
  std::string all;
  for (const std::string& each : token_order_names()) all += (all.empty() ? "" : ", ") + each;
  throw usage_error("order " + one_line(name) + ": no such order" +
                    (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" + all +
                    ", or a file)");
}

std::string TokenOrder::text() const {
  switch (kind) {
    case Kind::stored:
      return "stored";
    case Kind::axes: {
      std::string name;
      for (const int axis : axes) name += kAxisNames[static_cast<size_t>(axis)];
      return name == kAxisNames ? "raster" : name;
    }
    case Kind::tiles:
      return std::string(kTiles) + std::to_string(tile[0]) + "x" + std::to_string(tile[1]) + "x" +
             std::to_string(tile[2]);
    case Kind::hilbert:
      return "hilbert";
    case Kind::morton:
      return "morton";
    case Kind::listed:
      return file;
  }
  return "";
}

std::vector<OrderedGrid> ordered_grids(const TokenGrid& tokens) {
  std::vector<OrderedGrid> grids;
  if (!tokens.has_map()) {
    if (tokens.has_grid()) {
      grids.push_back({tokens.video_range(), {tokens.frames(), tokens.height(), tokens.width()}});
    }
    return grids;
  }
  for (const TokenSegment& segment : tokens.segments()) {
    const bool known = segment.has_grid() && !segment.tokens.empty() &&
                       (segment.order != CellOrder::listed || segment.cells != nullptr);
    if (known) grids.push_back({segment.tokens, segment.grid});
  }
  return grids;
}

OrderedSide OrderedSide::of(const TokenGrid& tokens) {
  OrderedSide side{tokens.tokens(), 0, 0};
  for (const OrderedGrid& grid : ordered_grids(tokens)) {
    ++side.grids;
    side.cells += grid.tokens.size();
  }
  return side;
}

std::string order_problem(const TokenOrder& order, const OrderedSide& side) {
  if (order.kind == TokenOrder::Kind::stored) return "";
  if (order.kind == TokenOrder::Kind::listed) return list_problem(order, side);
  return side.grids == 0 ? "order " + order.text() + ": no grid of the tokens is known" : "";
}

PlaceOrder make_place_order(const TokenOrder& order, const TokenGrid& tokens) {
  const OrderedSide side = OrderedSide::of(tokens);
  if (const std::string problem = order_problem(order, side); !problem.empty()) {
    throw usage_error(problem);
  }
  if (order.kind == TokenOrder::Kind::stored) return {};
  std::vector<int32_t> stored(static_cast<size_t>(tokens.tokens()));
  std::iota(stored.begin(), stored.end(), 0);
  std::vector<int32_t> places = stored;
  if (order.kind == TokenOrder::Kind::listed) {
    const int64_t begin = is_of_grid(order, side) ? ordered_grids(tokens).front().tokens.begin : 0;
    for (size_t i = 0; i < order.list->size(); ++i) {
      places[static_cast<size_t>(begin) + i] = static_cast<int32_t>(begin + (*order.list)[i]);
    }
  } else {
    for (const OrderedGrid& part : ordered_grids(tokens)) order_grid(order, tokens, part, places);
  }
  return places == stored ? PlaceOrder() : PlaceOrder(std::move(places));
}

}  // namespace attnscope
