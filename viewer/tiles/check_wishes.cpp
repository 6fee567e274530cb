#include "viewer/tiles/check_wishes.h"

#include <algorithm>

#include "core/base/error.h"

namespace attnscope {
namespace {

void check_line(const LineRequest& request, const MapGeometry& geometry) {
  const int64_t count = request.reverse ? geometry.cols : geometry.rows;
  const std::vector<int64_t>& tokens = request.tokens;
  const bool ascending =
      std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) == tokens.end();
  if (tokens.empty() || !ascending || tokens.front() < 0 || tokens.back() >= count) {
    throw usage_error("a line's tokens must ascend within 0 … " + std::to_string(count - 1));
  }
  if (request.sum && request.quantity != Quantity::weights) {
    throw usage_error("lines of logits have means, and no sum");
  }
}

void check_masses(const MassRequest& request, const MapGeometry& geometry) {
  const auto within = [](IndexRange range, int64_t count) {
    return range.begin >= 0 && range.begin < range.end && range.end <= count;
  };
  if (!within(request.rows, geometry.rows) || !within(request.keys, geometry.cols) ||
      request.keys.size() > kMostMassKeys) {
    throw usage_error("masses are of 1 to " + std::to_string(kMostMassKeys) +
                      " keys over rows of the map");
  }
}

void check_probe(const ProbeRequest& probe, const MapGeometry& geometry) {
  if (probe.query < 0 || probe.query >= geometry.rows || probe.key < 0 ||
      probe.key >= geometry.cols) {
    throw usage_error("the map has no entry " + std::to_string(probe.query) + ", " +
                      std::to_string(probe.key));
  }
}

void check_tile(const TileId& id, const MapGeometry& geometry) {
  if (id.level < 0 || id.level > geometry.top_level || id.row < 0 || id.col < 0 ||
      id.row >= geometry.tile_rows(id.level) || id.col >= geometry.tile_cols(id.level)) {
    throw usage_error("no tile at row " + std::to_string(id.row) + ", column " +
                      std::to_string(id.col) + " of level " + std::to_string(id.level) +
                      ": the map has levels 0 … " + std::to_string(geometry.top_level));
  }
}

}  // namespace

void check_wishes(const WantedTiles& wishes,
                  const std::function<MapGeometry(const HeadId&)>& geometry) {
  for (const auto& line : {wishes.line, wishes.other_line, wishes.words_line}) {
    if (line) check_line(*line, geometry(line->head));
  }
  if (wishes.masses) check_masses(*wishes.masses, geometry(wishes.masses->head));
  if (wishes.mask) geometry(wishes.mask->head);
  for (const FrameRequest& frame : wishes.frames) {
    const bool fits = frame.width > 0 && frame.height > 0 && frame.width <= kMostFrameSide &&
                      frame.height <= kMostFrameSide;
    if (!fits) throw usage_error("no picture of the video has such a size");
  }
  for (const ProbeRequest& probe : wishes.probes) check_probe(probe, geometry(probe.head));
  const auto check_pair = [&](const HeadId& a, const HeadId& b) {
    const MapGeometry of_a = geometry(a), of_b = geometry(b);
    if (of_a.rows != of_b.rows || of_a.cols != of_b.cols) {
      throw usage_error("maps of different sizes cannot be compared (A has " +
                        std::to_string(of_a.rows) + " queries and " + std::to_string(of_a.cols) +
                        " keys, B " + std::to_string(of_b.rows) + " and " +
                        std::to_string(of_b.cols) + ")");
    }
  };
  const auto check_against = [&](const HeadId& head, Quantity quantity, const Against& against) {
    check_pair(head, against.other);
    if (against.how == Difference::off || !difference_suits(against.how, quantity)) {
      throw usage_error("there is no such difference of these numbers");
    }
  };
  for (const TileId& tile : wishes.tiles) {
    check_tile(tile, geometry(tile.head));
    if (tile.against) check_against(tile.head, tile.quantity, *tile.against);
  }
  for (const DifferenceId& each : wishes.exact_differences) {
    check_against(each.head, each.quantity, each.against);
  }
  if (wishes.divergence) check_pair(wishes.divergence->a, wishes.divergence->b);
  if (wishes.tracks) geometry(*wishes.tracks);
  for (const auto* heads : {&wishes.exact, &wishes.sketches, &wishes.exact_sketches}) {
    for (const HeadId& head : *heads) geometry(head);
  }
}

}  // namespace attnscope
