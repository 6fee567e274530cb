#include "viewer/panels/dialogs/empty_state.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace attnscope {
namespace {

struct Example {
  const char* command;
  const char* text;
};
constexpr std::array<Example, 3> kExamples{
    {{"attnscope view samples/moving-shapes", "the sample capture of the repository"},
     {"attnscope synth --preset cogvideox-5b --num-heads 6 -o big", "a full-size capture to try"},
     {"attnscope view --q q.npy --k k.npy --grid 13x30x45", "bare tensors"}}};

constexpr size_t kShownRecent = 6;
constexpr float kTargetHeight = 200, kLine = 28;

/// Buttons in the middle of a line.
void draw_buttons(const Ui& ui, float middle, float y, bool sample, PanelRequests& requests) {
  const std::string open = "Open a capture", try_sample = "Try the sample";
  const auto wide = [&](const std::string& words) {
    return text_size(ui.fonts.body, words).x + ui.px(16);
  };
  const float both = wide(open) + (sample ? ui.px(12) + wide(try_sample) : 0);
  ImGui::SetCursorScreenPos({middle - both / 2, y});
  if (tool_button(ui, "Empty/Open", open, true, "Ctrl+O")) requests.show_browser = true;
  if (!sample) return;
  ImGui::SameLine(0, ui.px(12));
  if (tool_button(ui, "Empty/Sample", try_sample, true,
                  "a synthetic capture: heads of known kinds, made by formulas")) {
    requests.open_sample = true;
  }
}

/// What is waited for, else where to drop a capture.
void draw_target(const Ui& ui, const ScreenRect& target, const EmptyState& state,
                 PanelRequests& requests) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({target.x0, target.y0}, {target.x1, target.y1}, ui.theme.pane, ui.px(3));
  draw.AddRect({target.x0, target.y0}, {target.x1, target.y1}, ui.theme.border, ui.px(3), 0,
               ui.px(1));
  const bool waits = !state.awaited.empty();
  const float middle = (target.x0 + target.x1) / 2;
  const float y = (target.y0 + target.y1) / 2;
  const float width = target.width() - ui.px(24);
  const std::string folder = one_line(state.awaited.string());
  put_fitting(ui, ui.fonts.title, middle, y - ui.px(48), width, ui.theme.text,
              waits ? "Waiting for the first call of " + one_line(state.awaited.filename().string())
                    : "Drop a capture here",
              Align::centre);
  put_fitting(ui, ui.fonts.secondary, middle, y - ui.px(18), width, ui.theme.secondary,
              waits ? folder + ": it is shown as soon as it is there"
                    : "a folder with capture.json, a safetensors file, or an HDF5 export",
              Align::centre);
  draw_buttons(ui, middle, y + ui.px(16), state.has_sample && !waits, requests);
}

/// A capture that was opened lately: its name and folder, and at the right what it was.
void draw_recent(const Ui& ui, const ScreenRect& line, const RecentFile& recent,
                 PanelRequests& requests) {
  const std::string name = recent.file.filename().string();
  ImGui::SetCursorScreenPos({line.x0, line.y0});
  if (!recent.gone) {
    ImGui::PushID(recent.file.c_str());
    if (ImGui::Selectable("##recent", false, 0, {line.width(), line.height() - ui.px(2)})) {
      requests.open = recent.file.string();
    }
    ImGui::PopID();
    mark(ui, "Empty/" + name);
  }
  ImFont* const small = ui.fonts.secondary;
  const std::string facts = recent.gone ? "gone" : recent.facts;
  const float right = line.x1 - ui.px(4), y = line.y0 + ui.px(4);
  const float taken = put_fitting(ui, small, right, y, line.width() * 0.6f, ui.theme.secondary,
                                  facts, Align::right);
  float x = line.x0 + ui.px(4);
  x += put_fitting(ui, small, x, y, right - taken - ui.px(12) - x,
                   recent.gone ? ui.theme.secondary : ui.theme.query, one_line(name)) +
       ui.px(12);
  put_fitting(ui, small, x, y, right - taken - ui.px(12) - x, ui.theme.secondary,
              one_line(recent.file.parent_path().string()));
}

}  // namespace

void draw_empty_state(const Ui& ui, const ScreenRect& rect, const EmptyState& state,
                      PanelRequests& requests) {
  begin_pane(ui, "empty", rect, false);
  const float width = std::min(rect.width() - ui.px(48), ui.px(720));
  const float x = (rect.x0 + rect.x1 - width) / 2;
  const size_t shown = std::min(state.recent.size(), kShownRecent);
  const float lines = ui.px(kLine * static_cast<float>(shown));
  const float whole =
      ui.px(kTargetHeight + 40 + 36 + kLine * 3) + (shown > 0 ? ui.px(56) + lines : 0);
  float y = rect.y0 + std::max(ui.px(24), (rect.height() - whole) / 2);
  draw_target(ui, {x, y, x + width, y + ui.px(kTargetHeight)}, state, requests);
  y += ui.px(kTargetHeight + 32);
  if (shown > 0) {
    put_text(ui, ui.fonts.body, x, y, ui.theme.text, "Opened lately");
    y += ui.px(kLine);
    for (size_t i = 0; i < shown; ++i) {
      draw_recent(ui, {x, y, x + width, y + ui.px(kLine)}, state.recent[i], requests);
      y += ui.px(kLine);
    }
    y += ui.px(16);
  }
  put_text(ui, ui.fonts.body, x, y, ui.theme.text, "Or from a terminal");
  y += ui.px(30);
  for (const Example& example : kExamples) {
    const float command = put_fitting(ui, ui.fonts.mono, x + ui.px(4), y, width - ui.px(8),
                                      ui.theme.text, example.command);
    put_fitting(ui, ui.fonts.secondary, x + width, y, width - command - ui.px(24),
                ui.theme.secondary, example.text, Align::right);
    y += ui.px(kLine);
  }
  put_fitting(ui, ui.fonts.secondary, rect.x0 + ui.px(12), rect.y1 - ui.px(24),
              rect.width() - ui.px(24), ui.theme.text, state.notice);
  end_pane();
}

}  // namespace attnscope
