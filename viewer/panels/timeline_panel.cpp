#include "viewer/panels/timeline_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/heads/head_sketch.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr float kRow = 18;          ///< of a branch
constexpr float kStepNumbers = 18;  ///< below the rows: the steps' numbers
constexpr float kPlot = 56;         ///< of the strip's curve
constexpr float kLayerNames = 16;   ///< below a curve over layers
constexpr float kStripAir = 6;
constexpr std::array kSpeeds{0.5, 1.0, 2.0, 5.0, 10.0, 30.0};
const char* const kNoCurve = "none";

std::string speed_text(double speed) { return fmt::format("{:g}/s", speed); }

/// The look with a member of it set.
template <typename Value>
void set_look(const Scene& scene, PanelRequests& requests, Value TimelineLook::*member,
              const std::type_identity_t<Value>& value) {
  TimelineLook look = scene.state.timeline;
  look.*member = value;
  requests.act(action::SetTimeline{look});
}

/// Where points of a track stand: in equal steps, with a gap before each chunk.
class Places {
 public:
  Places(const Timeline& timeline, float x0, float x1) {
    float all = 0;
    for (size_t i = 0; i < timeline.points.size(); ++i) {
      const bool chunk = i > 0 && timeline.points[i].chunk != timeline.points[i - 1].chunk;
      if (i > 0) all += chunk ? 2.0f : 1.0f;
      at_.push_back(all);
    }
    for (float& x : at_) x = all == 0 ? (x0 + x1) / 2 : x0 + (x1 - x0) * x / all;
  }
  float of(size_t point) const { return at_[point]; }
  size_t nearest(float x) const {
    const auto past = std::lower_bound(at_.begin(), at_.end(), x);
    if (past == at_.begin()) return 0;
    const auto before = static_cast<size_t>(past - at_.begin()) - 1;
    return past != at_.end() && *past - x < x - at_[before] ? before + 1 : before;
  }
  /// From the first point to the second.
  float step() const { return at_.size() > 1 ? at_[1] - at_[0] : 0; }

 private:
  std::vector<float> at_;
};

std::string tick_label(const Timeline& timeline, size_t row, size_t point) {
  const TimelinePoint& at = timeline.points[point];
  std::string label = "Timeline/";
  if (timeline.rows.size() > 1) label += one_line(timeline.rows[row].branch) + "/";
  if (at.chunk != kNoChunk) label += fmt::format("C{}/", at.chunk);
  return label + fmt::format("S{}", at.step);
}

constexpr float kDot = 3;
/// Dots are left out where points are nearer to each other.
constexpr float kDotsApart = 7;

std::string curve_number(double number) {
  return std::isnan(number) ? "\u2013" : number_words(number);
}

/// "from 64 rows, 3 of 50 there": how far a curve is to be believed.
std::string curve_state(const HeadCurve& curve) {
  if (curve.heads == 0) return "not recorded";
  std::string text = curve.known > 0 && curve.exact == curve.known
                         ? "exact"
                         : fmt::format("from {} rows", SketchCells::kMostCells);
  if (curve.exact > 0 && curve.exact < curve.known) text += fmt::format(", {} exact", curve.exact);
  if (curve.known < curve.heads) text += fmt::format(", {} of {} there", curve.known, curve.heads);
  return text;
}

/// Draws a curve into `plot`, its ends' numbers to the left of it: dots of numbers from all rows
/// are filled, of sampled ones hollow; gaps where there is none. `place` is the x of a point.
void draw_curve(const Ui& ui, const ScreenRect& plot, const HeadCurve& curve,
                const std::function<float(size_t)>& place) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddLine({plot.x0, plot.y1}, {plot.x1, plot.y1}, ui.theme.border);
  const float here = std::round(place(curve.here));
  draw.AddRectFilled({here, plot.y0}, {here + ui.px(1), plot.y1}, faded(ui.theme.query, 0.5f));
  if (!curve.range) return;
  const double low = curve.range->first, high = curve.range->second;
  const double room = high > low ? high - low : std::max(1e-9, std::abs(high)) * 0.5;
  const float air = ui.px(5);
  const auto y_of = [&](double number) {
    const double share = high > low ? (number - low) / room : 0.5;
    return plot.y1 - air - (plot.height() - 2 * air) * static_cast<float>(share);
  };
  ImFont* const digits = ui.fonts.mono;
  const auto end = [&](double number) {
    put_text(ui, digits, plot.x0 - ui.px(6), y_of(number) - digits->FontSize / 2,
             ui.theme.secondary, curve_number(number), Align::right);
  };
  end(high);
  if (high > low && plot.height() >= 2.5f * digits->FontSize) end(low);
  const float apart = curve.points.size() > 1 ? std::abs(place(1) - place(0)) : ui.px(kDotsApart);
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const HeadCurve::Point& point = curve.points[i];
    if (std::isnan(point.number)) continue;
    const ImVec2 at{place(i), y_of(point.number)};
    const bool before = i > 0 && !std::isnan(curve.points[i - 1].number);
    if (before) {
      draw.AddLine({place(i - 1), y_of(curve.points[i - 1].number)}, at, ui.theme.text,
                   ui.px(1.5f));
    }
  }
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const HeadCurve::Point& point = curve.points[i];
    const bool alone = apart >= ui.px(kDotsApart) || i == curve.here;
    if (std::isnan(point.number) || !alone) continue;
    const ImVec2 at{place(i), y_of(point.number)};
    const ImU32 colour = i == curve.here ? ui.theme.query : ui.theme.text;
    draw.AddCircleFilled(at, ui.px(kDot), point.exact ? colour : ui.theme.pane);
    draw.AddCircle(at, ui.px(kDot), colour, 0, ui.px(1.5f));
  }
}

/// The widest branch, where there are several.
float label_width(const Ui& ui, const Timeline& timeline) {
  if (timeline.rows.size() < 2) return 0;
  float width = 0;
  for (const TimelineRow& row : timeline.rows) {
    width = std::max(width, text_size(ui.fonts.secondary, one_line(row.branch)).x);
  }
  return std::min(width, ui.px(90)) + ui.px(10);
}

/// One moment needs no track of its own.
bool has_rows(const Timeline& timeline) {
  return timeline.points.size() > 1 || timeline.rows.size() > 1;
}

bool is_over_layers(const Scene& scene) {
  return scene.curve != nullptr && scene.state.timeline.over == CurveAxis::layers;
}

}  // namespace

bool TimelinePanel::is_seen(const Scene& scene) {
  const bool several = scene.timeline->points.size() > 1;
  return scene.state.timeline.shown && (several || scene.curve != nullptr);
}

float TimelinePanel::strip_height(const Ui& ui, const Scene& scene) {
  const ViewState& state = scene.state;
  if (!is_seen(scene) || state.maximised == ViewPane::timeline) return 0;
  const Timeline& timeline = *scene.timeline;
  float height = 2 * kStripAir;
  if (has_rows(timeline)) height += kRow * static_cast<float>(timeline.rows.size()) + kStepNumbers;
  if (scene.curve != nullptr) height += kPlot + (is_over_layers(scene) ? kLayerNames : 0);
  return std::round(ui.px(height));
}

void TimelinePanel::draw_play(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const TimelineLook& look = scene.state.timeline;
  if (tool_button(ui, "Timeline/Play", scene.playing ? "Stop" : "Play", scene.playing,
                  "go through the steps (Shift+Space)")) {
    requests.play = !scene.playing;
  }
  ImGui::SameLine(0, ui.px(4));
  if (tool_button(ui, "Timeline/Loop", "Loop", look.loop, "begin again after the last step")) {
    set_look(scene, requests, &TimelineLook::loop, !look.loop);
  }
  if (scene.follows) {
    ImGui::SameLine(0, ui.px(4));
    if (tool_button(ui, "Timeline/Follow", "Follow", look.follow,
                    "go to steps as they are added")) {
      set_look(scene, requests, &TimelineLook::follow, !look.follow);
    }
  }
  ImGui::SameLine(0, ui.px(10));
  std::vector<std::string> words;
  int chosen = -1;
  for (const double speed : kSpeeds) {
    if (speed == look.speed) chosen = static_cast<int>(words.size());
    words.push_back(speed_text(speed));
  }
  if (chosen < 0) {
    chosen = static_cast<int>(words.size());
    words.push_back(speed_text(look.speed));
  }
  const int taken = choice(ui, "Timeline", "Speed", words, chosen, 76);
  if (taken >= 0 && static_cast<size_t>(taken) < kSpeeds.size()) {
    set_look(scene, requests, &TimelineLook::speed, kSpeeds[static_cast<size_t>(taken)]);
  }
}

void TimelinePanel::draw_curve_choice(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const TimelineLook& look = scene.state.timeline;
  std::vector<std::string> names = atlas_metrics();
  names.insert(names.begin(), kNoCurve);
  const auto at = std::find(names.begin(), names.end(), look.metric);
  const int chosen =
      look.metric.empty() || at == names.end() ? 0 : static_cast<int>(at - names.begin());
  const int taken = choice(ui, "Timeline", "Curve", names, chosen, 140);
  if (taken >= 0) {
    set_look(scene, requests, &TimelineLook::metric,
             taken == 0 ? "" : names[static_cast<size_t>(taken)]);
  }
  if (look.metric.empty()) return;
  ImGui::SameLine(0, ui.px(8));
  const int axis = segmented(ui, "Timeline", {"Steps", "Layers"}, static_cast<int>(look.over),
                             "what the curve goes over");
  if (axis >= 0) set_look(scene, requests, &TimelineLook::over, static_cast<CurveAxis>(axis));
}

float TimelinePanel::draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                   PanelRequests& requests) {
  const bool two_lines = scene.curve != nullptr;
  const float line = ImGui::GetFrameHeight();
  const float gap = ui.px(6);
  const float whole = two_lines ? 2 * line + gap : line;
  float y = std::round(rect.y0 + (std::min(rect.height(), ui.px(120)) - whole) / 2);
  const float x = rect.x0 + ui.px(12);
  ImGui::SetCursorScreenPos({x, y});
  float end = x;
  if (scene.timeline->points.size() > 1) {
    draw_play(ui, scene, requests);
    end = item_rect().x1;
    if (two_lines) {
      y += line + gap;
      ImGui::SetCursorScreenPos({x, y});
    } else {
      ImGui::SameLine(0, ui.px(14));
    }
  }
  // A narrow window has the choice of curves where one is shown.
  if (!two_lines && rect.width() < ui.px(900)) return end;
  draw_curve_choice(ui, scene, requests);
  end = std::max(end, item_rect().x1);
  if (two_lines) {
    const std::string state = scene.tiles.offers(SketchRequest{})
                                  ? curve_state(*scene.curve)
                                  : "an export has no numbers of heads";
    put_fitting(ui, ui.fonts.secondary, x, y + line + ui.px(4), std::max(end - x, ui.px(240)),
                ui.theme.secondary, state);
  }
  return end;
}

void TimelinePanel::draw_row(const Ui& ui, const ScreenRect& track, float y, size_t row,
                             const Scene& scene) const {
  const Timeline& timeline = *scene.timeline;
  const Places places(timeline, track.x0, track.x1);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float middle = std::round(y + ui.px(kRow) / 2);
  draw.AddRectFilled({track.x0, middle}, {track.x1, middle + ui.px(1)}, ui.theme.border);
  if (timeline.rows.size() > 1) {
    put_fitting(ui, ui.fonts.secondary, track.x0 - ui.px(10), y + ui.px(2), ui.px(90),
                row == timeline.row ? ui.theme.text : ui.theme.secondary,
                one_line(timeline.rows[row].branch), Align::right);
  }
  const float half = std::clamp(places.step() / 4, ui.px(0.5f), ui.px(2));
  for (size_t i = 0; i < timeline.points.size(); ++i) {
    const TimelineTick& tick = timeline.rows[row].ticks[i];
    const float x = std::round(places.of(i));
    const bool here = row == timeline.row && i == timeline.point;
    ui.labels.add(tick_label(timeline, row, i),
                  {x - ui.px(3), middle - ui.px(6), x + ui.px(4), middle + ui.px(7)});
    if (here) {
      draw.AddRectFilled({x - ui.px(3), middle - ui.px(7)}, {x + ui.px(4), middle + ui.px(8)},
                         ui.theme.query, ui.px(2));
    } else if (tick.head) {
      const float tall = tick.same ? ui.px(5) : ui.px(2);
      draw.AddRectFilled({x - half, middle - tall}, {x + half + ui.px(1), middle + tall + ui.px(1)},
                         tick.same ? ui.theme.secondary : faded(ui.theme.secondary, 0.45f));
    }
  }
}

/// The numbers of the steps, as many as have room, the present one before all others; and where
/// chunks begin.
void TimelinePanel::draw_names(const Ui& ui, const ScreenRect& track, float y,
                               const Scene& scene) const {
  const Timeline& timeline = *scene.timeline;
  const Places places(timeline, track.x0, track.x1);
  ImFont* const font = ui.fonts.secondary;
  const bool chunks = timeline.has_chunks();
  const auto name = [&](size_t i) {
    const TimelinePoint& at = timeline.points[i];
    const bool first = i == 0 || timeline.points[i - 1].chunk != at.chunk;
    if (i == timeline.point) return timeline.text(i);
    return chunks && first ? fmt::format("chunk {}", at.chunk) : std::to_string(at.step);
  };
  const float gap = ui.px(8);
  const auto box = [&](size_t i) {
    const float width = text_size(font, name(i)).x;
    const float x = std::clamp(places.of(i) - width / 2, track.x0 - ui.px(4),
                               std::max(track.x0, track.x1 + ui.px(8) - width));
    return std::pair(x, x + width);
  };
  const auto [here0, here1] = box(timeline.point);
  float free = track.x0 - gap;
  for (size_t i = 0; i < timeline.points.size(); ++i) {
    const auto [x0, x1] = box(i);
    const bool here = i == timeline.point;
    if (!here && (x0 < free || (x1 + gap > here0 && x0 - gap < here1))) continue;
    put_text(ui, font, x0, y, here ? ui.theme.text : ui.theme.secondary, name(i));
    free = x1 + gap;
  }
}

void TimelinePanel::take_mouse(const Ui& ui, const ScreenRect& track, const ScreenRect& rows,
                               const Scene& scene, PanelRequests& requests) {
  const Timeline& timeline = *scene.timeline;
  ImGui::SetCursorScreenPos({rows.x0, rows.y0});
  ImGui::InvisibleButton("track", {rows.width(), rows.height()});
  mark(ui, "Timeline/Track");
  const bool held = ImGui::IsItemActive();
  if (!held && !ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const Places places(timeline, track.x0, track.x1);
  const size_t point = places.nearest(mouse.x);
  const auto last = static_cast<float>(timeline.rows.size() - 1);
  const float line = std::floor((mouse.y - rows.y0 - ui.px(kStripAir)) / ui.px(kRow));
  const auto row = static_cast<size_t>(std::clamp(line, 0.0f, last));
  const TimelineTick& tick = timeline.rows[row].ticks[point];
  if (held && tick.head && *tick.head != scene.locked) requests.act(action::Scrub{*tick.head});
  if (held) return;
  std::string text = timeline.text(point) + " \u00b7 " + one_line(timeline.rows[row].branch);
  if (!tick.head) text += "\nnot recorded";
  if (tick.head && !tick.same) text += "\n" + scene.picker.title(*tick.head);
  if (tick.same && scene.curve != nullptr && !is_over_layers(scene) && row == timeline.row) {
    const HeadCurve::Point& at = scene.curve->points[point];
    const std::string number = at.known ? curve_number(at.number) : "not there yet";
    text +=
        "\n" + scene.state.timeline.metric + " " + number + (at.known && at.exact ? ", exact" : "");
  }
  tooltip(text);
}

void TimelinePanel::draw_track(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                               PanelRequests& requests) {
  const Timeline& timeline = *scene.timeline;
  const float left =
      std::max(label_width(ui, timeline), scene.curve != nullptr ? ui.px(56) : ui.px(8));
  const ScreenRect track{rect.x0 + left, rect.y0, rect.x1 - ui.px(16), rect.y1};
  if (track.width() < ui.px(40)) return;
  const float rows_height = ui.px(kRow * static_cast<float>(timeline.rows.size()));
  const bool rows = has_rows(timeline);
  const float rows_top =
      rows ? rect.y1 - ui.px(kStepNumbers) - rows_height : rect.y1 + ui.px(kStripAir);
  if (scene.curve != nullptr) {
    const bool layers = is_over_layers(scene);
    ScreenRect plot{track.x0, rect.y0, track.x1,
                    rows_top - ui.px(kStripAir) - (layers ? ui.px(kLayerNames) : 0)};
    draw_curve_of(ui, plot, scene, requests);
  }
  if (!rows) return;
  for (size_t row = 0; row < timeline.rows.size(); ++row) {
    draw_row(ui, track, rows_top + ui.px(kRow) * static_cast<float>(row), row, scene);
  }
  draw_names(ui, track, rect.y1 - ui.px(kStepNumbers - 1), scene);
  take_mouse(ui, track,
             {track.x0 - ui.px(8), rows_top - ui.px(kStripAir), track.x1 + ui.px(8), rect.y1},
             scene, requests);
}

/// The curve, over the track's own steps or over layers with names of their own; a click on a point
/// goes to its head.
void TimelinePanel::draw_curve_of(const Ui& ui, const ScreenRect& plot, const Scene& scene,
                                  PanelRequests& requests) {
  const HeadCurve& curve = *scene.curve;
  const bool layers = is_over_layers(scene);
  const Places steps(*scene.timeline, plot.x0, plot.x1);
  const auto place = [&](size_t i) {
    if (!layers) return steps.of(i);
    if (curve.points.size() < 2) return (plot.x0 + plot.x1) / 2;
    return plot.x0 +
           plot.width() * static_cast<float>(i) / static_cast<float>(curve.points.size() - 1);
  };
  draw_curve(ui, plot, curve, place);
  ImFont* const font = ui.fonts.secondary;
  float free = plot.x0 - ui.px(20);
  for (size_t i = 0; layers && i < curve.points.size(); ++i) {
    const std::string name = (i == 0 ? "layer " : "") + curve.points[i].name;
    const float width = text_size(font, name).x;
    const float x =
        std::clamp(place(i) - width / 2, plot.x0 - ui.px(4), plot.x1 + ui.px(8) - width);
    if (x < free) continue;
    put_text(ui, font, x, plot.y1 + ui.px(1), i == curve.here ? ui.theme.text : ui.theme.secondary,
             name);
    free = x + width + ui.px(8);
  }
  ImGui::SetCursorScreenPos({plot.x0 - ui.px(8), plot.y0});
  const bool clicked =
      ImGui::InvisibleButton("curve", {plot.width() + ui.px(16), std::max(1.0f, plot.height())});
  mark(ui, "Timeline/Plot");
  if (!ImGui::IsItemHovered() || curve.points.empty()) return;
  size_t nearest = 0;
  const float mouse = ImGui::GetIO().MousePos.x;
  for (size_t i = 1; i < curve.points.size(); ++i) {
    if (std::abs(place(i) - mouse) < std::abs(place(nearest) - mouse)) nearest = i;
  }
  const HeadCurve::Point& point = curve.points[nearest];
  std::string text = (layers ? "layer " : "step ") + point.name;
  const std::string problem = point.head ? scene.tiles.problem(SketchRequest{*point.head}) : "";
  text += "\n" + scene.state.timeline.metric + " ";
  text += !point.head        ? "not recorded"
          : !problem.empty() ? "cannot be computed: " + one_line(problem)
          : point.known      ? curve_number(point.number) + (point.exact ? ", exact" : ", sampled")
                             : "not there yet";
  tooltip(text);
  if (clicked && point.head) requests.act(action::SelectHead{*point.head});
}

void TimelinePanel::draw_strip(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                               PanelRequests& requests) {
  begin_pane(ui, "timeline", rect);
  const float end = draw_controls(ui, rect, scene, requests);
  draw_track(ui, {end + ui.px(20), rect.y0 + ui.px(kStripAir), rect.x1, rect.y1 - ui.px(kStripAir)},
             scene, requests);
  end_pane();
}

void TimelinePanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                         PanelRequests& requests) {
  begin_pane(ui, "timeline", rect);
  const bool waits = scene.curve != nullptr && scene.tiles.offers(SketchRequest{}) &&
                     scene.curve->known < scene.curve->heads;
  pane_header(
      ui, rect,
      {"Steps", scene.picker.title(scene.state.head), ViewPane::timeline, waits ? 1.0 : -1.0},
      scene.state, requests);
  const ScreenRect inner{rect.x0, rect.y0 + ui.px(kHeaderHeight + kStripAir), rect.x1,
                         rect.y1 - ui.px(kStripAir)};
  const float end = draw_controls(ui, inner, scene, requests);
  draw_track(ui, {end + ui.px(20), inner.y0 + ui.px(8), rect.x1, inner.y1}, scene, requests);
  end_pane();
}

}  // namespace attnscope
