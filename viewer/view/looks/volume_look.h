#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

class TokenGrid;

/// How a ray through the volume becomes a colour: the largest value that it meets, or all of them,
/// each hiding what lies behind it the more the larger it is.
enum class VolumeMode : uint8_t { maximum, emission };
/// An axis of the volume: latent frames, rows, columns.
enum class VolumeAxis : uint8_t { t, y, x };

// Names as scripts and sessions write them: "max", "emission"; "t", "y", "x".
std::string_view volume_mode_name(VolumeMode mode);
std::string_view volume_axis_name(VolumeAxis axis);
std::optional<VolumeMode> parse_volume_mode(std::string_view name);
std::optional<VolumeAxis> parse_volume_axis(std::string_view name);
std::vector<std::string> volume_mode_names();
std::vector<std::string> volume_axis_names();

/// A plane through the middle of the cells `at` of an axis. What lies before it is cut away.
struct VolumeSlice {
  VolumeAxis axis = VolumeAxis::t;
  int64_t at = 0;
  friend bool operator==(const VolumeSlice&, const VolumeSlice&) = default;
};

inline constexpr double kLeastVolumeZoom = 0.25, kMostVolumeZoom = 16;

/// How the query's row is shown as a volume of frames × rows × columns. Angles in degrees.
struct VolumeLook {
  bool shown = false;  ///< in the film's place
  VolumeMode mode = VolumeMode::maximum;
  /// The place on the colour bar, 0 … 1, below which values are left out.
  double threshold = 0.5;
  double azimuth = -35;   ///< the eye moves to the right; −180 … 180
  double elevation = 25;  ///< the eye moves up; −90 … 90
  double zoom = 1;        ///< 1: the volume fits from every side
  std::optional<VolumeSlice> slice = {};
  friend bool operator==(const VolumeLook&, const VolumeLook&) = default;
};

/// Seen from elsewhere: angles that a hand may have turned too far come round again (azimuth), or
/// stop (elevation, zoom).
VolumeLook turned(VolumeLook look, double azimuth, double elevation, double zoom);
/// Throws Error(usage) "volume threshold 3: expected 0 to 1" for what is no look.
void check_volume_look(const VolumeLook& look);
/// Throws Error(usage) that names what there is where `grid` has no such plane, or is no grid.
void check_volume_slice(const TokenGrid& grid, const VolumeSlice& slice);

}  // namespace attnscope
