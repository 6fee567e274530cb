#include "viewer/view/looks/timeline_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/reduce/head_fields.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 2> kCurveAxes{"steps", "layers"};

}  // namespace

std::string_view curve_axis_name(CurveAxis axis) { return kCurveAxes[static_cast<size_t>(axis)]; }

std::optional<CurveAxis> parse_curve_axis(std::string_view name) {
  const auto at = std::find(kCurveAxes.begin(), kCurveAxes.end(), name);
  if (at == kCurveAxes.end()) return std::nullopt;
  return static_cast<CurveAxis>(at - kCurveAxes.begin());
}

std::vector<std::string> curve_axis_names() { return {kCurveAxes.begin(), kCurveAxes.end()}; }

void check_timeline_look(const TimelineLook& look) {
  if (!look.metric.empty() && find_head_field(look.metric) == nullptr) {
    std::vector<std::string> names;
    for (const std::string_view name : metric_names()) names.emplace_back(name);
    const std::string nearest = nearest_word(look.metric, names);
    throw usage_error(fmt::format("timeline {}: no such number{} ({})", one_line(look.metric),
                                  nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                  fmt::join(names, ", ")));
  }
  if (!(look.speed >= kLeastPlaySpeed && look.speed <= kMostPlaySpeed)) {
    throw usage_error(fmt::format("timeline speed {:g}: expected {:g} to {:g} steps a second",
                                  look.speed, kLeastPlaySpeed, kMostPlaySpeed));
  }
}

}  // namespace attnscope
