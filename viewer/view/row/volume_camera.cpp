#include "viewer/view/row/volume_camera.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace attnscope {
namespace {

using Vector = std::array<double, 3>;  ///< x, y, t, or the same in the world: x, up, away

/// Depth of the volume, of the longer of its other sides.
constexpr double kDepth = 0.8;
/// Of the pane that the volume's diagonal takes at least at a zoom of 1.
constexpr double kLeastBoxShare = 0.5;
/// Rays along a face would meet it nowhere, or everywhere.
constexpr double kLeastWay = 1e-6;

Vector vector_of(const VolumePoint& point) { return {point.x, point.y, point.t}; }

size_t place_of(VolumeAxis axis) {
  return axis == VolumeAxis::t ? 2 : axis == VolumeAxis::y ? 1 : 0;
}

double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

double no_zero(double part) { return std::abs(part) < kLeastWay ? kLeastWay : part; }

}  // namespace

VolumeCamera::VolumeCamera(std::array<int64_t, 3> size, const VolumeLook& look, double width,
                           double height, double margin)
    : middle_{width / 2, height / 2} {
  const auto frames = static_cast<double>(size[0]);
  const auto rows = static_cast<double>(size[1]), cols = static_cast<double>(size[2]);
  spacing_ = kDepth * std::max(rows, cols) / frames;
  size_ = {cols, rows, frames * spacing_};
  const double side = std::min(width, height);
  pixels_ =
      std::max(side - 2 * margin, kLeastBoxShare * side) / std::sqrt(dot(size_, size_)) * look.zoom;
  const double az = look.azimuth * std::numbers::pi / 180;
  const double el = look.elevation * std::numbers::pi / 180;
  right_ = {std::cos(az), 0, std::sin(az)};
  up_ = {-std::sin(el) * std::sin(az), std::cos(el), std::sin(el) * std::cos(az)};
  forward_ = {-std::cos(el) * std::sin(az), -std::sin(el), std::cos(el) * std::cos(az)};
  way_ = {no_zero(forward_[0]), no_zero(-forward_[1]), no_zero(forward_[2] / spacing_)};
  across_ = {right_[0] / pixels_, -right_[1] / pixels_, right_[2] / pixels_ / spacing_};
  down_ = {-up_[0] / pixels_, up_[1] / pixels_, -up_[2] / pixels_ / spacing_};
}

VolumePoint VolumeCamera::to_cells(const Vector& world) const {
  return {world[0] + size_[0] / 2, size_[1] / 2 - world[1], (world[2] + size_[2] / 2) / spacing_};
}

PanePoint VolumeCamera::project(const VolumePoint& point) const {
  const Vector world{point.x - size_[0] / 2, size_[1] / 2 - point.y,
                     point.t * spacing_ - size_[2] / 2};
  return {middle_.x + dot(world, right_) * pixels_, middle_.y - dot(world, up_) * pixels_};
}

VolumePoint VolumeCamera::ray_start(const PanePoint& at) const {
  const double u = (at.x - middle_.x) / pixels_, v = (middle_.y - at.y) / pixels_;
  const double back = std::sqrt(dot(size_, size_));
  Vector world{};
  for (size_t i = 0; i < 3; ++i) world[i] = u * right_[i] + v * up_[i] - back * forward_[i];
  return to_cells(world);
}

bool VolumeCamera::faces_eye(VolumeAxis axis, bool far_side) const {
  const double along = vector_of(way_)[place_of(axis)];
  return far_side ? along < 0 : along > 0;
}

std::vector<VolumeEdge> volume_edges(const VolumeCamera& camera, std::array<int64_t, 3> size) {
  const Vector far_corner{static_cast<double>(size[2]), static_cast<double>(size[1]),
                          static_cast<double>(size[0])};
  std::vector<VolumeEdge> edges;
  constexpr std::array kEdgeAxes{VolumeAxis::x, VolumeAxis::y, VolumeAxis::t};
  for (size_t along = 0; along < 3; ++along) {
    const size_t b = (along + 1) % 3, c = (along + 2) % 3;
    for (int corner = 0; corner < 4; ++corner) {
      const bool far_b = (corner & 1) != 0, far_c = (corner & 2) != 0;
      Vector from{}, to{};
      to[along] = far_corner[along];
      from[b] = to[b] = far_b ? far_corner[b] : 0;
      from[c] = to[c] = far_c ? far_corner[c] : 0;
      const bool seen_b = camera.faces_eye(kEdgeAxes[b], far_b);
      const bool seen_c = camera.faces_eye(kEdgeAxes[c], far_c);
      edges.push_back({kEdgeAxes[along],
                       {from[0], from[1], from[2]},
                       {to[0], to[1], to[2]},
                       !seen_b && !seen_c,
                       seen_b != seen_c});
    }
  }
  return edges;
}

const VolumeEdge* labelled_edge(const VolumeCamera& camera, std::span<const VolumeEdge> edges,
                                VolumeAxis axis) {
  /// Of the way's length; a shorter edge is a point to the eye.
  constexpr double kLeastPixels = 8;
  const VolumeEdge* best = nullptr;
  double best_place = 0;
  for (const VolumeEdge& edge : edges) {
    if (edge.along != axis || !edge.outline) continue;
    const PanePoint from = camera.project(edge.from), to = camera.project(edge.to);
    if (std::hypot(to.x - from.x, to.y - from.y) < kLeastPixels) continue;
    const double place = axis == VolumeAxis::y ? -(from.x + to.x) : from.y + to.y;
    if (best != nullptr && place <= best_place) continue;
    best = &edge;
    best_place = place;
  }
  return best;
}

uint8_t VolumeCells::number_of(double unit) {
  return static_cast<uint8_t>(kLeastNumber +
                              std::lround((255 - kLeastNumber) * std::clamp(unit, 0.0, 1.0)));
}

uint8_t VolumeCells::least_of(double threshold) {
  return static_cast<uint8_t>(kLeastNumber +
                              std::ceil((255 - kLeastNumber) * std::clamp(threshold, 0.0, 1.0)));
}

uint8_t VolumeCells::at(const LatentCoord& place) const {
  return numbers[static_cast<size_t>((place.t * size[1] + place.y) * size[2] + place.x)];
}

std::optional<LatentCoord> seen_cell(const VolumeCells& cells, const VolumePoint& from,
                                     const VolumePoint& along, uint8_t least,
                                     const std::optional<VolumeSlice>& slice) {
  const Vector start = vector_of(from), way = vector_of(along);
  const std::array<int64_t, 3> extent{cells.size[2], cells.size[1], cells.size[0]};
  double enters = 0, leaves = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < 3; ++i) {
    const double a = -start[i] / way[i];
    const double b = (static_cast<double>(extent[i]) - start[i]) / way[i];
    enters = std::max(enters, std::min(a, b));
    leaves = std::min(leaves, std::max(a, b));
  }
  const auto cell_at = [&](double s) {
    std::array<int64_t, 3> cell{};
    for (size_t i = 0; i < 3; ++i) {
      cell[i] = std::clamp<int64_t>(static_cast<int64_t>(std::floor(start[i] + s * way[i])), 0,
                                    extent[i] - 1);
    }
    return cell;
  };
  if (enters >= leaves) return std::nullopt;
  if (slice) {
    const size_t axis = place_of(slice->axis);
    const double cut = (static_cast<double>(slice->at) + 0.5 - start[axis]) / way[axis];
    if (cut >= leaves) return std::nullopt;
    if (cut >= enters) {
      auto cell = cell_at(cut);
      cell[axis] = slice->at;
      return LatentCoord{cell[2], cell[1], cell[0]};
    }
  }
  std::optional<LatentCoord> best;
  uint8_t largest = 0;
  auto cell = cell_at(enters);
  while (true) {
    const LatentCoord place{cell[2], cell[1], cell[0]};
    const uint8_t number = cells.at(place);
    if (number >= least && number > largest) {
      best = place;
      largest = number;
    }
    // Over the side of the cell that the ray meets first.
    size_t axis = 0;
    double next = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < 3; ++i) {
      const double side = static_cast<double>(cell[i] + (way[i] > 0 ? 1 : 0));
      const double s = (side - start[i]) / way[i];
      if (s < next) {
        next = s;
        axis = i;
      }
    }
    cell[axis] += way[axis] > 0 ? 1 : -1;
    if (cell[axis] < 0 || cell[axis] >= extent[axis]) return best;
  }
}

}  // namespace attnscope
