#include "viewer/panels/atlas_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr int64_t kPaceHeads = 2;  ///< from so many on the time that is left can be told
constexpr double kMinute = 60;
constexpr float kLeastArea = 14;  ///< height that cells are drawn in
constexpr float kLeastField = 80, kMostField = 320;

const char* const kThumbnails = "thumbnails";
const char* const kLayers = "layers";

std::vector<std::string> with_first(const char* first, std::vector<std::string> names) {
  names.insert(names.begin(), first);
  return names;
}

int place_of(const std::vector<std::string>& names, const std::string& name) {
  if (name.empty()) return 0;
  return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// A number of heads in words: "keys for 90 %".
std::string metric_words(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return name.starts_with("keys_for_") ? words + " %" : words;
}

std::vector<std::string> in_words(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(metric_words(name));
  return words;
}

}  // namespace

void AtlasPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests) {
  begin_pane(ui, "atlas", rect);
  seen_.clear();
  drawn_ = true;
  over_ = rect.contains(ImGui::GetIO().MousePos.x, ImGui::GetIO().MousePos.y);
  maximised_ = scene.state.maximised == ViewPane::atlas;
  if (ImGui::IsMouseClicked(0) || ImGui::IsMouseClicked(1)) focused_ = over_;
  draw_header(ui, rect, scene, requests);
  const float top = draw_controls(ui, rect, scene, requests);
  ScreenRect area{rect.x0 + ui.px(4), top + ui.px(4), rect.x1 - ui.px(4), rect.y1};
  area.y1 -= legend_height(ui, area, scene);
  const AtlasCells& atlas = *scene.atlas;
  if (!atlas.problem.empty()) {
    put_problem(ui, "Atlas", area, "The filter cannot be used", atlas.problem);
  } else if (!scene.tiles.offers(SketchRequest{})) {
    put_problem(ui, "Atlas", area, "An export has no heads at a glance",
                "they are computed from Q and K: open the capture");
  } else if (!scene.call.weights) {
    put_problem(ui, "Atlas", area, "Weights of either sign",
                "heads at a glance are shares of rows, which these do not have");
  } else if (atlas.shown == 0) {
    const bool waits = atlas.sketched < atlas.heads;
    put_text(ui, ui.fonts.secondary, area.x0 + ui.px(8), area.y0 + ui.px(8), ui.theme.secondary,
             waits ? "no head passes the filter yet" : "no head passes the filter");
  } else if (area.height() > ui.px(kLeastArea)) {
    draw_cells(ui, area, scene, requests);
    draw_legend_of(ui, {rect.x0 + ui.px(12), area.y1 + ui.px(8), rect.x1 - ui.px(12), rect.y1},
                   scene, requests);
  }
  keys_.clear();
  end_pane();
}

/// " · 4 min left" of the heads that become exact.
std::string AtlasPanel::pace_text(const Scene& scene) {
  const AtlasCells& atlas = *scene.atlas;
  if (!scene.state.atlas.exact || atlas.exact == atlas.heads) {
    pace_.reset();
    return "";
  }
  if (!pace_ || atlas.exact < pace_->exact) pace_ = {scene.now, atlas.exact};
  const int64_t done = atlas.exact - pace_->exact;
  if (done < kPaceHeads) return "";
  const double each = (scene.now - pace_->since) / static_cast<double>(done);
  const double left = each * static_cast<double>(atlas.heads - atlas.exact);
  return left < kMinute ? fmt::format(" \u00b7 {:.0f} s left", std::ceil(left))
                        : fmt::format(" \u00b7 {:.0f} min left", std::ceil(left / kMinute));
}

void AtlasPanel::draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                             PanelRequests& requests) {
  const AtlasCells& atlas = *scene.atlas;
  const bool has_step = !scene.call.place.unrecorded.step;
  std::string detail = has_step ? fmt::format("step {} \u00b7 ", scene.call.step) : "";
  detail += (atlas.shown < atlas.heads ? fmt::format("{} of {} heads", atlas.shown, atlas.heads)
                                       : fmt::format("{} heads", atlas.heads));
  const bool exact = atlas.exact == atlas.heads;
  detail += exact ? " \u00b7 exact" : fmt::format(" \u00b7 from {} rows", SketchCells::kMostCells);
  if (!exact && atlas.exact > 0) detail += fmt::format(", {} exact", atlas.exact);
  detail += pace_text(scene);
  const int64_t wanted = scene.state.atlas.exact ? atlas.exact : atlas.sketched;
  const bool busy =
      scene.tiles.offers(SketchRequest{}) && scene.call.weights && wanted < atlas.heads;
  const double progress =
      busy ? static_cast<double>(wanted) / static_cast<double>(atlas.heads) : -1;
  const float taken = selection_width(ui, rect, scene);
  pane_header(ui, rect, {"Heads", detail, ViewPane::atlas, progress, taken}, scene.state, requests);
  if (taken > 0) draw_selection_buttons(ui, rect, scene, requests);
}

float AtlasPanel::draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                PanelRequests& requests) {
  const AtlasLook& look = scene.state.atlas;
  ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 6)});
  const auto set = [&](const std::function<void(AtlasLook&)>& change) {
    AtlasLook changed = look;
    change(changed);
    requests.act(action::SetAtlas{changed});
  };
  const std::vector<std::string> cells = with_first(kThumbnails, atlas_contents());
  int taken = choice(ui, "Atlas", "Cells", in_words(cells), place_of(cells, look.metric),
                     choice_width(ui, in_words(cells)));
  if (taken >= 0) {
    set([&](AtlasLook& to) { to.metric = taken == 0 ? "" : cells[static_cast<size_t>(taken)]; });
  }
  const auto next = [&](float width) {
    ImGui::SameLine(0, ui.px(8));
    if (ImGui::GetCursorScreenPos().x + ui.px(width) <= rect.x1 - ui.px(4)) return;
    ImGui::NewLine();
    ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), ImGui::GetCursorScreenPos().y});
  };
  const std::vector<std::string> orders = with_first(kLayers, atlas_metrics());
  const float sorts = choice_width(ui, in_words(orders));
  next(sorts + text_size(ui.fonts.secondary, "Sort").x / ui.scale + 6);
  taken = choice(ui, "Atlas", "Sort", in_words(orders), place_of(orders, look.sort), sorts);
  if (taken >= 0) {
    set([&](AtlasLook& to) { to.sort = taken == 0 ? "" : orders[static_cast<size_t>(taken)]; });
  }
  next(60);
  const bool runs = look.exact && scene.atlas->exact < scene.atlas->heads;
  if (tool_button(ui, "Atlas/Exact", runs ? "Stop" : "Exact", look.exact,
                  runs ? "leave those that are not exact yet as they are sampled"
                       : "from all rows of every head")) {
    set([&](AtlasLook& to) { to.exact = !to.exact; });
  }
  if (!look.filter.empty()) {
    next(28);
    if (tool_button(ui, "Atlas/Filter", "\u00d7", true, "show all heads again")) {
      set([](AtlasLook& to) { to.filter.clear(); });
    }
  }
  next(kLeastField);
  draw_filter(ui, rect.x1 - ui.px(12) - ImGui::GetCursorScreenPos().x, look, requests);
  return ImGui::GetItemRectMax().y;
}

/// Which heads are shown; Enter takes what was typed.
void AtlasPanel::draw_filter(const Ui& ui, float width, const AtlasLook& look,
                             PanelRequests& requests) {
  if (!typing_) {
    filter_.fill(0);
    std::copy_n(look.filter.begin(), std::min(look.filter.size(), filter_.size() - 1),
                filter_.begin());
  }
  const float field = std::max(ui.px(24), std::min(width, ui.px(kMostField)));
  const bool entered =
      text_field(ui, "Atlas/Find", "filter: layers=0-7 temporal entropy<5", field, filter_.data(),
                 filter_.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  typing_ = ImGui::IsItemActive();
  if (!entered || look.filter == filter_.data()) return;
  AtlasLook changed = look;
  changed.filter = filter_.data();
  requests.act(action::SetAtlas{changed});
}

}  // namespace attnscope
