#include "viewer/view/view_state.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "viewer/view/maps/map_source.h"

namespace attnscope {
namespace {

/// Entries across that a view shows at least.
constexpr double kLeastEntries = 4;

/// [begin, end) with a size that can be shown of `extent` entries, changed about its middle, and
/// moved within them.
void move_within(double& begin, double& end, double extent) {
  // Rounding is no change: clamping again what was clamped changes nothing.
  constexpr double kSame = 1e-9;
  const double size = end - begin;
  const double wanted = std::clamp(size, std::min(kLeastEntries, extent), extent);
  if (std::abs(wanted - size) > kSame * wanted) {
    begin = (begin + end) / 2 - wanted / 2;
    end = begin + wanted;
  }
  if (wanted >= extent * (1 - kSame)) {
    begin = 0;
    end = extent;
    return;
  }
  if (begin < 0) {
    begin = 0;
    end = wanted;
  } else if (end > extent) {
    end = extent;
    begin = extent - wanted;
  }
}

}  // namespace

ViewLimits ViewLimits::of(const std::vector<MapSource>& calls) {
  ViewLimits limits;
  for (const MapSource& call : calls) {
    limits.calls.push_back(
        {call.queries.tokens(), call.keys.tokens(), static_cast<int64_t>(call.batch.size()),
         static_cast<int64_t>(call.heads.size()), call.queries == call.keys, call.weights,
         call.logits, std::max(call.keys.text_range().size(), call.queries.text_range().size()),
         OrderedSide::of(call.queries), OrderedSide::of(call.keys), !call.evicted.empty(),
         call.block == 1});
  }
  return limits;
}

bool ViewLimits::has(const HeadId& head) const {
  if (head.call < 0 || head.call >= static_cast<int64_t>(calls.size())) return false;
  const CallLimits& call = calls[static_cast<size_t>(head.call)];
  return head.batch >= 0 && head.batch < call.batch && head.head >= 0 && head.head < call.heads;
}

const CallLimits& ViewLimits::of_call(const HeadId& head) const {
  return calls[static_cast<size_t>(head.call)];
}

std::optional<ViewPane> pane_below(const ViewState& state) {
  if (state.other && state.other->ranked) return ViewPane::ranked;
  if (state.mask.shown) return ViewPane::mask;
  if (state.show_frames) return ViewPane::frames;
  return state.show_histogram ? std::optional(ViewPane::histogram) : std::nullopt;
}

MapRect fit_rect(int64_t rows, int64_t cols) {
  return {0, static_cast<double>(rows), 0, static_cast<double>(cols)};
}

MapRect clamped_rect(const MapRect& rect, int64_t rows, int64_t cols) {
  const bool finite = std::isfinite(rect.q0) && std::isfinite(rect.q1) && std::isfinite(rect.k0) &&
                      std::isfinite(rect.k1);
  const double height = rect.q1 - rect.q0;
  const double width = rect.k1 - rect.k0;
  if (!finite || !(height > 0) || !(width > 0) || !std::isfinite(height) || !std::isfinite(width)) {
    throw usage_error("the view is empty: expected Q0 < Q1 and K0 < K1");
  }
  MapRect result = rect;
  move_within(result.q0, result.q1, static_cast<double>(rows));
  move_within(result.k0, result.k1, static_cast<double>(cols));
  return result;
}

ScaleKind usual_scale(ViewProduct product) {
  return product == ViewProduct::logits ? ScaleKind::linear : ScaleKind::log2;
}

bool scale_suits(ScaleKind scale, ViewProduct product) {
  return product != ViewProduct::logits || (scale != ScaleKind::log2 && scale != ScaleKind::sqrt);
}

bool range_suits(const ColourRange& range, ScaleKind scale) {
  if (range.automatic || scale == ScaleKind::linear || scale == ScaleKind::symlog) return true;
  return scale == ScaleKind::log2 ? range.low > 0 : range.low >= 0;
}

ScaleKind difference_scale(ScaleKind scale, Difference how) {
  const bool bent = scale == ScaleKind::log2 || scale == ScaleKind::sqrt;
  if (!bent || how == Difference::off || how == Difference::absolute) return scale;
  return how == Difference::log_ratio ? ScaleKind::linear : ScaleKind::symlog;
}

ViewState opened_view(const ViewLimits& limits) {
  const CallLimits& call = limits.calls.front();
  ViewState state;
  state.rect = fit_rect(call.rows, call.cols);
  fit_product(state, call);
  return state;
}

void fit_product(ViewState& state, const CallLimits& call) {
  if (state.product == ViewProduct::logits ? call.logits : call.weights) return;
  state.product = call.weights ? ViewProduct::weights : ViewProduct::logits;
  state.range = {};
  if (state.scale != ScaleKind::symlog) state.scale = usual_scale(state.product);
}

}  // namespace attnscope
