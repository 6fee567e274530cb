#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Which way attention is followed through a layer: r ← ½(r + r·Ā) from an output token back to the
/// inputs that shaped it, or c ← ½(c + Ā·c) from an input token on to the outputs that it shapes
/// (Abnar and Zuidema 2020, with ½ for the residual connection). Of a row whose sink has the share
/// s the map adds up to 1 − s: as they do, the identity is added to the map and the row divided by
/// its sum, which is 1/(2 − s) instead of ½; of each head before the mean over heads.
enum class RolloutDirection : uint8_t { to_inputs, to_outputs };

/// A TileSink that takes one layer of a rollout and its rows' norms: Ā is the mean over the tasks,
/// all of them heads of one batch item with the same tokens as queries and keys. Products are
/// summed in double over 16 rows (to_inputs) or a row (to_outputs), and these sums in units of
/// 2⁻⁵⁰, so that the result depends neither on memory nor on threads. Whole rows only, in tiles
/// whose height is a multiple of kGroupRows.
class RolloutLayer : public TileSink {
 public:
  static constexpr int64_t kGroupRows = 16;
  static constexpr int64_t kMostHeads = 2048;

  /// `influence` [tokens], entries ≥ 0: r sums to at most 1, or c is at most 1. Reserves what at
  /// most `workers` threads need.
  RolloutLayer(std::vector<double> influence, int64_t heads, RolloutDirection direction,
               const TileRequest& request, int workers, MemoryBudget& budget);
  /// The bytes that the constructor will reserve.
  static int64_t bytes(int64_t tokens, int workers) { return tokens * (3 + 2 * workers) * 8; }

  /// The sums of this process's tiles, in whole units that can be added up in any order: where
  /// several processes share a layer, the sums over all of them replace these before next().
  std::span<int64_t> sums() { return sums_; }
  /// True where rows have no influence to hand on: they need not be computed.
  bool is_idle(IndexRange rows) const;

  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

  /// ½(influence + what came through the layer).
  std::vector<double> next() const;

 private:
  /// 2/(2 − s) for row r of the tile; exactly 1 where the row has no sink.
  double row_factor(const Tile& tile, int64_t r) const;
  void hand_back(const Tile& tile);
  void hand_on(const Tile& tile);

  const std::vector<double> influence_;
  const int64_t heads_;
  const RolloutDirection direction_;
  const TileRequest request_;
  MemoryReservation reservation_;
  std::mutex mutex_;
  std::vector<int64_t> sums_;
};

}  // namespace attnscope
