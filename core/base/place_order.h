#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace attnscope {

/// In which order a sequence's tokens stand along a side of a map: which token is at a place, and
/// at which place a token is. A value that shares its lists; immutable and thread-safe. Two are
/// equal where they share them.
class PlaceOrder {
 public:
  /// Every token in its own place.
  PlaceOrder() = default;
  /// `tokens` [places] holds each number from 0 to its length − 1 once.
  explicit PlaceOrder(std::vector<int32_t> tokens);

  bool is_identity() const { return lists_ == nullptr; }
  /// Both within the sequence.
  int64_t token(int64_t place) const {
    return is_identity() ? place : lists_->tokens[static_cast<size_t>(place)];
  }
  int64_t place(int64_t token) const {
    return is_identity() ? token : lists_->places[static_cast<size_t>(token)];
  }
  /// [places]; empty where every token is in its own.
  std::span<const int32_t> tokens() const;
  /// Bytes that the lists hold.
  int64_t bytes() const;

  friend bool operator==(const PlaceOrder&, const PlaceOrder&) = default;

 private:
  struct Lists {
    std::vector<int32_t> tokens, places;
  };
  std::shared_ptr<const Lists> lists_;
};

/// The orders of a map's sides.
struct MapPlaces {
  PlaceOrder rows, keys;
  bool is_identity() const { return rows.is_identity() && keys.is_identity(); }
  friend bool operator==(const MapPlaces&, const MapPlaces&) = default;
};

}  // namespace attnscope
