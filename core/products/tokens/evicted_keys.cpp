#include "core/products/tokens/evicted_keys.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

/// Keys of a segment with the positions that they have.
struct PlacedSegment {
  IndexRange keys;
  int64_t position = 0;

  IndexRange positions() const { return {position, position + keys.size()}; }
  IndexRange positions_of(IndexRange part) const {
    return {position + part.begin - keys.begin, position + part.end - keys.begin};
  }
};

std::vector<PlacedSegment> placed_segments(const TokenGrid& keys) {
  std::vector<PlacedSegment> placed;
  for (const TokenSegment& segment : keys.segments()) {
    if (segment.position) placed.push_back({segment.tokens, *segment.position});
  }
  return placed;
}

/// The gaps that the ranges, in any order, leave in 0 to `end`.
std::vector<IndexRange> gaps_before(int64_t end, std::vector<IndexRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const IndexRange& a, const IndexRange& b) { return a.begin < b.begin; });
  std::vector<IndexRange> gaps;
  int64_t past = 0;
  for (const IndexRange& range : ranges) {
    if (range.begin > past) gaps.push_back({past, std::min(range.begin, end)});
    past = std::max(past, range.end);
    if (past >= end) return gaps;
  }
  if (past < end) gaps.push_back({past, end});
  return gaps;
}

/// The keys that the queries of one band, whose spans these are, no longer attend to.
std::vector<IndexRange> evicted_of(std::span<const QuerySpan> band, int64_t position,
                                   const std::vector<PlacedSegment>& placed) {
  std::vector<IndexRange> kept, evicted;
  for (const QuerySpan& span : band) {
    for (const PlacedSegment& segment : placed) {
      const IndexRange keys = intersect(span.keys, segment.keys);
      if (!keys.empty()) kept.push_back(segment.positions_of(keys));
    }
  }
  const std::vector<IndexRange> gaps = gaps_before(position, std::move(kept));
  for (const PlacedSegment& segment : placed) {
    for (const IndexRange& gap : gaps) {
      const IndexRange part = intersect(gap, segment.positions());
      if (part.empty()) continue;
      const int64_t first = segment.keys.begin + part.begin - segment.position;
      evicted.push_back({first, first + part.size()});
    }
  }
  return evicted;
}

}  // namespace

std::vector<EvictedKeys> evicted_keys(std::span<const QuerySpan> spans, const TokenGrid& queries,
                                      const TokenGrid& keys) {
  std::vector<EvictedKeys> all;
  const std::vector<PlacedSegment> placed = placed_segments(keys);
  std::vector<IndexRange> before;
  size_t before_count = 0;
  while (!spans.empty() && !placed.empty()) {
    const IndexRange rows = spans.front().queries;
    const auto past = std::find_if(spans.begin(), spans.end(),
                                   [&](const QuerySpan& span) { return span.queries != rows; });
    const auto band = spans.first(static_cast<size_t>(past - spans.begin()));
    spans = spans.subspan(band.size());
    const auto position = queries.position(rows.begin);
    std::vector<IndexRange> evicted =
        position ? evicted_of(band, *position, placed) : std::vector<IndexRange>();
    const bool goes_on =
        !evicted.empty() && evicted == before && all.back().queries.end == rows.begin;
    if (goes_on) {
      for (size_t i = 0; i < before_count; ++i) all[all.size() - 1 - i].queries.end = rows.end;
    } else {
      for (const IndexRange& run : evicted) all.push_back({rows, run});
      before_count = evicted.size();
    }
    before = std::move(evicted);
  }
  return all;
}

std::vector<uint8_t> evicted_cells(std::span<const EvictedKeys> evicted, IndexRange rows,
                                   IndexRange cols, int64_t block) {
  const int64_t height = ceil_div(rows.size(), block), width = ceil_div(cols.size(), block);
  std::vector<int64_t> areas(static_cast<size_t>(height * width), 0);
  const auto cell_of = [block](IndexRange part, int64_t i) {
    return IndexRange{part.begin + i * block, std::min(part.begin + (i + 1) * block, part.end)};
  };
  for (const EvictedKeys& each : evicted) {
    const IndexRange queries = intersect(each.queries, rows), keys = intersect(each.keys, cols);
    if (queries.empty() || keys.empty()) continue;
    const int64_t last_row = (queries.end - 1 - rows.begin) / block;
    const int64_t last_col = (keys.end - 1 - cols.begin) / block;
    for (int64_t r = (queries.begin - rows.begin) / block; r <= last_row; ++r) {
      const int64_t high = intersect(queries, cell_of(rows, r)).size();
      for (int64_t c = (keys.begin - cols.begin) / block; c <= last_col; ++c) {
        areas[static_cast<size_t>(r * width + c)] +=
            high * intersect(keys, cell_of(cols, c)).size();
      }
    }
  }
  std::vector<uint8_t> cells(areas.size());
  for (int64_t r = 0; r < height; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const auto at = static_cast<size_t>(r * width + c);
      cells[at] = areas[at] == cell_of(rows, r).size() * cell_of(cols, c).size() ? 1 : 0;
    }
  }
  return cells;
}

std::vector<uint8_t> evicted_line(std::span<const EvictedKeys> evicted,
                                  std::span<const int64_t> queries, int64_t keys, bool reverse) {
  std::vector<int64_t> counts(static_cast<size_t>(keys), 0);
  for (const EvictedKeys& each : evicted) {
    const IndexRange& of = reverse ? each.keys : each.queries;
    const IndexRange& seen = reverse ? each.queries : each.keys;
    const auto held = std::count_if(queries.begin(), queries.end(),
                                    [&](int64_t token) { return of.contains(token); });
    for (int64_t i = seen.begin; held > 0 && i < seen.end; ++i) {
      counts[static_cast<size_t>(i)] += held;
    }
  }
  std::vector<uint8_t> line(counts.size());
  std::transform(counts.begin(), counts.end(), line.begin(), [&](int64_t count) {
    return !queries.empty() && count == static_cast<int64_t>(queries.size()) ? 1 : 0;
  });
  return line;
}

}  // namespace attnscope
