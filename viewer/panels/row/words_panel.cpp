#include "viewer/panels/row/words_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr float kWordRow = 20;
/// Words that a low pane shows before it explains them.
constexpr float kLeastRows = 3;
/// Of the field beside the buttons; else it stands below them.
constexpr float kLeastFind = 56;
/// Below a line of the foot.
constexpr float kFootGap = 2;
/// As many as have room in a line.
constexpr int kFootDigits = 2;

/// Per cent of what is a part of 1, else the number.
std::string mass_text(double mass, bool share, int digits = 3) {
  if (std::isnan(mass)) return "\u2026";
  return share ? share_words(mass, digits) : number_words(mass, digits);
}

std::string word_name(const PromptWord& word) {
  if (word.text.empty()) {
    return fmt::format("{} {}", word.padding ? "padding" : "text", word.number);
  }
  return word.text;
}

/// The colour of what the film's words are: keys of columns, queries of rows.
ImU32 chosen_colour(const Ui& ui, const Scene& scene) {
  return film_of_columns(scene.state) ? ui.theme.key : ui.theme.query;
}

void set_look(const Scene& scene, PanelRequests& requests,
              const std::function<void(WordsLook&)>& change) {
  WordsLook look = scene.state.words;
  change(look);
  requests.act(action::SetWords{std::move(look)});
}

/// The meaning of the numbers.
std::string what_text(const WordsView& view) {
  if (view.of_query) {
    return view.reverse ? "weight of each word on " + view.query
                        : "weight of " + view.query + " on each word";
  }
  return view.rows > 0 ? fmt::format("mean over {} queries of the video", view.rows) : "";
}

std::string special_text(const WordsView& view) {
  const WordList& list = view.list;
  if (list.excluded > 0) return fmt::format("without {} special", list.excluded);
  return "special " + mass_text(list.special_mass, view.shares, kFootDigits);
}

/// The tooltip of the foot: each of its words at length.
std::string about_words(const WordsView& view, const MapSource& call) {
  const std::string domain = softmax_text(call);
  std::string text = what_text(view) + (domain.empty() ? "" : " \u00b7 " + domain);
  text += "\nwords: all that are no special token, added up";
  text += view.list.excluded > 0 ? "\nspecial tokens and padding are in no sum"
                                 : "\nspecial: special tokens and padding, added up";
  text += "\nbars from 0 to " + mass_text(view.list.largest, view.shares);
  if (view.of_query && view.rows > 0) text += "; the line in each: mean over the video";
  return text;
}

using Foot = WordsPanel::Foot;

float foot_height(const Ui& ui, const Foot& foot) {
  return (ui.fonts.secondary->FontSize + ui.px(kFootGap)) * static_cast<float>(foot.lines.size());
}

/// Gives the y below.
float draw_foot(const Ui& ui, float x, float y, float width, const Foot& foot) {
  const ScreenRect rect{x, y, x + width, y + foot_height(ui, foot)};
  for (const auto& each : foot.lines) {
    put_fitting(ui, ui.fonts.secondary, x, y, width, each.colour, each.text);
    y += ui.fonts.secondary->FontSize + ui.px(kFootGap);
  }
  ui.labels.add("Words/Foot", rect);
  const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) &&
                       ImGui::IsMouseHoveringRect({rect.x0, rect.y0}, {rect.x1, rect.y1});
  if (hovered && !foot.about.empty()) {
    tooltip(foot.about);
    ui.labels.write({foot.about, rect});
  }
  return y;
}

Foot foot_of(const Ui& ui, const Scene& scene) {
  const WordsView& view = *scene.words;
  const ImU32 quiet = ui.theme.secondary;
  if (!view.has_masses()) {
    const char* const why =
        scene.words_pending ? "waits for the row sums of all queries" : "pick or point at a token";
    return {{{quiet, why}}, ""};
  }
  const auto mass = [&](double of) { return mass_text(of, view.shares, kFootDigits); };
  Foot foot{{{quiet, "words " + mass(view.list.words_mass) + " \u00b7 " + special_text(view) +
                         " \u00b7 bars to " + mass(view.list.largest)}},
            about_words(view, scene.call)};
  const std::vector<int64_t>& chosen = scene.state.words.chosen;
  if (!chosen.empty()) {
    foot.lines.push_back({chosen_colour(ui, scene), chosen_text(view.prompt, chosen) + " " +
                                                        mass(view.list.chosen_mass) +
                                                        (chosen.size() > 1 ? " together" : "")});
  }
  return foot;
}

}  // namespace

void WordsPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests) {
  begin_pane(ui, "words", rect);
  draw_header(ui, rect, scene, requests);
  const WordsView& view = *scene.words;
  const ScreenRect below{rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 10),
                         rect.x1 - ui.px(12), rect.y1};
  if (!scene.words_problem.empty() && !view.has_masses()) {
    put_problem(ui, "Words", below, "The words' weights cannot be shown", scene.words_problem);
  } else if (!view.none.empty()) {
    put_wrapped(ui, ui.fonts.secondary, below.x0, below.y0, below.width(), ui.theme.secondary,
                view.none);
  } else {
    const float top = draw_controls(ui, rect, scene, requests);
    const Foot foot = foot_of(ui, scene);
    const float height = ui.px(12) + foot_height(ui, foot);
    // Of a low pane, the words come first: what is said of them stands at their end.
    const bool low = rect.y1 - height - top < ui.px(kLeastRows * kWordRow);
    const ScreenRect area{rect.x0, top + ui.px(6), rect.x1, rect.y1 - (low ? 0 : height)};
    if (area.height() >= 1) draw_list(ui, area, scene, low ? foot : Foot(), requests);
    if (!low) draw_foot(ui, below.x0, area.y1 + ui.px(6), below.width(), foot);
  }
  end_pane();
}

void WordsPanel::draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                             PanelRequests& requests) {
  const WordsView& view = *scene.words;
  std::string detail;
  if (view.none.empty()) {
    detail = view.of_query         ? view.query
             : view.rows > 0       ? "mean over the video"
             : view.reverse        ? "point at a key"
             : scene.words_pending ? "mean over the video, computing \u2026"
                                   : "point at a query";
  }
  const float clear =
      scene.state.words.chosen.empty() ? 0 : text_size(ui.fonts.secondary, "Clear").x + ui.px(24);
  // Means wait for the norms of all rows.
  const bool failed = !scene.words_problem.empty();
  const double progress =
      scene.words_pending && !failed ? std::max(0.0, scene.source.exact_progress) : -1;
  pane_header(ui, rect, {"Words", detail, ViewPane::words, progress, clear}, scene.state, requests);
  if (scene.state.words.chosen.empty()) return;
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({rect.x1 - clear, rect.y0 + ui.px(4)});
  if (tool_button(ui, "Words/Clear", "Clear", false, "the film of the query again (Esc)")) {
    set_look(scene, requests, [](WordsLook& to) { to.chosen.clear(); });
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

float WordsPanel::draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                PanelRequests& requests) {
  const WordsLook& look = scene.state.words;
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(3)));
  ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 6)});
  const int taken = segmented(ui, "Words", {"Prompt", "Mass"}, look.by_mass ? 1 : 0,
                              "in the order of the prompt, or the largest first");
  if (taken >= 0) set_look(scene, requests, [&](WordsLook& to) { to.by_mass = taken == 1; });
  const float end = rect.x1 - ui.px(12);
  const auto next = [&](float width) {
    ImGui::SameLine(0, ui.px(8));
    if (end - ImGui::GetCursorScreenPos().x >= width) return;
    ImGui::NewLine();
    ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), ImGui::GetCursorScreenPos().y});
  };
  next(text_size(ui.fonts.secondary, "Special").x + ui.px(16));
  if (tool_button(ui, "Words/Special", "Special", look.special,
                  "special tokens and padding too; without them they count in no sum")) {
    set_look(scene, requests, [](WordsLook& to) { to.special = !to.special; });
  }
  next(ui.px(kLeastFind));
  if (!typing_) {
    const size_t length = std::min(look.filter.size(), filter_.size() - 1);
    std::memcpy(filter_.data(), look.filter.data(), length);
    filter_[length] = '\0';
  }
  ImGui::SetNextItemWidth(std::max(1.0f, end - ImGui::GetCursorScreenPos().x));
  const bool changed = ImGui::InputTextWithHint("##filter", "find", filter_.data(), filter_.size());
  typing_ = ImGui::IsItemActive();
  mark(ui, "Words/Find");
  if (changed) set_look(scene, requests, [&](WordsLook& to) { to.filter = filter_.data(); });
  const float bottom = ImGui::GetItemRectMax().y;
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return bottom;
}

/// The words, and below them what is said of them where that has no room of its own.
void WordsPanel::draw_list(const Ui& ui, const ScreenRect& area, const Scene& scene,
                           const Foot& foot, PanelRequests& requests) {
  const WordList& list = scene.words->list;
  ImGui::SetCursorScreenPos({area.x0, area.y0});
  ImGui::BeginChild("list", {area.width(), area.height()}, false, ImGuiWindowFlags_NoNav);
  ImGui::PushClipRect({area.x0, area.y0}, {area.x1, area.y1}, true);
  const float row = ui.px(kWordRow);
  const float scroll = ImGui::GetStyle().ScrollbarSize;
  const float left = area.x0 + ui.px(12), right = area.x1 - scroll - ui.px(4);
  const float digits = text_size(ui.fonts.mono, "0.00000 %").x;
  const float name = std::min((right - left - digits) * 0.5f, ui.px(150));
  const Columns at{left, left + name + ui.px(8) + digits, left + name + digits + ui.px(16), right};
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  float y = origin.y;
  const auto rows = [&](const std::vector<WordRow>& of) {
    for (const WordRow& word : of) {
      if (y + row > area.y0 && y < area.y1) {
        draw_row(ui, {area.x0, y, area.x1 - scroll, y + row}, at, word, scene, requests);
      }
      y += row;
    }
  };
  rows(list.words);
  if (!list.special.empty()) {
    const float line = std::round(y + row / 2);
    const std::string caption = "special tokens and padding";
    const float end = left + text_size(ui.fonts.secondary, caption).x + ui.px(8);
    put_text(ui, ui.fonts.secondary, left, y + ui.px(2), ui.theme.secondary, caption);
    if (end < right) {
      ImGui::GetWindowDrawList()->AddRectFilled({end, line}, {right, line + ui.px(1)},
                                                ui.theme.border);
    }
    y += row;
    rows(list.special);
  }
  if (list.words.empty() && list.special.empty()) {
    put_text(ui, ui.fonts.secondary, left, y, ui.theme.secondary, "no word passes the filter");
    y += row;
  }
  if (!foot.lines.empty()) y = draw_foot(ui, left, y + ui.px(6), right - left, foot);
  ImGui::PopClipRect();
  ImGui::SetCursorScreenPos({origin.x, origin.y});
  ImGui::Dummy({1, y - origin.y});
  ImGui::EndChild();
}

void WordsPanel::draw_row(const Ui& ui, const ScreenRect& row, const Columns& at,
                          const WordRow& word, const Scene& scene, PanelRequests& requests) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const WordsView& view = *scene.words;
  ImGui::SetCursorScreenPos({row.x0, row.y0});
  ImGui::PushID(static_cast<int>(word.word.number));
  const bool clicked = ImGui::InvisibleButton("word", {row.width(), row.height()});
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered();
  mark(ui, fmt::format("Words/{}", word.word.number));
  if (word.chosen || hovered) {
    draw.AddRectFilled({row.x0, row.y0}, {row.x1, row.y1},
                       word.chosen ? ui.theme.pressed : ui.theme.hovered);
  }
  if (word.chosen) {
    draw.AddRectFilled({row.x0, row.y0}, {row.x0 + ui.px(3), row.y1}, chosen_colour(ui, scene));
  }
  ImFont* const small = ui.fonts.secondary;
  const float text = row.y0 + ui.px(2);
  const float digits = text_size(ui.fonts.mono, "0.00000 %").x;
  const std::string name = word_name(word.word);
  put_fitting(ui, small, at.name, text, at.number - digits - ui.px(8) - at.name,
              word.word.special ? ui.theme.secondary : ui.theme.text, name);
  put_text(ui, ui.fonts.mono, at.number, text, ui.theme.secondary,
           word.masked ? "masked" : mass_text(word.mass, view.shares), Align::right);
  const float room = at.end - at.bar;
  const double largest = view.list.largest;
  if (room > 0 && largest > 0) {
    const auto x = [&](double mass) {
      return at.bar + room * static_cast<float>(std::clamp(mass / largest, 0.0, 1.0));
    };
    const float top = row.y0 + ui.px(5), bottom = row.y1 - ui.px(5);
    if (!std::isnan(word.mass) && word.mass > 0) {
      draw.AddRectFilled({at.bar, top}, {std::max(x(word.mass), at.bar + 1), bottom},
                         word.chosen         ? chosen_colour(ui, scene)
                         : word.word.special ? faded(ui.theme.secondary, 0.5f)
                                             : ui.theme.secondary);
    }
    if (!std::isnan(word.usual)) {
      const float tick = std::round(x(word.usual));
      draw.AddRectFilled({tick, row.y0 + ui.px(3)}, {tick + ui.px(2), row.y1 - ui.px(3)},
                         ui.theme.text);
    }
  }
  if (hovered) {
    std::string tip = fmt::format("token {} of the text", word.word.number);
    if (!std::isnan(word.usual) && view.of_query) {
      tip += "\nmean over the video: " + mass_text(word.usual, view.shares);
    }
    tip += "\nclick: its film \u00b7 Ctrl+click: one more \u00b7 Shift+click: a phrase";
    tooltip(tip);
  }
  if (clicked) click(word, scene, requests);
}

void WordsPanel::click(const WordRow& word, const Scene& scene, PanelRequests& requests) {
  const int64_t number = word.word.number;
  const ImGuiIO& io = ImGui::GetIO();
  const int64_t from = io.KeyShift ? anchor_.value_or(number) : number;
  set_look(scene, requests, [&](WordsLook& look) {
    const std::vector<int64_t> before = std::exchange(look.chosen, {});
    if (io.KeyCtrl) {
      look.chosen = before;
      if (std::erase(look.chosen, number) == 0) look.chosen.push_back(number);
    } else if (io.KeyShift) {
      for (int64_t n = std::min(from, number); n <= std::max(from, number); ++n) {
        const PromptWord& each = scene.words->prompt[static_cast<size_t>(n)];
        if (!each.special || look.special) look.chosen.push_back(n);
      }
    } else if (before != std::vector<int64_t>{number}) {
      look.chosen = {number};
    }
  });
  if (!io.KeyShift) anchor_ = number;
}

}  // namespace attnscope
