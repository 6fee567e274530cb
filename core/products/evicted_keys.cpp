#include "core/products/evicted_keys.h"

#include <algorithm>

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

/// What the ranges, in any order, leave of 0 to `end`.
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

}  // namespace attnscope
