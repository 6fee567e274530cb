#pragma once

#include <memory>
#include <vector>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// The rows of the map by how far they are from side B's, the farthest first. A click picks the row
/// and shows it.
class RankedPanel {
 public:
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

 private:
  void rank(const Scene& scene);
  void draw_rows(const Ui& ui, const ScreenRect& area, const Scene& scene,
                 PanelRequests& requests) const;

  std::shared_ptr<const RowDivergence> of_;  ///< what order_ was made of
  std::vector<int64_t> order_;               ///< rows
  double largest_ = 0, mean_ = 0;
};

}  // namespace attnscope
