#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/stream/tile_sink.h"

namespace attnscope {

/// A map at a glance, for comparison with other maps of as many queries and keys: the mass that
/// each of a few rows has on runs of keys.
struct MapProfile {
  /// Runs of equal length, the last perhaps shorter.
  static constexpr int64_t kMostCells = 64;
  int64_t cells = 0;
  std::vector<float> mass;  ///< [rows, cells]; 0 in rows of which the mask leaves nothing

  static int64_t bytes(int64_t rows) {
    return rows * kMostCells * static_cast<int64_t>(sizeof(float));
  }
};

/// The rows of a profile: 64 evenly spread ones, or all.
std::vector<int64_t> profile_rows(int64_t queries);

/// Makes the profiles of tasks, whose keys are all keys.
class ProfileCollector : public TileSink {
 public:
  explicit ProfileCollector(std::span<const HeadTask> tasks);

  TileRequest request() const override;
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

  /// Of each task; once the stream is at its end.
  const std::vector<MapProfile>& profiles() const { return profiles_; }

 private:
  int64_t most_keys_ = 0;
  std::vector<MapProfile> profiles_;
};

/// A map among others.
struct NearMap {
  size_t place = 0;
  /// Mean over the rows that both maps have of the Jensen–Shannon divergence in bits between their
  /// cells: never more than that of the keys themselves.
  double divergence = 0;
};

/// The `most` maps whose divergence from that at place `of` is smallest, ascending, of equal ones
/// the first. Their profiles have the same shape. Maps without a common row are not among them.
std::vector<NearMap> nearest_maps(std::span<const MapProfile> maps, size_t of, size_t most);

}  // namespace attnscope
