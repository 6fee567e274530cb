#include "core/patterns/mask_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/base/checked_math.h"
#include "core/mask/mask_runs.h"

namespace attnscope {
namespace {

/// A condition that asks, for each frame of keys, which cells of it a query keeps.
class FramesTerm : public RunsTerm {
 public:
  FramesTerm(const TokenGrid& grid, std::string name) : grid_(grid), name_(std::move(name)) {}
  std::string describe() const override { return name_; }
  void check_shape(int64_t, int64_t, int64_t, int64_t) const override {}

 protected:
  int64_t cells() const { return grid_.height() * grid_.width(); }
  /// Appends runs of cells of `frame`, ascending, disjoint; only those within `wanted` matter.
  virtual void append_cells(const LatentCoord& query, int64_t frame, IndexRange wanted,
                            std::vector<IndexRange>& runs) const = 0;

  void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const override {
    const auto at = grid_.coord(query);
    const IndexRange video = intersect(keys, grid_.video_range());
    if (!at || video.empty()) return;
    const int64_t first = (video.begin - grid_.video_range().begin) / cells();
    const int64_t last = (video.end - 1 - grid_.video_range().begin) / cells();
    for (int64_t frame = first; frame <= last; ++frame) {
      const int64_t origin = grid_.video_range().begin + frame * cells();
      const IndexRange wanted = intersect({video.begin - origin, video.end - origin}, {0, cells()});
      const size_t before = runs.size();
      append_cells(*at, frame, wanted, runs);
      size_t kept = before;
      for (size_t i = before; i < runs.size(); ++i) {
        const IndexRange run = intersect(runs[i], wanted);
        if (!run.empty()) runs[kept++] = {run.begin + origin, run.end + origin};
      }
      runs.resize(kept);
    }
  }

  /// The runs of rows × cols of a frame.
  void append_box(IndexRange rows, IndexRange cols, IndexRange wanted,
                  std::vector<IndexRange>& runs) const {
    const int64_t width = grid_.width();
    cols = intersect(cols, {0, width});
    rows = intersect(rows, {wanted.begin / width, ceil_div(wanted.end, width)});
    if (rows.empty() || cols.empty()) return;
    if (cols.size() == width) {
      runs.push_back({rows.begin * width, rows.end * width});
      return;
    }
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      runs.push_back({y * width + cols.begin, y * width + cols.end});
    }
  }

  const TokenGrid grid_;

 private:
  const std::string name_;
};

class SpatialTerm : public FramesTerm {
 public:
  SpatialTerm(const TokenGrid& grid, int64_t frames)
      : FramesTerm(grid, "spatial:frames=" + std::to_string(frames)), frames_(frames) {}

 protected:
  void append_cells(const LatentCoord& query, int64_t frame, IndexRange,
                    std::vector<IndexRange>& runs) const override {
    if (std::abs(frame - query.t) <= frames_) runs.push_back({0, cells()});
  }

 private:
  const int64_t frames_;
};

class TemporalTerm : public FramesTerm {
 public:
  TemporalTerm(const TokenGrid& grid, int64_t band)
      : FramesTerm(grid, "temporal:band=" + std::to_string(band)), band_(band) {}

 protected:
  void append_cells(const LatentCoord& query, int64_t, IndexRange wanted,
                    std::vector<IndexRange>& runs) const override {
    append_box({query.y - band_, query.y + band_ + 1}, {query.x - band_, query.x + band_ + 1},
               wanted, runs);
  }

 private:
  const int64_t band_;
};

std::string triple(std::array<int64_t, 3> v) {
  return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
}

class TilesTerm : public FramesTerm {
 public:
  TilesTerm(const TokenGrid& grid, std::array<int64_t, 3> tile, std::array<int64_t, 3> window)
      : FramesTerm(grid, "tiles:size=" + triple(tile) + ",window=" + triple(window)),
        tile_(tile),
        window_(window) {}

 protected:
  void append_cells(const LatentCoord& query, int64_t frame, IndexRange wanted,
                    std::vector<IndexRange>& runs) const override {
    if (!reach(0, query.t, grid_.frames()).contains(frame)) return;
    append_box(reach(1, query.y, grid_.height()), reach(2, query.x, grid_.width()), wanted, runs);
  }

 private:
  /// The positions along an axis that a query at `at` keeps.
  IndexRange reach(size_t axis, int64_t at, int64_t extent) const {
    const int64_t tiles = ceil_div(extent, tile_[axis]);
    const int64_t first = std::clamp(at / tile_[axis] - window_[axis] / 2, int64_t{0},
                                     std::max(tiles - window_[axis], int64_t{0}));
    const int64_t past = std::min(first + window_[axis], tiles);
    return {first * tile_[axis], std::min(past * tile_[axis], extent)};
  }

  const std::array<int64_t, 3> tile_, window_;
};

class RadialTerm : public FramesTerm {
 public:
  RadialTerm(const TokenGrid& grid, int64_t block, double decay, int64_t sink)
      : FramesTerm(grid, "radial:block=" + std::to_string(block)), sink_(sink) {
    const auto bits = [](int64_t n) { return std::bit_width(static_cast<uint64_t>(n)); };
    for (int64_t distance = 0; distance < grid.frames(); ++distance) {
      const double length = std::exp2(bits(cells()) - bits(distance));
      int64_t width = cells();
      if (distance == 1) width = cells() / 2;
      if (distance > 1) {
        const double wide = std::max(decay * length, static_cast<double>(block));
        width = static_cast<int64_t>(std::min(wide, static_cast<double>(cells())));
      }
      const double every = std::floor(static_cast<double>(block) / length);
      if (length < static_cast<double>(block) && std::fmod(distance, every) != 0) width = -1;
      widths_.push_back(width);
    }
  }

 protected:
  void append_cells(const LatentCoord& query, int64_t frame, IndexRange,
                    std::vector<IndexRange>& runs) const override {
    const int64_t width =
        frame < sink_ ? cells() : widths_[static_cast<size_t>(std::abs(frame - query.t))];
    const int64_t cell = query.y * grid_.width() + query.x;
    const IndexRange run = intersect({cell - width, cell + width + 1}, {0, cells()});
    if (width >= 0) runs.push_back(run);
  }

 private:
  const int64_t sink_;
  std::vector<int64_t> widths_;  ///< by the distance of frames; −1: nothing is kept
};

/// Whole rows and whole columns.
class RangesTerm : public RunsTerm {
 public:
  RangesTerm(std::vector<IndexRange> queries, std::vector<IndexRange> keys, std::string name)
      : queries_(std::move(queries)), keys_(std::move(keys)), name_(std::move(name)) {}
  std::string describe() const override { return name_; }
  void check_shape(int64_t, int64_t, int64_t, int64_t) const override {}

 protected:
  void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const override {
    const bool whole = std::any_of(queries_.begin(), queries_.end(),
                                   [&](IndexRange range) { return range.contains(query); });
    if (whole) {
      runs.push_back(keys);
      return;
    }
    for (const IndexRange range : keys_) {
      const IndexRange kept = intersect(range, keys);
      if (!kept.empty()) runs.push_back(kept);
    }
  }

 private:
  const std::vector<IndexRange> queries_, keys_;
  const std::string name_;
};

}  // namespace

Mask spatial_mask(const TokenGrid& grid, int64_t frames) {
  return Mask::term(std::make_shared<SpatialTerm>(grid, frames));
}
Mask temporal_mask(const TokenGrid& grid, int64_t band) {
  return Mask::term(std::make_shared<TemporalTerm>(grid, band));
}
Mask tile_mask(const TokenGrid& grid, std::array<int64_t, 3> tile, std::array<int64_t, 3> window) {
  return Mask::term(std::make_shared<TilesTerm>(grid, tile, window));
}
Mask radial_mask(const TokenGrid& grid, int64_t block, double decay, int64_t sink) {
  return Mask::term(std::make_shared<RadialTerm>(grid, block, decay, sink));
}
Mask ranges_mask(std::vector<IndexRange> queries, std::vector<IndexRange> keys, std::string name) {
  return Mask::term(
      std::make_shared<RangesTerm>(std::move(queries), std::move(keys), std::move(name)));
}

}  // namespace attnscope
