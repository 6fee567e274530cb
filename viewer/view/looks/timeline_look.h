#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The axis that a curve of the time line goes over.
enum class CurveAxis : uint8_t { steps, layers };
std::string_view curve_axis_name(CurveAxis axis);
std::optional<CurveAxis> parse_curve_axis(std::string_view name);
std::vector<std::string> curve_axis_names();

/// Steps a second that playing can be told.
inline constexpr double kLeastPlaySpeed = 0.1, kMostPlaySpeed = 30;

/// How the strip of steps is shown, where a capture has more than one.
struct TimelineLook {
  bool shown = true;
  std::string metric = {};  ///< of the curve, a name of head_fields(); empty: no curve
  CurveAxis over = CurveAxis::steps;
  bool loop = true;  ///< playing goes on with the first step after the last
  double speed = 2;  ///< steps a second, where they are there in time
  /// Each step that is added to the capture is shown as soon as it is there.
  bool follow = false;
  friend bool operator==(const TimelineLook&, const TimelineLook&) = default;
};

/// Throws Error(usage) for what is no look.
void check_timeline_look(const TimelineLook& look);

}  // namespace attnscope
