#include "viewer/view/placed_map.h"

#include <algorithm>
#include <filesystem>

namespace attnscope {
namespace {

/// Some grids, in a few orders each.
constexpr size_t kMostKnown = 24;

/// Where the blocks of one grid begin.
void add_blocks(const TokenOrder& order, const OrderedGrid& part, std::vector<int64_t>& blocks) {
  const auto& n = part.grid;
  if (order.kind == TokenOrder::Kind::axes) {
    const int64_t count = n[static_cast<size_t>(order.axes[0])];
    const int64_t size = n[0] * n[1] * n[2] / count;
    if (size * count != part.tokens.size()) return;
    for (int64_t i = 0; i <= count; ++i) blocks.push_back(part.tokens.begin + i * size);
  }
  if (order.kind != TokenOrder::Kind::tiles || n[0] * n[1] * n[2] != part.tokens.size()) return;
  int64_t at = part.tokens.begin;
  const auto side = [&](size_t axis, int64_t from) {
    return std::min(order.tile[axis], n[axis] - from);
  };
  for (int64_t t = 0; t < n[0]; t += order.tile[0]) {
    for (int64_t y = 0; y < n[1]; y += order.tile[1]) {
      for (int64_t x = 0; x < n[2]; x += order.tile[2]) {
        blocks.push_back(at);
        at += side(0, t) * side(1, y) * side(2, x);
      }
    }
  }
  blocks.push_back(at);
}

std::string side_text(const TokenOrder& order) {
  if (order.kind == TokenOrder::Kind::stored) return "as stored";
  if (order.kind != TokenOrder::Kind::listed) return order.text();
  return std::filesystem::path(order.file).filename().string();
}

}  // namespace

PlacedSide placed_side(const TokenOrder& order, const TokenGrid& tokens) {
  PlacedSide side{order, make_place_order(order, tokens), {}, true};
  if (side.is_stored()) return side;
  side.keeps_parts = order.kind != TokenOrder::Kind::listed ||
                     static_cast<int64_t>(order.list->size()) != tokens.tokens();
  for (const OrderedGrid& part : ordered_grids(tokens)) add_blocks(order, part, side.blocks);
  side.blocks.erase(std::unique(side.blocks.begin(), side.blocks.end()), side.blocks.end());
  return side;
}

IndexRange block_around(const PlacedSide& side, const TokenGrid& tokens, int64_t place) {
  if (!side.is_stored()) {
    const auto past = std::upper_bound(side.blocks.begin(), side.blocks.end(), place);
    return {past == side.blocks.begin() ? 0 : *(past - 1),
            past == side.blocks.end() ? tokens.tokens() : *past};
  }
  if (const auto coord = tokens.has_grid() ? tokens.coord(place) : std::nullopt) {
    const int64_t first = tokens.index_of({coord->t, 0, 0});
    return {first, first + tokens.height() * tokens.width()};
  }
  for (const TokenSegment& segment : tokens.other_segments()) {
    if (segment.tokens.contains(place)) return segment.tokens;
  }
  const IndexRange text = tokens.text_range();
  return text.contains(place) ? text : IndexRange{0, tokens.tokens()};
}

PlacedMap PlacedMaps::of(const MapOrder& order, const TokenGrid& queries, const TokenGrid& keys) {
  return {side(order.rows, queries), side(order.keys, keys)};
}

std::shared_ptr<const PlacedSide> PlacedMaps::side(const TokenOrder& order,
                                                   const TokenGrid& tokens) {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.side->order == order && known.tokens == tokens;
  });
  if (found != known_.end()) {
    std::rotate(found, found + 1, known_.end());
    return known_.back().side;
  }
  auto made = std::make_shared<const PlacedSide>(placed_side(order, tokens));
  if (known_.size() >= kMostKnown) known_.erase(known_.begin());
  known_.push_back({tokens, made});
  return made;
}

std::string order_text(const MapOrder& order) {
  if (order.is_stored()) return "";
  if (order.rows == order.keys) return "order " + side_text(order.rows);
  return "rows " + side_text(order.rows) + ", keys " + side_text(order.keys);
}

}  // namespace attnscope
