#include "viewer/commands/command_actions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "viewer/settings/settings.h"
#include "viewer/view/comparison.h"
#include "viewer/view/placed_map.h"

namespace attnscope {
namespace {

/// Of the view, by which a key moves it.
constexpr double kPanPart = 1.0 / 8;
constexpr double kZoomStep = std::numbers::sqrt2;

std::optional<Action> pan(const ViewState& state, int rows, int cols) {
  const MapRect& rect = state.rect;
  return action::Pan{rows * (rect.q1 - rect.q0) * kPanPart, cols * (rect.k1 - rect.k0) * kPanPart};
}

std::optional<Action> zoom(const ViewState& state, double factor) {
  const MapRect& rect = state.rect;
  return action::ZoomAt{(rect.q0 + rect.q1) / 2, (rect.k0 + rect.k1) / 2, factor};
}

std::optional<Action> move(const ViewState& state, const HeadPicker& picker, HeadAxis axis,
                           int64_t by) {
  const HeadId head = picker.move(state.head, axis, by);
  if (head == state.head) return std::nullopt;
  return action::SelectHead{head};
}

const MapSource& call_of(const ViewState& state, const HeadPicker& picker) {
  return picker.calls()[static_cast<size_t>(state.head.call)];
}

MapRect rect_of(IndexRange queries, IndexRange keys) {
  return {static_cast<double>(queries.begin), static_cast<double>(queries.end),
          static_cast<double>(keys.begin), static_cast<double>(keys.end)};
}

std::optional<Action> frame_block(const ViewState& state, const HeadPicker& picker) {
  const MapSource& call = call_of(state, picker);
  const MapRect& rect = state.rect;
  const auto around = [](const TokenOrder& order, const TokenGrid& tokens, double middle) {
    const auto place =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(middle)), 0, tokens.tokens() - 1);
    return block_around(placed_side(order, tokens), tokens, place);
  };
  return action::SetRect{rect_of(around(state.order.rows, call.queries, (rect.q0 + rect.q1) / 2),
                                 around(state.order.keys, call.keys, (rect.k0 + rect.k1) / 2))};
}

/// Text to text, text to video, video to text, video to video, and all of it; those that there are.
std::vector<MapRect> quadrants(const ViewState& state, const MapSource& call) {
  std::vector<MapRect> found;
  // A list of all tokens may have put text and video anywhere.
  const auto sides = [](const TokenOrder& order, const TokenGrid& grid) {
    std::vector<IndexRange> ranges;
    if (!placed_side(order, grid).keeps_parts) return ranges;
    for (const IndexRange& range : {grid.text_range(), grid.video_range()}) {
      if (!range.empty()) ranges.push_back(range);
    }
    return ranges;
  };
  for (const IndexRange& queries : sides(state.order.rows, call.queries)) {
    for (const IndexRange& keys : sides(state.order.keys, call.keys))
      found.push_back(rect_of(queries, keys));
  }
  const MapRect all = fit_rect(call.queries.tokens(), call.keys.tokens());
  std::erase(found, all);
  found.push_back(all);
  return found;
}

std::optional<Action> next_quadrant(const ViewState& state, const HeadPicker& picker) {
  const MapSource& call = call_of(state, picker);
  const std::vector<MapRect> all = quadrants(state, call);
  const auto shown = [&](const MapRect& rect) {
    return clamped_rect(rect, call.queries.tokens(), call.keys.tokens()) == state.rect;
  };
  const auto at = std::find_if(all.begin(), all.end(), shown);
  const bool wrap = at == all.end() || at + 1 == all.end();
  const MapRect& next = wrap ? all.front() : *(at + 1);
  if (next == all.back()) return action::Fit{};
  return action::SetRect{next};
}

std::optional<Action> next_scale(const ViewState& state) {
  const auto count = static_cast<int>(scale_kind_names().size());
  int scale = static_cast<int>(state.scale);
  do {
    scale = (scale + 1) % count;
  } while (!scale_suits(static_cast<ScaleKind>(scale), state.product));
  return action::SetScale{static_cast<ScaleKind>(scale)};
}

std::optional<Action> next_colormap(const ViewState& state) {
  const auto names = colormap_names();
  const auto at = std::find(names.begin(), names.end(), state.colormap);
  // From one that is not known to the first.
  const bool wrap = at == names.end() || at + 1 == names.end();
  return action::SetColormap{wrap ? names.front() : *(at + 1)};
}

}  // namespace

std::optional<Action> command_action(CommandId id, const ViewState& state,
                                     const HeadPicker& picker) {
  switch (id) {
    case CommandId::pan_up:
      return pan(state, -1, 0);
    case CommandId::pan_left:
      return pan(state, 0, -1);
    case CommandId::pan_down:
      return pan(state, 1, 0);
    case CommandId::pan_right:
      return pan(state, 0, 1);
    case CommandId::zoom_in:
      return zoom(state, kZoomStep);
    case CommandId::zoom_out:
      return zoom(state, 1 / kZoomStep);
    case CommandId::fit:
      return action::Fit{};
    case CommandId::frame_block:
      return frame_block(state, picker);
    case CommandId::next_quadrant:
      return next_quadrant(state, picker);
    case CommandId::previous_head:
      return move(state, picker, HeadAxis::head, -1);
    case CommandId::next_head:
      return move(state, picker, HeadAxis::head, 1);
    case CommandId::previous_layer:
      return move(state, picker, HeadAxis::layer, -1);
    case CommandId::next_layer:
      return move(state, picker, HeadAxis::layer, 1);
    case CommandId::previous_step:
      return move(state, picker, HeadAxis::step, -1);
    case CommandId::next_step:
      return move(state, picker, HeadAxis::step, 1);
    case CommandId::reverse:
      return action::SetReverse{!state.reverse};
    case CommandId::toggle_pool:
      return action::SetPool{state.pool == Pool::max ? Pool::mean : Pool::max};
    case CommandId::next_scale:
      return next_scale(state);
    case CommandId::next_colormap:
      return next_colormap(state);
    case CommandId::toggle_whole_range: {
      ColourRange range;
      range.whole = !(state.against() ? state.other->range : state.range).whole;
      return action::SetRange{range};
    }
    case CommandId::flip_order:
      return action::FlipOrder{};
    case CommandId::toggle_equal_axes:
      return action::Switch{&ViewState::equal_axes, !state.equal_axes};
    case CommandId::magnify:
      return action::Switch{&ViewState::magnifier, !state.magnifier};
    case CommandId::toggle_histogram:
      // One that another pane stands before comes to the front.
      if (pane_below(state) != ViewPane::histogram) {
        return action::Switch{&ViewState::show_histogram, true};
      }
      return toggled("histogram", state);
    case CommandId::toggle_atlas:
      return toggled("atlas", state);
    case CommandId::toggle_volume:
      return toggled("volume", state);
    case CommandId::toggle_timeline:
      return toggled("timeline", state);
    case CommandId::toggle_words:
      return toggled("words", state);
    case CommandId::toggle_mask:
      return toggled("mask", state);
    case CommandId::toggle_frames:
      return toggled("frames", state);
    case CommandId::next_row_track: {
      TracksLook look = state.tracks;
      look.rows = next_track(look.rows);
      return action::SetTracks{look};
    }
    case CommandId::next_key_track: {
      TracksLook look = state.tracks;
      look.keys = look.keys == KeyTrack::off ? KeyTrack::mass : KeyTrack::off;
      return action::SetTracks{look};
    }
    case CommandId::difference:
      if (!state.other) return std::nullopt;
      return action::SetDifference{next_difference(state)};
    default:
      return std::nullopt;
  }
}

}  // namespace attnscope
