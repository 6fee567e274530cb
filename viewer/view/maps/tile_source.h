#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/place_order.h"
#include "core/heads/head_sketch.h"
#include "viewer/view/maps/head_mask.h"
#include "viewer/view/maps/head_tracks.h"
#include "viewer/view/maps/map_tile.h"
#include "viewer/view/maps/video_frame.h"

namespace attnscope {

/// An entry whose numbers are wanted.
struct ProbeRequest {
  HeadId head;
  int64_t query = 0;
  int64_t key = 0;
  friend auto operator<=>(const ProbeRequest&, const ProbeRequest&) = default;
};

/// The wishes of the window, most wanted first. They replace those before: work that nobody wants
/// any more is cancelled, finished work stays cached.
struct WantedTiles {
  std::optional<LineRequest> line;        ///< always first: it follows the mouse
  std::optional<LineRequest> other_line;  ///< of side B
  std::vector<TileId> tiles;              ///< coarser first, then nearest to the view's centre
  /// Heads whose exact pyramid (and row norms) should be computed when nothing else is to be done.
  std::vector<HeadId> exact;
  std::vector<ProbeRequest> probes = {};  ///< with the lines: under the mouse, or a script's
  /// Heads whose sketches are wanted from a sample of their rows, after all tiles; those that are
  /// seen first.
  std::vector<HeadId> sketches = {};
  /// Of all rows: computed after everything else.
  std::vector<HeadId> exact_sketches = {};
  std::optional<LineRequest> words_line = {};  ///< of the words' list, after the other lines
  std::optional<MassRequest> masses = {};      ///< of the words; waits for the head's row norms
  std::vector<FrameRequest> frames = {};  ///< of the video, in the order in which they are read
  /// Differences whose exact pyramid should be computed when nothing else is to be done, before
  /// those of `exact`.
  std::vector<DifferenceId> exact_differences = {};
  /// The head whose tracks are wanted: of a sample of its rows after all tiles, of all rows after
  /// the passes.
  std::optional<HeadId> tracks = {};
  /// Rows that should be compared, a sample of them first, when there are no tiles to be made.
  std::optional<HeadsCompared> divergence = {};
  /// A mask over a head's map, built and measured beside everything else.
  std::optional<MaskRequest> mask = {};
  friend bool operator==(const WantedTiles&, const WantedTiles&) = default;
};

/// Where a tile source stands; for the status line and scripts.
struct TileSourceStatus {
  int64_t queue = 0;  ///< pieces of work that are wanted and not done, running ones included
  bool busy = false;
  double exact_progress = 0;  ///< 0 … 1 of the pass that makes the first head of `exact` exact
  double exact_seconds_left = -1;  ///< −1: not known
  int64_t host_bytes = 0;          ///< of cached tiles, lines, pyramids and norms
  std::string problem;             ///< the last failure, one line; empty: none
  /// Why the wanted line, or some of the wanted tiles, will not come (exactly), as things stand;
  /// one line. Empty: they are there or may still come.
  std::string line_problem, tiles_problem;
  std::string words_problem;  ///< the same of the words' line and masses
  std::string link;           ///< of a source on another machine: "12 ms, 3.4 MB/s"; else empty
};

/// Computes (or reads) tiles, lines and entries of maps in the background. All members are called
/// by the window's thread and wait neither for arithmetic nor for files; results appear in find…()
/// some time after they were wished for, and the wake function given at construction is called
/// (from any thread) then.
class TileSource {
 public:
  virtual ~TileSource() = default;

  virtual MapGeometry geometry(const HeadId& head) const = 0;
  /// The number under which heads (HeadId::order) have their maps in these orders, whose places are
  /// those of their calls; 0 where both are the identity. The same orders keep their number. Throws
  /// Error(usage) where maps are not computed, Error(resource) where there is no room.
  virtual int64_t order_number(const MapPlaces& places) {
    if (places.is_identity()) return 0;
    throw usage_error("maps of an export stand in the order in which they were written");
  }
  virtual void want(WantedTiles wishes) = 0;
  /// The tile as good as it is by now (sampled tiles are replaced by exact ones), or null.
  virtual std::shared_ptr<const MapTile> find(const TileId& id) const = 0;
  virtual std::shared_ptr<const MapLine> find_line(const LineRequest& request) const = 0;
  /// True where a head's whole pyramid is exact by now.
  virtual bool exact(const HeadId& head) const = 0;
  /// The entry, or nothing while it is not there. The last ones stay.
  virtual std::optional<ProbedEntry> find_probe(const ProbeRequest& request) const = 0;
  /// How far rows are from one another, as far as they are compared by now, or null.
  virtual std::shared_ptr<const RowDivergence> find_divergence(const HeadsCompared& heads) const {
    (void)heads;
    return nullptr;
  }
  /// Why the wanted divergence will not come, one line; empty: it is there or may still come.
  virtual std::string divergence_problem() const { return ""; }
  /// The head's sketch as good as it is by now, or null.
  virtual std::shared_ptr<const HeadSketch> find_sketch(const HeadId& head) const = 0;
  /// Why a wanted sketch will not come, one line; empty: it is there or may still come.
  virtual std::string sketch_problem(const HeadId& head) const = 0;
  /// True where sketches are made at all: not of exports, of which everything is read.
  virtual bool has_sketches() const = 0;
  /// The masses, or null. Of an export there are none.
  virtual std::shared_ptr<const KeyMasses> find_masses(const MassRequest&) const { return nullptr; }
  virtual bool has_masses() const { return false; }
  /// The head's tracks as good as they are by now, or null. Of an export, and of weights of either
  /// sign, there are none.
  virtual std::shared_ptr<const HeadTracks> find_tracks(const HeadId& head) const {
    (void)head;
    return nullptr;
  }
  /// Why the head's wanted tracks will not come (exactly), one line; empty: they are there or may
  /// still come.
  virtual std::string tracks_problem(const HeadId& head) const {
    (void)head;
    return "";
  }
  virtual bool has_tracks() const { return false; }
  /// The picture, or null; of one that cannot be read, why.
  virtual std::shared_ptr<const VideoFrame> find_frame(const FrameRequest&) const {
    return nullptr;
  }
  /// The mask as far as it is known by now, or null; of one that cannot be had, why. Of an export
  /// there are none.
  virtual std::shared_ptr<const HeadMask> find_mask(const MaskRequest&) const { return nullptr; }
  virtual bool has_masks() const { return false; }
  virtual TileSourceStatus status() const = 0;
};

}  // namespace attnscope
