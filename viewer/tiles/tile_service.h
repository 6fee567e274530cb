#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "core/stream/tile_backend.h"
#include "io/files/input_set.h"
#include "viewer/tiles/map_call.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// Brings tiles, lines and entries on threads of its own, in pieces of a fraction of a second:
/// computed from Q and K, or read from an export. What is most wanted comes first: the entry and
/// the line under the mouse, which have a thread for themselves before which the others give way,
/// then tiles, then passes that make whole pyramids exact.
///
/// Tiles that are computed come of the base level and above at once from sampled rows, in up to
/// three refinements; finer ones exactly. Exact numbers are those of an export: entries bit for
/// bit, texels the largest of them and their mean. Row norms found in a pass are kept on disk for
/// the next time. Of an export nothing is sampled: its tiles of the base level and above come with
/// the pass (see export_maps()).
///
/// Logits: a pass of their own makes their pyramid exact while tiles of it are wanted for a head of
/// WantedTiles::exact. A reverse line needs all row norms of its head and brings about the pass
/// that finds them. exact() speaks of all quantities whose tiles are wanted.
///
/// Sketches come from a sample of a head's rows after the tiles that are wanted, in turn with
/// passes; those of all rows come last.
///
/// Work that failed is told by status().problem and not tried again before it was not wanted for
/// once; where it found no memory it is, as soon as less is taken. A sample gives way to the pass.
class TileService : public TileSource {
 public:
  struct Settings {
    /// For all that is held: tiles, lines, pyramids, norms, bound heads, buffers.
    int64_t memory = int64_t{2} << 30;
    int threads = 0;  ///< 0: the backend's own number; two that read
    /// Where row norms are kept: all are looked through, the first that can be written takes new
    /// ones. None: they are not kept.
    std::vector<std::filesystem::path> cache_folders = {};
    /// The files that the maps are computed from: norms are kept while they are as when opened.
    std::shared_ptr<const InputSet> sources = nullptr;
    /// Calls, the first ones, whose norms and sketches are kept: those of `sources`, where there
    /// are others. −1: all.
    int64_t kept_calls = -1;
    /// As cache_folders, for the calls behind those, of a second capture: their norms alone. None:
    /// they are not kept.
    std::vector<std::filesystem::path> other_cache_folders = {};
    std::shared_ptr<const InputSet> other_sources = nullptr;
    /// Capture::call_stamps() of all calls that there are by now, under which sketches are kept
    /// beside row norms; asked on another thread. None: they are not.
    std::function<std::vector<std::string>()> call_stamps = {};
    /// Reads a picture of the video by its number, on a thread of the service's; none: there are no
    /// pictures.
    std::function<GreyImage(int64_t number)> read_frame = {};
  };

  /// Borrows the backend. `wake` is called from any thread, without locks, when something new can
  /// be found; it must not throw.
  TileService(const std::vector<MapCall>& calls, const TileBackend& backend,
              const Settings& settings, std::function<void()> wake);
  /// Reads; the settings' cache is not used.
  TileService(std::shared_ptr<const TexelReader> reader, const Settings& settings,
              std::function<void()> wake);
  /// Ends the workers as soon as their pieces are done.
  ~TileService() override;

  /// Adds calls behind those that there are, whose work goes on: of a capture that grows. They
  /// hold `bytes` while it lives. Not of an export. Only on the window's thread. Throws
  /// Error(resource) where there is no room, and adds nothing then.
  void add(const std::vector<MapCall>& calls, int64_t bytes);

  MapGeometry geometry(const HeadId& head) const override;
  int64_t order_number(const MapPlaces& places) override;
  /// Throws Error(usage) where the capture or export has no such head, numbers, tile, token or
  /// entry.
  void want(WantedTiles wishes) override;
  std::shared_ptr<const MapTile> find(const TileId& id) const override;
  std::shared_ptr<const MapLine> find_line(const LineRequest& request) const override;
  bool exact(const HeadId& head) const override;
  /// Scores without logits have NaN.
  std::optional<ProbedEntry> find_probe(const ProbeRequest& request) const override;
  std::shared_ptr<const RowDivergence> find_divergence(const HeadsCompared& heads) const override;
  std::string divergence_problem() const override;
  std::shared_ptr<const HeadSketch> find_sketch(const HeadId& head) const override;
  std::string sketch_problem(const HeadId& head) const override;
  bool has_sketches() const override;
  std::shared_ptr<const KeyMasses> find_masses(const MassRequest& request) const override;
  bool has_masses() const override;
  std::shared_ptr<const HeadTracks> find_tracks(const HeadId& head) const override;
  std::string tracks_problem(const HeadId& head) const override;
  bool has_tracks() const override;
  std::shared_ptr<const VideoFrame> find_frame(const FrameRequest& request) const override;
  std::shared_ptr<const HeadMask> find_mask(const MaskRequest& request) const override;
  bool has_masks() const override;
  TileSourceStatus status() const override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope
