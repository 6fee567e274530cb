#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "core/base/error.h"
#include "core/base/place_order.h"
#include "viewer/view/maps/answers.h"

namespace attnscope {

/// Where a tile source stands; for the status line and scripts.
struct TileSourceStatus {
  int64_t queue = 0;  ///< pieces of work that are wanted and not done, running ones included
  bool busy = false;
  double exact_progress = 0;       ///< 0 … 1 of the pass that is wished for first
  double exact_seconds_left = -1;  ///< −1: not known
  int64_t host_bytes = 0;          ///< of cached tiles, lines, pyramids and norms
  std::string problem;             ///< the last failure, one line; empty: none
  std::string link;  ///< of a source on another machine: "12 ms, 3.4 MB/s"; else empty
};

/// Computes (or reads) answers about maps in the background. All members are called by the window's
/// thread and wait neither for arithmetic nor for files; answers can be found some time after they
/// were wished for, and the wake function given at construction is called (from any thread) then.
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
  /// These wishes replace those before: work that nobody wants any more is cancelled, finished work
  /// stays cached.
  virtual void want(Wishes wishes) = 0;
  /// The answer as good as it is by now: one of a sample is replaced by the exact one. Of entries
  /// the last ones stay.
  virtual Answer find(const Ask& ask) const = 0;
  /// Why a wanted answer will not come (exactly), as things stand, one line; empty: it is there or
  /// may still come.
  virtual std::string problem(const Ask& ask) const = 0;
  /// True where answers to asks of this kind can be had at all. Of an export there are no sketches,
  /// masses, tracks and masks.
  virtual bool offers(const Ask& kind) const = 0;
  /// True where a head's whole pyramid is exact by now.
  virtual bool exact(const HeadId& head) const = 0;
  virtual TileSourceStatus status() const = 0;
};

/// TileSource::find() by its type.
template <class Asked>
AnswerTo<Asked> find(const TileSource& tiles, const Asked& asked) {
  return std::get<AnswerTo<Asked>>(tiles.find(asked));
}

}  // namespace attnscope
