#include "core/reduce/reduction.h"

namespace attnscope {
namespace {

/// Σ over a box of the grid.
double box_mass(const RowEntries<double>& row, const TokenGrid& keys, const PlaceBox& box) {
  double mass = 0;
  for (int64_t t = box.frames.begin; t < box.frames.end; ++t) {
    for (int64_t y = box.lines.begin; y < box.lines.end; ++y) {
      const int64_t line = keys.video_range().begin + (t * keys.height() + y) * keys.width();
      double sum = 0;
      for (int64_t x = box.columns.begin; x < box.columns.end; ++x) sum += row.entries[line + x];
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

PlaceBoxes place_boxes(const TokenGrid& keys, LatentCoord place, int64_t band) {
  const auto box = [&](IndexRange frames, IndexRange lines, IndexRange columns) {
    return PlaceBox{intersect(frames, {0, keys.frames()}), intersect(lines, {0, keys.height()}),
                    intersect(columns, {0, keys.width()})};
  };
  const IndexRange y = around(place.y, 0);
  const IndexRange x = around(place.x, 0);
  return {.earlier = box({0, place.t}, y, x),
          .later = box({place.t + 1, keys.frames()}, y, x),
          .band = box({0, keys.frames()}, around(place.y, band), around(place.x, band)),
          .local = box(around(place.t, 1), around(place.y, 2), around(place.x, 2))};
}

PlaceMasses place_masses(const RowEntries<double>& row, const TokenGrid& keys, LatentCoord place,
                         int64_t band) {
  const PlaceBoxes boxes = place_boxes(keys, place, band);
  PlaceMasses masses;
  masses.same_position = box_mass(row, keys, boxes.earlier) + box_mass(row, keys, boxes.later);
  masses.band = box_mass(row, keys, boxes.band);
  masses.local = box_mass(row, keys, boxes.local);
  return masses;
}

}  // namespace attnscope
