#pragma once

#include <functional>
#include <memory>

#include "viewer/tiles/texel_reader.h"
#include "viewer/view/tile_source.h"

namespace attnscope {

/// Tiles and lines of an export, read on threads of its own: the entry and the line under the mouse
/// first, then tiles below the base level one by one, then a pass over all rows that makes the
/// whole pyramid. Nothing is sampled. Where a texel covers entries that are not in the file, it
/// shows those that are; where there are none, its numbers are NaN, as those of a line are.
///
/// What failed is told by status().problem and not tried again before it was not wanted for once.
class StoredTileSource : public TileSource {
 public:
  struct Settings {
    int64_t memory = int64_t{2} << 30;  ///< for all that is held: tiles, lines, pyramids, buffers
    int threads = 2;
  };

  /// `wake` as for TileService.
  StoredTileSource(std::shared_ptr<const TexelReader> reader, const Settings& settings,
                   std::function<void()> wake);
  /// Ends the workers as soon as their pieces are done.
  ~StoredTileSource() override;

  MapGeometry geometry(const HeadId& head) const override;
  /// Throws Error(usage) where the export has no such head, numbers, tile, token or entry.
  void want(WantedTiles wishes) override;
  std::shared_ptr<const MapTile> find(const TileId& id) const override;
  std::shared_ptr<const MapLine> find_line(const LineRequest& request) const override;
  bool exact(const HeadId& head) const override;
  std::optional<ProbedEntry> find_probe(const ProbeRequest& request) const override;
  TileSourceStatus status() const override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope
