#include "viewer/panels/map/map_tracks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/cell_text.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

/// Two numbers of kEndCharacters stand above it.
constexpr float kRowsWidth = 88;
constexpr float kKeysHeight = 48;

/// Why a strip has no numbers; empty: it has some, or they are still to come.
std::string missing_text(const Scene& scene, const std::vector<double>* values) {
  if (!scene.call.weights) return "no weights";
  if (!scene.tracks_problem.empty()) return "failed";
  return values != nullptr && values->empty() ? "none here" : "";
}

/// Characters of an end of an axis.
constexpr int kEndCharacters = 5;

/// An end of an axis in a width: of two digits, or of one.
std::string end_within(const Ui& ui, double value, float width) {
  const std::string text = number_words(value, 2);
  return text_size(ui.fonts.mono, text).x <= width ? text : number_words(value, 1);
}

/// Numbers of tokens by the places at which these stand.
std::vector<double> placed_values(const std::vector<double>& values, const PlacedSide& side) {
  std::vector<double> placed(values.size());
  for (size_t place = 0; place < values.size(); ++place) {
    placed[place] = values[static_cast<size_t>(side.token(static_cast<int64_t>(place)))];
  }
  return placed;
}

/// The token under the mouse along a strip.
std::optional<int64_t> token_at(const RulerAxis& axis, int64_t count) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const float at = axis.vertical ? mouse.y : mouse.x;
  const double place = axis.first + static_cast<double>(at - axis.low) / axis.pixels_per_token();
  if (!(place >= 0) || !(place < static_cast<double>(count))) return std::nullopt;
  return axis.side.token(static_cast<int64_t>(place));
}

}  // namespace

float MapTracks::rows_width(const Ui& ui, const ViewState& state) {
  return state.tracks.rows == RowTrack::off ? 0 : ui.px(kRowsWidth);
}

float MapTracks::keys_height(const Ui& ui, const ViewState& state) {
  return state.tracks.keys == KeyTrack::off ? 0 : ui.px(kKeysHeight);
}

/// The ends of the axes, where the numbers are others than before.
void MapTracks::take(const Scene& scene) {
  const TracksLook& look = scene.state.tracks;
  const bool same_order = rows_side_ == scene.placed.rows && keys_side_ == scene.placed.keys;
  if (of_ == scene.tracks && look_ == look && same_order) return;
  of_ = scene.tracks;
  look_ = look;
  rows_side_ = scene.placed.rows;
  keys_side_ = scene.placed.keys;
  rows_range_ = keys_range_ = {};
  if (!of_) return;
  rows_range_ = track_range(of_->of(look.rows), false);
  keys_range_ = track_range(of_->of(look.keys), true);
  if (!rows_side_->is_stored()) rows_placed_ = placed_values(of_->of(look.rows), *rows_side_);
  if (!keys_side_->is_stored()) keys_placed_ = placed_values(of_->of(look.keys), *keys_side_);
}

/// "entropy 3.21 nats".
std::string MapTracks::value_text(const Scene& scene, const Strip& strip, int64_t token) {
  std::string text = strip.name + " ";
  const std::string missing = missing_text(scene, strip.values);
  if (!missing.empty()) return text + "\u2013 (" + missing + ")";
  if (strip.values == nullptr) return text + "\u2026";
  const double value = (*strip.values)[static_cast<size_t>(token)];
  if (std::isnan(value)) {
    return text + (scene.tracks->exact ? "\u2013 (attends to nothing)" : "\u2026");
  }
  text += number_words(value, 4);
  if (!strip.unit.empty()) text += " " + strip.unit;
  const bool sampled = strip.range->logarithmic && !scene.tracks->exact;
  if (sampled) text += fmt::format(" (of {} rows)", scene.tracks->computed);
  return text;
}

void MapTracks::draw_bins(const Ui& ui, const Strip& strip, bool exact) {
  const ScreenRect& r = strip.rect;
  const RulerAxis& axis = strip.axis;
  const float room = (axis.vertical ? r.width() : r.height()) - ui.px(3);
  const auto pixels = static_cast<int64_t>(axis.high - axis.low);
  const std::vector<TrackBin> bins = track_bins(*strip.placed, axis.first, axis.last, pixels);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  // Numbers grow away from the map.
  const auto point = [&](size_t pixel, double value) {
    const float along = axis.low + static_cast<float>(pixel);
    const float away = room * static_cast<float>(strip.range->share(value)) + ui.px(1);
    return axis.vertical ? ImVec2{r.x1 - away, along} : ImVec2{along, r.y1 - away};
  };
  const ImU32 bar = faded(strip.colour, 0.4f);
  std::optional<ImVec2> before;
  for (size_t i = 0; i < bins.size(); ++i) {
    const TrackBin& bin = bins[i];
    if (bin.count == 0) {
      // Between sampled rows the line goes on; of all rows a gap is one.
      if (exact) before.reset();
      continue;
    }
    const ImVec2 low = point(i, bin.low), high = point(i, bin.high), mean = point(i, bin.mean);
    if (axis.vertical) {
      draw.AddRectFilled({high.x - 0.5f, high.y}, {low.x + 0.5f, low.y + 1}, bar);
    } else {
      draw.AddRectFilled({high.x, high.y - 0.5f}, {low.x + 1, low.y + 0.5f}, bar);
    }
    if (before) draw.AddLine(*before, mean, strip.colour, ui.px(1));
    if (!before) draw.AddRectFilled(mean, {mean.x + 1, mean.y + 1}, strip.colour);
    before = mean;
  }
}

/// The name and the ends of the axis, beside the strip; true where it was clicked.
bool MapTracks::draw_label(const Ui& ui, const Scene& scene, const Strip& strip) const {
  const ScreenRect& r = strip.label;
  ImFont* const small = ui.fonts.secondary;
  ImGui::SetCursorScreenPos({r.x0, r.y0});
  const std::string label = strip.axis.vertical ? "Matrix/Row track" : "Matrix/Key track";
  const bool clicked = ImGui::InvisibleButton(
      label.c_str(), {std::max(1.0f, r.width()), std::max(1.0f, r.height())});
  mark(ui, label);
  if (ImGui::IsItemHovered()) {
    std::string about = strip.unit.empty() ? strip.name : strip.name + ", " + strip.unit;
    if (scene.tracks && !scene.tracks->exact) {
      about +=
          fmt::format("; from {} of {} rows so far", scene.tracks->computed, scene.geometry.rows);
    }
    if (!scene.tracks_problem.empty()) about += "\n" + scene.tracks_problem;
    if (strip.values != nullptr && !strip.range->empty) {
      about +=
          "\nfrom " + number_words(strip.range->low) + " to " + number_words(strip.range->high);
    }
    tooltip(about + "\nthe axis goes over the whole head; click: what else there is");
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.PushClipRect({r.x0, r.y0}, {r.x1, r.y1}, true);
  const bool sampled = scene.tracks && !scene.tracks->exact;
  const std::string name = (sampled ? "~ " : "") + strip.name;
  const bool numbers = strip.values != nullptr && !strip.range->empty;
  ImFont* const digits = ui.fonts.mono;
  if (strip.axis.vertical) {
    put_fitting(ui, small, (r.x0 + r.x1) / 2, r.y0, r.width(), strip.colour, name, Align::centre);
    const float y = r.y1 - digits->FontSize - ui.px(3);
    if (numbers) {
      put_text(ui, digits, r.x0, y, ui.theme.secondary,
               axis_number_within(strip.range->high, kEndCharacters));
      put_text(ui, digits, r.x1, y, ui.theme.secondary,
               axis_number_within(strip.range->low, kEndCharacters), Align::right);
    }
  } else {
    const float x = r.x1 - ui.px(4);
    put_fitting(ui, small, x, (r.y0 + r.y1 - small->FontSize) / 2, r.width(), strip.colour, name,
                Align::right);
    if (numbers) {
      put_text(ui, digits, x, r.y0, ui.theme.secondary, end_within(ui, strip.range->high, x - r.x0),
               Align::right);
      put_text(ui, digits, x, r.y1 - digits->FontSize, ui.theme.secondary,
               end_within(ui, strip.range->low, x - r.x0), Align::right);
    }
  }
  draw.PopClipRect();
  return clicked;
}

void MapTracks::draw_strip(const Ui& ui, const Scene& scene, const Strip& strip,
                           const std::optional<int64_t>& pointed) {
  const ScreenRect& r = strip.rect;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.raised);
  draw.PushClipRect({r.x0, r.y0}, {r.x1, r.y1}, true);
  const std::string missing = missing_text(scene, strip.values);
  if (!missing.empty() || strip.values == nullptr || strip.range->empty) {
    const std::string text = !missing.empty()          ? missing
                             : strip.values == nullptr ? "\u2026"
                                                       : "none here";
    put_text(ui, ui.fonts.secondary, (r.x0 + r.x1) / 2,
             (r.y0 + r.y1 - ui.fonts.secondary->FontSize) / 2,
             missing == "failed" ? ui.theme.problem : ui.theme.secondary, text, Align::centre);
  } else {
    draw_frame_lines(ui, r, strip.axis);
    draw_bins(ui, strip, scene.tracks->exact);
  }
  if (pointed) {
    const float at = strip.axis.at(static_cast<double>(strip.axis.side.place(*pointed)) + 0.5);
    if (strip.axis.vertical) {
      draw.AddLine({r.x0, at}, {r.x1, at}, ui.theme.text);
    } else {
      draw.AddLine({at, r.y0}, {at, r.y1}, ui.theme.text);
    }
  }
  draw.PopClipRect();
}

MapTracks::Strip MapTracks::rows_strip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                                       const Areas& areas) const {
  const RowTrack track = scene.state.tracks.rows;
  Strip strip{
      {scene.queries, *rows_side_, view.area.y0, view.area.y1, view.rect.q0, view.rect.q1, true}};
  strip.name = track == RowTrack::lse    ? "LSE"
               : track == RowTrack::text ? "text mass"
                                         : std::string(row_track_name(track));
  strip.unit = row_track_unit(track);
  if (of_) strip.values = &of_->of(track);
  strip.placed = rows_side_->is_stored() ? strip.values : &rows_placed_;
  strip.range = &rows_range_;
  strip.rect = areas.rows;
  strip.label = areas.rows_label;
  strip.colour = ui.theme.query;
  return strip;
}

MapTracks::Strip MapTracks::keys_strip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                                       const Areas& areas) const {
  Strip strip{
      {scene.keys, *keys_side_, view.area.x0, view.area.x1, view.rect.k0, view.rect.k1, false}};
  strip.name = "mass";
  if (of_) strip.values = &of_->of(scene.state.tracks.keys);
  strip.placed = keys_side_->is_stored() ? strip.values : &keys_placed_;
  strip.range = &keys_range_;
  strip.rect = areas.keys;
  strip.label = areas.keys_label;
  strip.colour = ui.theme.key;
  return strip;
}

/// A strip with its label and what the mouse does to it; true where the label was clicked.
bool MapTracks::show(const Ui& ui, const Scene& scene, const Strip& strip) {
  const bool vertical = strip.axis.vertical;
  ImGui::SetCursorScreenPos({strip.rect.x0, strip.rect.y0});
  const std::string label = vertical ? "Matrix/Row strip" : "Matrix/Key strip";
  ImGui::InvisibleButton(label.c_str(), {strip.rect.width(), strip.rect.height()});
  mark(ui, label);
  const bool hovered = ImGui::IsItemHovered();
  std::optional<int64_t> pointed;
  if (scene.readout) pointed = vertical ? scene.readout->point.query : scene.readout->point.key;
  if (hovered) pointed = token_at(strip.axis, vertical ? scene.geometry.rows : scene.geometry.cols);
  draw_strip(ui, scene, strip, pointed);
  const bool clicked = draw_label(ui, scene, strip);
  if (!pointed) return clicked;
  if (!readout_.empty()) readout_ += "   ";
  if (hovered) {
    readout_ += (vertical ? "q " : "k ") + token_text(strip.axis.tokens, *pointed) + "   ";
  }
  readout_ += value_text(scene, strip, *pointed);
  return clicked;
}

void MapTracks::draw(const Ui& ui, const Scene& scene, const ViewTransform& view,
                     const Areas& areas, PanelRequests& requests) {
  take(scene);
  readout_.clear();
  const TracksLook& look = scene.state.tracks;
  if (areas.has_rows && show(ui, scene, rows_strip(ui, scene, view, areas))) {
    requests.act(action::SetTracks{{next_track(look.rows), look.keys}});
  }
  if (areas.has_keys && show(ui, scene, keys_strip(ui, scene, view, areas))) {
    requests.act(action::SetTracks{{look.rows, KeyTrack::off}});
  }
}

}  // namespace attnscope
