#include "web/figure/head/figure_start.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/products/tokens/middle_token.h"

namespace attnscope {
namespace {

IndexRange tokens_of(const CutTokens& cut) { return {cut.first, cut.at(cut.count - 1) + 1}; }

int64_t nearest_token(const CutTokens& cut, int64_t token) {
  const int64_t place = (token - cut.first + cut.stride / 2) / cut.stride;
  return cut.at(std::clamp<int64_t>(place, 0, cut.count - 1));
}

void require_seen(const FigureChoice& choice, const CutTokens& cut, IndexRange zoom,
                  const char* what, const char* option) {
  const IndexRange there = tokens_of(cut);
  if (!intersect(there, zoom).empty()) return;
  throw usage_error(fmt::format("{}: the page has the {} {} to {} alone ({})",
                                choice.option("zoom", fmt::format("{}:{}", zoom.begin, zoom.end)),
                                what, there.begin, there.end - 1, choice.option(option, "A:B")));
}

}  // namespace

void require_start(const FigureStart& start, const FigureCut& cut) {
  if (start.query) {
    const int64_t nearest = nearest_token(cut.rows, *start.query);
    if (nearest != *start.query) {
      throw usage_error(fmt::format(
          "the page has not the query {} that it is to begin with ({} and {} choose its queries); "
          "the nearest that it has is {}",
          *start.query, cut.choice.option("rows", "A:B"), cut.choice.option("stride", "N"),
          nearest));
    }
  }
  if (!start.zoom) return;
  require_seen(cut.choice, cut.rows, (*start.zoom)[0], "queries", "rows");
  require_seen(cut.choice, cut.keys, (*start.zoom)[1], "keys", "cols");
}

int64_t first_query(const FigureStart& start, const FigureCut& cut) {
  if (start.query) return *start.query;
  return nearest_token(cut.rows, middle_token(cut.problem->query_tokens(), tokens_of(cut.rows)));
}

}  // namespace attnscope
