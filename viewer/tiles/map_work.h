#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "viewer/tiles/jobs/map_job.h"
#include "viewer/tiles/map_call.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// Which maps a tile source has, and the jobs that bring them where computing from Q and K and
/// reading an export differ; jobs of two maps do both. Used with the service's lock held.
class MapWork {
 public:
  virtual ~MapWork() = default;

  /// Adds calls behind those that are there; references to these stay what they are. Of maps that
  /// are computed alone.
  virtual void add(const std::vector<MapCall>&) {
    throw std::logic_error("nothing can be added to maps that are read");
  }
  /// The number of these orders, which are not both the identity; see TileSource.
  virtual int64_t order_number(const MapPlaces&) {
    throw std::logic_error("maps that are read stand in one order");
  }
  /// Throws Error(usage) where there is no such head.
  virtual MapGeometry geometry(const HeadId& id) const = 0;
  /// True where the head's map has numbers of this quantity.
  virtual bool has(const HeadId& id, Quantity quantity) const = 0;
  /// Throws Error(usage) where what is asked for is not there. Its heads, tiles, tokens and entries
  /// are those of a map.
  virtual void check(const Ask&) const {}
  /// The call that a head's map is computed from; null where it is read.
  virtual const MapCall* call(const HeadId&) const { return nullptr; }
  /// Which reads all maps; null where they are computed.
  virtual std::shared_ptr<const TexelReader> reader() const { return nullptr; }

  virtual std::shared_ptr<MapJob> probe_job(const ProbeRequest& request) const = 0;
  virtual std::shared_ptr<MapJob> line_job(const LineRequest& request,
                                           const HeadCache& head) const = 0;
  /// Of a tile finer than the base level.
  virtual std::shared_ptr<MapJob> tile_job(const TileId& id, const HeadCache& head) const = 0;
  virtual std::shared_ptr<MapJob> pass_job(const HeadId& id, Quantity quantity) const = 0;
  /// Null where masses are not computed.
  virtual std::shared_ptr<MapJob> mass_job(const MassRequest& request,
                                           const HeadCache& head) const {
    (void)request, (void)head;
    return nullptr;
  }
  /// Null where sketches are not made.
  virtual std::shared_ptr<MapJob> sketch_job(const HeadId& id, bool exact) const {
    (void)id, (void)exact;
    return nullptr;
  }
  /// Null where tracks are not made.
  virtual std::shared_ptr<MapJob> tracks_job(const HeadId& id, bool exact) const {
    (void)id, (void)exact;
    return nullptr;
  }
};

/// "call 0, batch item 1, head 2".
std::string head_text(const HeadId& id);

}  // namespace attnscope
