#pragma once

#include <functional>
#include <string_view>

#include "web/figure/head/figure_facts.h"

namespace attnscope {

/// The page of a head as one HTML document, piece by piece (figure_page.h says what it holds to).
/// Throws what `append` throws.
void write_figure(const FigureSource& source, const FigureCut& cut, const FigureMap& map,
                  const std::function<void(std::string_view)>& append);

}  // namespace attnscope
