#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/diff/compared_pair.h"
#include "core/products/pooled_map.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/mosaic_picture.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

/// "−3e-4:3e-4": colours for differences, from blue (below 0) over grey to red, whose ends are as
/// far below 0 as above: the 99.9 % quantile of the sizes, raised until those beyond it hold no
/// more than a tenth of their sum. Where nothing differs, there is nothing to scale.
ColourChoice difference_colours(std::span<const float> differences, ScaleKind scale);

/// Title and lines that say what is compared.
PictureText difference_text(const DiffSides& sides, const std::vector<ComparedPair>& pairs);

/// Where a picture goes, and how it looks.
struct PictureTarget {
  std::string path;
  bool force = false;
  PictureStyle look;
};

/// The differences that a picture shows. Borrows sides and pairs.
struct DifferenceMaps {
  const DiffSides& sides;
  const std::vector<ComparedPair>& pairs;
  std::vector<PooledMap> maps;  ///< a pair each: their sizes, without values
  std::string cells;            ///< what a cell is; empty: blocks of single differences
  Pool pool = Pool::max;
  ScaleKind scale = ScaleKind::symlog;
  /// Of sums over parts the names of these; empty: the maps are of tokens.
  std::vector<std::string> query_parts = {}, key_parts = {};
};

/// A map a pair; one alone is drawn large, of parts with its numbers. NaN cells are hatched.
class DifferencePicture {
 public:
  /// Throws Error(usage) where there is no such page.
  DifferencePicture(DifferenceMaps of, PictureTarget target);
  PageSize page() const;
  /// Draws and writes it; `maps`: of each pair, with values.
  void write(std::vector<PooledMap> maps);

 private:
  const PictureTarget target_;
  const Pool pool_;
  const ScaleKind scale_;
  std::vector<size_t> places_;  ///< of the pairs, in a mosaic
  std::variant<MosaicContent, MatrixContent, MetricTable> content_;
};

}  // namespace attnscope
