#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/problem/token_order.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// One side of the matrix as it stands: which token is at which place. The one way from a place of
/// the matrix to a token of the sequence and back. Immutable.
struct PlacedSide {
  TokenOrder order;
  PlaceOrder places;
  /// Where blocks of the order begin (rows of its first axis, tiles), and where the last ends;
  /// ascending. Empty in the stored order, which has its frames, and where there are none.
  std::vector<int64_t> blocks;
  /// Text and the other parts of the sequence stand where they are stored; not so where a list is
  /// of the whole sequence.
  bool keeps_parts = true;

  bool is_stored() const { return order.kind == TokenOrder::Kind::stored; }
  int64_t token(int64_t place) const { return places.token(place); }
  int64_t place(int64_t token) const { return places.place(token); }
};

/// Throws Error(usage) with order_problem().
PlacedSide placed_side(const TokenOrder& order, const TokenGrid& tokens);

/// The block of an order around a place, which is within the sequence: of the stored one a frame of
/// the video, the text or another segment; of others the block, or what stands outside of all of
/// them. Where there are none, all of the side.
IndexRange block_around(const PlacedSide& side, const TokenGrid& tokens, int64_t place);

struct PlacedMap {
  std::shared_ptr<const PlacedSide> rows, keys;
  MapPlaces places() const { return {rows->places, keys->places}; }
};

/// Places of the maps that were looked at lately. Only on the window's thread.
class PlacedMaps {
 public:
  /// Of a map with these tokens. Throws as placed_side().
  PlacedMap of(const MapOrder& order, const TokenGrid& queries, const TokenGrid& keys);

 private:
  struct Known {
    TokenGrid tokens;
    std::shared_ptr<const PlacedSide> side;
  };
  std::shared_ptr<const PlacedSide> side(const TokenOrder& order, const TokenGrid& tokens);
  std::vector<Known> known_;  ///< used last at the end
};

/// "order yxt", "rows tiles:4x8x8, keys as stored"; of the stored order empty.
std::string order_text(const MapOrder& order);

}  // namespace attnscope
