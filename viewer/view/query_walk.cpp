#include "viewer/view/query_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/problem/token_grid.h"

namespace attnscope {

std::string_view walk_axis_name(WalkAxis axis) {
  return axis == WalkAxis::x ? "x" : axis == WalkAxis::y ? "y" : "t";
}

ChosenQuery walked_query(const TokenGrid& grid, const std::vector<int64_t>& tokens, WalkAxis axis,
                         int64_t by) {
  const std::string what = fmt::format("walk {} {}: ", walk_axis_name(axis), by);
  ChosenQuery walked;
  for (const int64_t token : tokens) {
    auto place = grid.coord(token);
    if (!place && axis != WalkAxis::x) {
      throw usage_error(what + "the token has no place in the video; x goes along the sequence");
    }
    int64_t& number = !place                ? walked.tokens.emplace_back(token)
                      : axis == WalkAxis::x ? place->x
                      : axis == WalkAxis::y ? place->y
                                            : place->t;
    const int64_t count = !place                ? grid.tokens()
                          : axis == WalkAxis::x ? grid.width()
                          : axis == WalkAxis::y ? grid.height()
                                                : grid.frames();
    if (by < -number || by >= count - number) {
      throw usage_error(fmt::format("{}that is beyond the {} (0 to {})", what,
                                    place ? "video" : "sequence", count - 1));
    }
    number += by;
    if (place) walked.tokens.push_back(grid.index_of(*place));
  }
  return walked;
}

std::optional<int64_t> next_by_value(const MapLine& line, std::optional<int64_t> from,
                                     bool larger) {
  const auto& values = line.values;
  const auto value = [&](int64_t at) { return values[static_cast<size_t>(at)]; };
  // The largest first, and of equal ones the first.
  const auto comes_before = [&](int64_t a, int64_t b) {
    return value(a) != value(b) ? value(a) > value(b) : a < b;
  };
  std::optional<int64_t> next;
  for (int64_t at = 0; at < std::ssize(values); ++at) {
    const bool masked = !line.masked.empty() && line.masked[static_cast<size_t>(at)] != 0;
    if (masked || !std::isfinite(value(at)) || at == from) continue;
    const bool before = !from || comes_before(at, *from);
    if (from && before != larger) continue;
    const bool nearer =
        !next || (from && larger ? comes_before(*next, at) : comes_before(at, *next));
    if (nearer) next = at;
  }
  return next;
}

}  // namespace attnscope
