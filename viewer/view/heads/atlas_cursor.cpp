#include "viewer/view/heads/atlas_cursor.h"

#include <algorithm>
#include <cstdlib>

namespace attnscope {
namespace {

size_t distance(size_t a, size_t b) { return a < b ? b - a : a - b; }

/// The shown head of a row that stands nearest to a column; nothing where it has none.
std::optional<HeadId> nearest_in(const AtlasCells& cells, const AtlasRow& row, size_t column) {
  std::optional<size_t> nearest;
  const std::vector<AtlasHead>& heads = cells.lines[row.line].heads;
  for (size_t c = 0; c < row.count; ++c) {
    if (!heads[row.first + c].shown) continue;
    if (!nearest || distance(c, column) < distance(*nearest, column)) nearest = c;
  }
  return nearest ? std::optional(heads[row.first + *nearest].id) : std::nullopt;
}

/// The head in the next row above or below that has any.
std::optional<HeadId> in_next_row(const AtlasCells& cells, const AtlasLayout& layout,
                                  const HeadId& from, int by) {
  for (size_t i = 0; i < layout.rows.size(); ++i) {
    const AtlasRow& row = layout.rows[i];
    const std::vector<AtlasHead>& heads = cells.lines[row.line].heads;
    for (size_t c = 0; c < row.count; ++c) {
      if (heads[row.first + c].id != from) continue;
      for (auto next = static_cast<int64_t>(i) + by;
           next >= 0 && next < static_cast<int64_t>(layout.rows.size()); next += by) {
        const auto found = nearest_in(cells, layout.rows[static_cast<size_t>(next)], c);
        if (found) return found;
      }
      return from;
    }
  }
  return std::nullopt;
}

auto place_of(const std::vector<AtlasHead>& heads, const HeadId& id) {
  return std::find_if(heads.begin(), heads.end(),
                      [&](const AtlasHead& head) { return head.id == id; });
}

}  // namespace

std::vector<AtlasHead> shown_heads(const AtlasCells& cells) {
  std::vector<AtlasHead> shown;
  for (const AtlasLine& line : cells.lines) {
    for (const AtlasHead& head : line.heads) {
      if (head.shown) shown.push_back(head);
    }
  }
  return shown;
}

std::optional<HeadId> moved_cursor(const AtlasCells& cells, const AtlasLayout& layout,
                                   const HeadId& from, CursorMove move) {
  const std::vector<AtlasHead> heads = shown_heads(cells);
  if (heads.empty()) return std::nullopt;
  const auto at = place_of(heads, from);
  if (move == CursorMove::last) return heads.back().id;
  if (move == CursorMove::first || at == heads.end()) return heads.front().id;
  if (move == CursorMove::left) return at == heads.begin() ? from : (at - 1)->id;
  if (move == CursorMove::right) return at + 1 == heads.end() ? from : (at + 1)->id;
  return in_next_row(cells, layout, from, move == CursorMove::up ? -1 : 1);
}

std::vector<AtlasHead> heads_between(const AtlasCells& cells, const HeadId& a, const HeadId& b) {
  const std::vector<AtlasHead> heads = shown_heads(cells);
  auto first = place_of(heads, a), last = place_of(heads, b);
  if (first == heads.end()) first = last;
  if (last == heads.end()) last = first;
  if (first == heads.end()) return {};
  if (last < first) std::swap(first, last);
  return {first, last + 1};
}

}  // namespace attnscope
