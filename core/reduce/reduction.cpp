#include "core/reduce/reduction.h"

namespace attnscope {
namespace {

/// Frames that the keys `part` reach into.
IndexRange frames_of(IndexRange part, const TokenGrid& keys) {
  const IndexRange video = intersect(part, keys.video_range());
  if (video.empty()) return {};
  const int64_t frame = keys.height() * keys.width();
  const int64_t first = keys.video_range().begin;
  return {(video.begin - first) / frame, (video.end - 1 - first) / frame + 1};
}

/// Σ over a box of the grid, cut off at its edges and at those of `part`.
template <typename Real>
double box_mass(const RowEntries<Real>& row, IndexRange part, const TokenGrid& keys,
                IndexRange frames, IndexRange lines, IndexRange columns) {
  const int64_t first = keys.video_range().begin;
  const IndexRange t_range = intersect(frames, frames_of(part, keys));
  const IndexRange y_range = intersect(lines, {0, keys.height()});
  const IndexRange x_range = intersect(columns, {0, keys.width()});
  double mass = 0;
  for (int64_t t = t_range.begin; t < t_range.end; ++t) {
    for (int64_t y = y_range.begin; y < y_range.end; ++y) {
      const int64_t line = first + (t * keys.height() + y) * keys.width();
      const IndexRange there = intersect({line + x_range.begin, line + x_range.end}, part);
      double sum = 0;
      for (int64_t key = there.begin; key < there.end; ++key) {
        sum += static_cast<double>(row.entries[key - part.begin]);
      }
      mass += sum;
    }
  }
  return mass * row.factor;
}

IndexRange around(int64_t place, int64_t reach) { return {place - reach, place + reach + 1}; }

}  // namespace

int64_t default_band(const TokenGrid& grid) {
  int64_t band = 0;
  const auto keys = [&](int64_t b) { return grid.frames() * (2 * b + 1) * (2 * b + 1); };
  while (grid.has_grid() && keys(band + 1) <= grid.height() * grid.width()) ++band;
  return band;
}

template <typename Real>
PlaceMasses place_masses(const RowEntries<Real>& row, IndexRange part, const TokenGrid& keys,
                         LatentCoord place, int64_t band) {
  const IndexRange all{0, keys.frames()};
  const IndexRange y{place.y, place.y + 1};
  const IndexRange x{place.x, place.x + 1};
  PlaceMasses masses;
  masses.same_position = box_mass(row, part, keys, {0, place.t}, y, x) +
                         box_mass(row, part, keys, {place.t + 1, keys.frames()}, y, x);
  masses.band = box_mass(row, part, keys, all, around(place.y, band), around(place.x, band));
  masses.local =
      box_mass(row, part, keys, around(place.t, 1), around(place.y, 2), around(place.x, 2));
  return masses;
}

template PlaceMasses place_masses(const RowEntries<float>&, IndexRange, const TokenGrid&,
                                  LatentCoord, int64_t);
template PlaceMasses place_masses(const RowEntries<double>&, IndexRange, const TokenGrid&,
                                  LatentCoord, int64_t);

}  // namespace attnscope
