#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/diff/compared_pair.h"
#include "core/products/pooled_map.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

/// "−3e-4:3e-4": colours for differences, from blue (below 0) over grey to red, whose ends are as
/// far below 0 as above: the 99.9 % quantile of the sizes, raised until those beyond it hold no
/// more than a tenth of their sum.
ColourChoice difference_colours(std::span<const float> differences, ScaleKind scale);

/// Title and lines that say what is compared.
PictureText difference_text(const DiffSides& sides, const std::vector<ComparedPair>& pairs);

/// A map a pair; one alone is drawn large. NaN cells are hatched.
struct PooledPicture {
  const DiffSides& sides;
  const std::vector<ComparedPair>& pairs;
  Pool pool = Pool::max;
  ScaleKind scale = ScaleKind::symlog;
};

/// Where a picture goes, and how it looks.
struct PictureTarget {
  std::string path;
  bool force = false;
  PictureStyle look;
};
/// Writes it; `maps`: of each pair.
void write_pooled_picture(const PooledPicture& picture, std::vector<PooledMap> maps,
                          const PictureTarget& target);

/// Sums over parts, a table a pair; one alone has its numbers in it.
void write_part_picture(const DiffSides& sides, const std::vector<ComparedPair>& pairs,
                        const std::vector<PartDifference>& found, ScaleKind scale,
                        const PictureTarget& target);

}  // namespace attnscope
