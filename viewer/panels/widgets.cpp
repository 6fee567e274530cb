#include "viewer/panels/widgets.h"

#include <algorithm>
#include <cmath>

#include "viewer/commands/list_keys.h"

namespace attnscope {

ScreenRect item_rect() {
  const ImVec2 low = ImGui::GetItemRectMin();
  const ImVec2 high = ImGui::GetItemRectMax();
  return {low.x, low.y, high.x, high.y};
}

void mark(const Ui& ui, const std::string& label) { ui.labels.add(label, item_rect()); }

ImVec2 text_size(ImFont* font, const std::string& text) {
  return font->CalcTextSizeA(font->FontSize, 1e9f, 0, text.data(), text.data() + text.size());
}

namespace {

/// `text` cut with … so that it is at most `width` wide. What is cut is whole beside the mouse:
/// this is for texts that see to that.
std::string fit_text(ImFont* font, const std::string& text, float width) {
  if (text_size(font, text).x <= width) return text;
  std::string cut = text;
  while (!cut.empty()) {
    // Not within a character of several bytes.
    do cut.pop_back();
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xc0) == 0x80);
    if (!cut.empty() && static_cast<unsigned char>(cut.back()) >= 0xc0) cut.pop_back();
    if (text_size(font, cut + "\u2026").x <= width) break;
  }
  if (cut.empty() && text_size(font, "\u2026").x > width) return "";
  return cut + "\u2026";
}

/// The whole of a text that was cut, beside the mouse on it. A field that has the keys is no reason
/// against it, a drag is.
void tell_whole(const Ui& ui, const ScreenRect& rect, const std::string& text) {
  const ImGuiHoveredFlags flags =
      ImGuiHoveredFlags_ChildWindows | ImGuiHoveredFlags_AllowWhenBlockedByActiveItem;
  if (ImGui::IsAnyMouseDown() || !ImGui::IsWindowHovered(flags)) return;
  if (!ImGui::IsMouseHoveringRect({rect.x0, rect.y0}, {rect.x1, rect.y1})) return;
  tooltip(text);
  ui.labels.write({text, rect});
}

/// Draws a line of text, of which `whole` may say more; gives where it stands.
ScreenRect write_line(const Ui& ui, ImFont* font, float x, float y, ImU32 colour,
                      const std::string& text, const std::string& whole, Align align) {
  const float width = text_size(font, text).x;
  if (align != Align::left) x -= align == Align::right ? width : width / 2;
  x = std::round(x);
  y = std::round(y);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddText(font, font->FontSize, {x, y}, colour, text.data(), text.data() + text.size());
  const ScreenRect rect{x, y, x + width, y + font->FontSize};
  const ImVec2 low = draw.GetClipRectMin(), high = draw.GetClipRectMax();
  // A line that is half beyond the edge is scrolled to, and read then.
  const float middle = (rect.y0 + rect.y1) / 2;
  const bool seen = middle > low.y && middle < high.y && rect.x1 > low.x && rect.x0 < high.x;
  if (seen) ui.labels.write({whole, rect, text != whole, x < low.x - 1 || rect.x1 > high.x + 1});
  return rect;
}

}  // namespace

void put_text(const Ui& ui, ImFont* font, float x, float y, ImU32 colour, const std::string& text,
              Align align) {
  write_line(ui, font, x, y, colour, text, text, align);
}

float put_fitting(const Ui& ui, ImFont* font, float x, float y, float width, ImU32 colour,
                  const std::string& text, Align align) {
  const std::string shown = fit_text(font, text, width);
  const ScreenRect rect = write_line(ui, font, x, y, colour, shown, text, align);
  if (shown != text) tell_whole(ui, rect, text);
  return rect.width();
}

bool text_field(const Ui& ui, const std::string& label, const std::string& hint, float width,
                char* text, size_t size, ImGuiInputTextFlags flags) {
  const std::string shown =
      fit_text(ImGui::GetFont(), hint, width - 2 * ImGui::GetStyle().FramePadding.x);
  ImGui::SetNextItemWidth(width);
  const bool entered =
      ImGui::InputTextWithHint(("##" + label).c_str(), shown.c_str(), text, size, flags);
  mark(ui, label);
  if (*text == 0) {
    ui.labels.write({hint, item_rect(), shown != hint});
    if (shown != hint) tell_whole(ui, item_rect(), hint);
  }
  return entered;
}

float wrapped_height(ImFont* font, const std::string& text, float width) {
  return font->CalcTextSizeA(font->FontSize, 1e9f, width, text.data(), text.data() + text.size()).y;
}

float put_wrapped(const Ui& ui, ImFont* font, float x, float y, float width, ImU32 colour,
                  const std::string& text) {
  const float height = wrapped_height(font, text, width);
  y = std::round(y);
  ImGui::GetWindowDrawList()->AddText(font, font->FontSize, {x, y}, colour, text.data(),
                                      text.data() + text.size(), width);
  ui.labels.write({text, {x, y, x + width, y + height}});
  return height;
}

void tooltip(const std::string& text) {
  // Panes have no padding of their own.
  const float em = ImGui::GetFontSize();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em * 0.6f, em * 0.4f));
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(em * 28);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
  ImGui::PopStyleVar();
}

float put_problem(const Ui& ui, const std::string& pane, const ScreenRect& rect,
                  const std::string& what, const std::string& why) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const body = ui.fonts.body;
  ImFont* const small = ui.fonts.secondary;
  const float width = std::max(ui.px(16), std::min(rect.width() - ui.px(24), ui.px(560)));
  const auto wrapped = [width](ImFont* font, const std::string& text) {
    return font->CalcTextSizeA(font->FontSize, 1e9f, width, text.data(), text.data() + text.size());
  };
  const ImVec2 title = wrapped(body, what), text = wrapped(small, why);
  const float gap = ui.px(6);
  const float whole = title.y + gap + text.y;
  const float wide = std::max({title.x, text.x, ui.px(16)});
  const float y = std::max(rect.y0 + ui.px(4), (rect.y0 + rect.y1 - whole) / 2);
  const float x = std::round((rect.x0 + rect.x1 - wide) / 2);
  const float air = ui.px(10);
  draw.PushClipRect({rect.x0, rect.y0}, {rect.x1, rect.y1}, true);
  draw.AddRectFilled({x - air, y - air}, {x + wide + air, y + whole + air}, ui.theme.pane,
                     ui.px(3));
  draw.AddText(body, body->FontSize, {x, std::round(y)}, ui.theme.problem, what.data(),
               what.data() + what.size(), width);
  draw.AddText(small, small->FontSize, {x, std::round(y + title.y + gap)}, ui.theme.text,
               why.data(), why.data() + why.size(), width);
  draw.PopClipRect();
  ui.labels.add(pane + "/Problem", rect);
  ui.labels.write({what, {x, y, x + wide, y + title.y}});
  ui.labels.write({why, {x, y + title.y + gap, x + wide, y + whole}});
  return whole + 2 * air;
}

namespace {

void hint_for_item(const std::string& hint) {
  if (!hint.empty() && ImGui::IsItemHovered()) tooltip(hint);
}

bool styled_button(const Ui& ui, const std::string& text, bool on) {
  const Theme& t = ui.theme;
  ImGui::PushStyleColor(ImGuiCol_Button, to_vec4(on ? t.pressed : t.raised));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, to_vec4(on ? t.pressed : t.hovered));
  ImGui::PushStyleColor(ImGuiCol_Text, to_vec4(on ? t.text : t.secondary));
  const bool clicked = ImGui::Button(text.c_str());
  ImGui::PopStyleColor(3);
  return clicked;
}

}  // namespace

bool tool_button(const Ui& ui, const std::string& label, const std::string& text, bool on,
                 const std::string& hint) {
  ImGui::PushID(label.c_str());
  const bool clicked = styled_button(ui, text, on);
  ImGui::PopID();
  mark(ui, label);
  hint_for_item(hint);
  return clicked;
}

void lacking_button(const Ui& ui, const std::string& label, const std::string& text,
                    const std::string& why) {
  ImGui::PushID(label.c_str());
  ImGui::PushStyleVar(ImGuiStyleVar_DisabledAlpha, 0.4f);
  ImGui::BeginDisabled();
  styled_button(ui, text, false);
  ImGui::EndDisabled();
  ImGui::PopStyleVar();
  ImGui::PopID();
  mark(ui, label);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(why);
}

int segmented(const Ui& ui, const std::string& pane, const std::vector<std::string>& words,
              int chosen, const std::string& hint) {
  int clicked = -1;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ui.px(1), ui.px(6)));
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) ImGui::SameLine();
    const int index = static_cast<int>(i);
    ImGui::PushID((pane + words[i]).c_str());
    if (styled_button(ui, words[i], index == chosen)) clicked = index;
    ImGui::PopID();
    mark(ui, pane + "/" + words[i]);
    ImGui::PopStyleVar();
    hint_for_item(hint);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ui.px(1), ui.px(6)));
  }
  ImGui::PopStyleVar();
  return clicked;
}

namespace {

/// Of a list beside its caption, where a pane is narrow.
constexpr float kLeastChoice = 40, kLeastArrow = 80;

/// The changes that the keys have made to an open list.
struct ListKeys {
  bool moved = false, chosen = false, closed = false;
};

/// Moves `marked`, one of `count` items.
ListKeys take_list_keys(const Ui& ui, int count, int& marked) {
  ListKeys done;
  for (const KeyChord& chord : ui.list_keys) {
    const std::optional<int> to = moved_in_list(chord, marked, count);
    if (to) marked = *to;
    done.moved = done.moved || to.has_value();
    done.chosen = done.chosen || takes_item(chord);
    done.closed = done.closed || chord.key == Key::escape;
  }
  return done;
}

/// The items of an open list; gives what was chosen or −1.
int open_list(const Ui& ui, const std::string& caption, const std::vector<std::string>& words,
              int chosen, const std::function<std::string(const std::string&)>& about) {
  int taken = -1;
  const bool appearing = ImGui::IsWindowAppearing();
  int& marked = *ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("marked"));
  if (appearing) marked = std::max(chosen, 0);
  const ListKeys keys = take_list_keys(ui, static_cast<int>(words.size()), marked);
  for (size_t i = 0; i < words.size(); ++i) {
    const int index = static_cast<int>(i);
    ImGui::PushID(index);
    if (ImGui::Selectable(words[i].c_str(), index == marked)) taken = index;
    if (index == marked && (appearing || keys.moved)) ImGui::SetScrollHereY();
    ImGui::PopID();
    mark(ui, caption + "/" + words[i]);
    if (about) hint_for_item(about(words[i]));
  }
  if (keys.chosen) taken = marked;
  if (keys.chosen || keys.closed) ImGui::CloseCurrentPopup();
  return taken;
}

}  // namespace

float choice_width(const Ui& ui, const std::vector<std::string>& words) {
  float widest = 0;
  for (const std::string& word : words) widest = std::max(widest, text_size(ui.fonts.body, word).x);
  const float sides = 2 * ImGui::GetStyle().FramePadding.x + ImGui::GetFrameHeight();
  return (widest + sides) / ui.scale + 2;
}

int choice(const Ui& ui, const std::string& pane, const std::string& caption,
           const std::vector<std::string>& words, int chosen, float width,
           const std::function<std::string(const std::string&)>& about) {
  int taken = -1;
  ImGui::AlignTextToFramePadding();
  ImGui::PushFont(ui.fonts.secondary);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = text_size(ui.fonts.secondary, caption);
  put_text(ui, ui.fonts.secondary, at.x, at.y + (ImGui::GetFrameHeight() - size.y) / 2 + ui.px(1),
           ui.theme.secondary, caption);
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({at.x + size.x + ui.px(6), at.y});
  const float pane_end = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - ui.px(4);
  const float box =
      std::max(ui.px(kLeastChoice), std::min(ui.px(width), pane_end - at.x - size.x - ui.px(6)));
  ImGui::SetNextItemWidth(box);
  const std::string now = chosen >= 0 ? words[static_cast<size_t>(chosen)] : "";
  // A narrow list has its word alone.
  const bool arrow = words.size() > 1 && box >= ui.px(kLeastArrow);
  const float sides =
      2 * ImGui::GetStyle().FramePadding.x + (arrow ? ImGui::GetFrameHeight() : 0.0f);
  const std::string shown = fit_text(ImGui::GetFont(), now, box - sides);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(4), ui.px(4)));
  const std::string id = "##" + pane + caption;
  const bool open =
      ImGui::BeginCombo(id.c_str(), shown.c_str(),
                        ImGuiComboFlags_HeightLarge | (arrow ? 0 : ImGuiComboFlags_NoArrowButton));
  if (!open) {
    mark(ui, pane + "/" + caption);
    ui.labels.write({now, item_rect(), shown != now});
    if (shown != now) tell_whole(ui, item_rect(), now);
  }
  if (open) {
    taken = open_list(ui, caption, words, chosen, about);
    ImGui::EndCombo();
  }
  ImGui::PopStyleVar();
  return taken;
}

float pane_header(const Ui& ui, const ScreenRect& rect, const PaneHeader& header,
                  const ViewState& state, PanelRequests& requests) {
  const float height = ui.px(kHeaderHeight);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  ImGui::PushID(header.title.c_str());
  ImGui::InvisibleButton("header", {rect.width(), height});
  ImGui::SetItemAllowOverlap();
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(0)) {
    const bool already = state.maximised == header.pane;
    requests.act(action::Maximise{already ? std::nullopt : std::optional(header.pane)});
  }
  ImGui::PopID();
  ui.labels.add(header.title + "/Header", {rect.x0, rect.y0, rect.x1, rect.y0 + height});
  ImFont* const title = ui.fonts.title;
  const float x = rect.x0 + ui.px(12);
  ImFont* const small = ui.fonts.secondary;
  const bool alone = state.maximised == header.pane;
  // A tab names it already.
  const bool named = pane_below(state) == header.pane && !alone;
  float end = x;
  if (!named) {
    put_text(ui, title, x, rect.y0 + (height - title->FontSize) / 2, ui.theme.text, header.title);
    end += text_size(title, header.title).x;
  }
  if (alone) {
    ImGui::PushFont(small);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
    ImGui::SetCursorScreenPos({end + ui.px(10), rect.y0 + ui.px(5)});
    if (tool_button(ui, header.title + "/Back", "All panes", false, "all panes again (Esc)")) {
      requests.act(action::Maximise{});
    }
    end = item_rect().x1;
    ImGui::PopStyleVar();
    ImGui::PopFont();
  }
  if (!header.detail.empty()) {
    if (!named) end += ui.px(12);
    end += put_fitting(ui, small, end, rect.y0 + (height - small->FontSize) / 2 + ui.px(2),
                       rect.x1 - ui.px(8) - header.taken - end, ui.theme.secondary, header.detail);
  }
  const float line = rect.y0 + height - ui.px(1);
  draw.AddRectFilled({rect.x0, line}, {rect.x1, line + ui.px(1)}, ui.theme.border);
  if (header.progress >= 0) {
    const float share = static_cast<float>(std::clamp(header.progress, 0.0, 1.0));
    draw.AddRectFilled({rect.x0, line - ui.px(1)},
                       {rect.x0 + rect.width() * std::max(share, 0.02f), line + ui.px(1)},
                       ui.theme.secondary);
  }
  return end;
}

void begin_pane(const Ui& ui, const char* name, const ScreenRect& rect, bool fill) {
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  if (fill) {
    ImGui::GetWindowDrawList()->AddRectFilled({rect.x0, rect.y0}, {rect.x1, rect.y1},
                                              ui.theme.pane);
  }
  ImGui::BeginChild(
      name, {rect.width(), rect.height()}, false,
      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNav);
}

void end_pane() { ImGui::EndChild(); }

}  // namespace attnscope
