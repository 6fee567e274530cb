#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/index_range.h"
#include "web/figure/head/figure_cut.h"

namespace attnscope {

/// The first view of a page, before anybody touches it, and its author's words about it.
struct FigureStart {
  std::string caption;           ///< may hold anything; empty: none
  std::optional<int64_t> query;  ///< a token of the sequence; else the middle one of the page's
  /// The tokens that are seen: queries and keys; else all of them.
  std::optional<std::array<IndexRange, 2>> zoom;
};

/// Throws Error(usage) where the page has not the query, or nothing of the zoom.
void require_start(const FigureStart& start, const FigureCut& cut);

/// The query's token: the chosen one, or the one of the page's that is nearest to middle_token().
int64_t first_query(const FigureStart& start, const FigureCut& cut);

}  // namespace attnscope
