#pragma once

#include <optional>

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"

namespace attnscope {

/// Drags over the matrix that keep or drop blocks of the sparse mask.
class MaskBrushing {
 public:
  /// True where a drag brushes: the tool is chosen, and the matrix has blocks of its stored order.
  static bool is_chosen(const Scene& scene);
  bool is_held() const { return from_.has_value(); }
  /// Of the map's item, which must be the last one: `query` and `key` are under the mouse. When the
  /// button is let go, the blocks from where it was pressed to there are asked for.
  void begin(double query, double key) { from_ = Place{query, key}; }
  void drag(const Scene& scene, double query, double key, PanelRequests& requests);
  /// The blocks that would be changed now. Clipped by the caller.
  void draw(const Ui& ui, const Scene& scene, const ViewTransform& view) const;

 private:
  struct Place {
    double query = 0, key = 0;
  };
  std::optional<Place> from_;
  MaskEdit now_;
};

}  // namespace attnscope
