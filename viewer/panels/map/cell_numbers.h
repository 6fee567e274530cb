#pragma once

#include <vector>

#include "viewer/panels/map/view_transform.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/cell_text.h"

namespace attnscope {

/// Characters of a number that a cell of this width has room for.
int room_in_cell(const Ui& ui, float width);

/// The numbers of single entries of the map, printed in their cells.
class CellNumbers {
 public:
  /// Of what `state` shows in the colours of `scale`, as far as its numbers are known. Nothing on
  /// coarser levels and in cells without room for two digits.
  static CellNumbers of(const Ui& ui, const Scene& scene, const ViewState& state,
                        const ColourScale& scale, const ViewTransform& view, int level);

  /// How these, and those of a second map beside it, are written.
  CellNotation notation_with(const CellNumbers& other) const;
  void draw(const Ui& ui, const CellNotation& notation) const;

 private:
  int characters_ = 0;  ///< that a cell has room for
  std::vector<double> values_;
  std::vector<ImVec2> middles_;  ///< of their cells
  std::vector<ImU32> inks_;
};

}  // namespace attnscope
