#include "viewer/tiles/check_wishes.h"

#include <algorithm>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Throws Error(usage) where maps of these sizes do not have what is asked for.
struct CheckAsk {
  const std::function<MapGeometry(const HeadId&)>& geometry;

  void operator()(const LineRequest& request) const {
    const MapGeometry map = geometry(request.head);
    const int64_t count = request.reverse ? map.cols : map.rows;
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

  void operator()(const MassRequest& request) const {
    const MapGeometry map = geometry(request.head);
    const auto within = [](IndexRange range, int64_t count) {
      return range.begin >= 0 && range.begin < range.end && range.end <= count;
    };
    if (!within(request.rows, map.rows) || !within(request.keys, map.cols) ||
        request.keys.size() > kMostMassKeys) {
      throw usage_error("masses are of 1 to " + std::to_string(kMostMassKeys) +
                        " keys over rows of the map");
    }
  }

  void operator()(const ProbeRequest& probe) const {
    const MapGeometry map = geometry(probe.head);
    if (probe.query < 0 || probe.query >= map.rows || probe.key < 0 || probe.key >= map.cols) {
      throw usage_error("the map has no entry " + std::to_string(probe.query) + ", " +
                        std::to_string(probe.key));
    }
  }

  void operator()(const TileId& id) const {
    const MapGeometry map = geometry(id.head);
    if (id.level < 0 || id.level > map.top_level || id.row < 0 || id.col < 0 ||
        id.row >= map.tile_rows(id.level) || id.col >= map.tile_cols(id.level)) {
      throw usage_error("no tile at row " + std::to_string(id.row) + ", column " +
                        std::to_string(id.col) + " of level " + std::to_string(id.level) +
                        ": the map has levels 0 … " + std::to_string(map.top_level));
    }
    if (!id.against) return;
    (*this)(HeadsCompared{id.head, id.against->other});
    if (id.against->how == Difference::off || !difference_suits(id.against->how, id.quantity)) {
      throw usage_error("there is no such difference of these numbers");
    }
  }

  void operator()(const HeadsCompared& heads) const {
    const MapGeometry a = geometry(heads.a), b = geometry(heads.b);
    if (a.rows != b.rows || a.cols != b.cols) {
      throw usage_error("maps of different sizes cannot be compared (A has " +
                        std::to_string(a.rows) + " queries and " + std::to_string(a.cols) +
                        " keys, B " + std::to_string(b.rows) + " and " + std::to_string(b.cols) +
                        ")");
    }
  }

  void operator()(const FrameRequest& frame) const {
    const bool fits = frame.width > 0 && frame.height > 0 && frame.width <= kMostFrameSide &&
                      frame.height <= kMostFrameSide;
    if (!fits) throw usage_error("no picture of the video has such a size");
  }

  /// Of a whole head.
  void operator()(const auto& asked) const { geometry(asked.head); }
};

}  // namespace

void check_wishes(const Wishes& wishes, const std::function<MapGeometry(const HeadId&)>& geometry) {
  for (const Wish& wish : wishes) std::visit(CheckAsk{geometry}, wish.ask);
}

}  // namespace attnscope
