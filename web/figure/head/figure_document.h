#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "web/figure/figure_page.h"
#include "web/figure/head/figure_facts.h"

namespace attnscope {

/// The arrays of a figure by the names that its script has for them.
struct FigureArrays {
  std::vector<int32_t> runs;      ///< of the mask, pairs of numbers
  std::vector<FigureBytes> data;  ///< of the map and of `runs`, borrowed
};
/// Borrows the map.
FigureArrays figure_arrays(const FigureMap& map);

/// The page of a head as one HTML document, piece by piece (figure_page.h says what it holds to).
/// Throws what `append` throws.
void write_figure(const FigureSource& source, const FigureCut& cut, const FigureMap& map,
                  const std::function<void(std::string_view)>& append);

}  // namespace attnscope
