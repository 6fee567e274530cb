#include "core/reduce/reduction.h"

namespace attnscope {
namespace {

/// Σ over a box of the grid, cut off at its edges.
template <typename Real>
double box_mass(const RowEntries<Real>& row, const TokenGrid& keys, IndexRange frames,
                IndexRange lines, IndexRange columns) {
  const int64_t first = keys.video_range().begin;
  const IndexRange t_range = intersect(frames, {0, keys.frames()});
  const IndexRange y_range = intersect(lines, {0, keys.height()});
  const IndexRange x_range = intersect(columns, {0, keys.width()});
  double mass = 0;
  for (int64_t t = t_range.begin; t < t_range.end; ++t) {
    for (int64_t y = y_range.begin; y < y_range.end; ++y) {
      const Real* line = row.entries + first + (t * keys.height() + y) * keys.width();
      double sum = 0;
      for (int64_t x = x_range.begin; x < x_range.end; ++x) sum += static_cast<double>(line[x]);
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
PlaceMasses place_masses(const RowEntries<Real>& row, const TokenGrid& keys, LatentCoord place,
                         int64_t band) {
  const IndexRange all{0, keys.frames()};
  const IndexRange y{place.y, place.y + 1};
  const IndexRange x{place.x, place.x + 1};
  PlaceMasses masses;
  masses.same_position = box_mass(row, keys, {0, place.t}, y, x) +
                         box_mass(row, keys, {place.t + 1, keys.frames()}, y, x);
  masses.band = box_mass(row, keys, all, around(place.y, band), around(place.x, band));
  masses.local = box_mass(row, keys, around(place.t, 1), around(place.y, 2), around(place.x, 2));
  return masses;
}

template PlaceMasses place_masses(const RowEntries<float>&, const TokenGrid&, LatentCoord, int64_t);
template PlaceMasses place_masses(const RowEntries<double>&, const TokenGrid&, LatentCoord,
                                  int64_t);

}  // namespace attnscope
