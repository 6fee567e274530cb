#include "viewer/view/looks/volume_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/problem/token_grid.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 2> kVolumeModes{"max", "emission"};
constexpr std::array<std::string_view, 3> kVolumeAxes{"t", "y", "x"};

template <typename Enum, size_t kCount>
std::optional<Enum> name_in(const std::array<std::string_view, kCount>& names,
                            std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Enum>(at - names.begin());
}

void check_within(std::string_view what, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw usage_error(fmt::format("volume {} {:g}: expected {:g} to {:g}", what, value, least, most));
}

}  // namespace

std::string_view volume_mode_name(VolumeMode mode) {
  return kVolumeModes[static_cast<size_t>(mode)];
}
std::string_view volume_axis_name(VolumeAxis axis) {
  return kVolumeAxes[static_cast<size_t>(axis)];
}
std::optional<VolumeMode> parse_volume_mode(std::string_view name) {
  return name_in<VolumeMode>(kVolumeModes, name);
}
std::optional<VolumeAxis> parse_volume_axis(std::string_view name) {
  return name_in<VolumeAxis>(kVolumeAxes, name);
}
std::vector<std::string> volume_mode_names() { return {kVolumeModes.begin(), kVolumeModes.end()}; }
std::vector<std::string> volume_axis_names() { return {kVolumeAxes.begin(), kVolumeAxes.end()}; }

VolumeLook turned(VolumeLook look, double azimuth, double elevation, double zoom) {
  look.azimuth = std::remainder(azimuth, 360.0);
  look.elevation = std::clamp(elevation, -90.0, 90.0);
  look.zoom = std::clamp(zoom, kLeastVolumeZoom, kMostVolumeZoom);
  return look;
}

void check_volume_look(const VolumeLook& look) {
  check_within("threshold", look.threshold, 0, 1);
  check_within("orbit, azimuth", look.azimuth, -180, 180);
  check_within("orbit, elevation", look.elevation, -90, 90);
  check_within("zoom", look.zoom, kLeastVolumeZoom, kMostVolumeZoom);
  if (look.slice && look.slice->at < 0) {
    throw usage_error(fmt::format("volume slice {} {}: planes count from 0",
                                  volume_axis_name(look.slice->axis), look.slice->at));
  }
}

void check_volume_slice(const TokenGrid& grid, const VolumeSlice& slice) {
  const std::string_view axis = volume_axis_name(slice.axis);
  if (!grid.has_grid()) {
    throw usage_error(fmt::format("volume slice {} {}: no grid is known", axis, slice.at));
  }
  const std::array extents{grid.frames(), grid.height(), grid.width()};
  const int64_t extent = extents[static_cast<size_t>(slice.axis)];
  if (slice.at >= 0 && slice.at < extent) return;
  throw usage_error(fmt::format("volume slice {0} {1}: outside the grid (valid 0 to {2})", axis,
                                slice.at, extent - 1));
}

}  // namespace attnscope
