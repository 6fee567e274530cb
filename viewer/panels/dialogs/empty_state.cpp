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
/// Of what was opened lately.
constexpr float kRecentLine = 46, kPictureWidth = 64;

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

/// The small picture, as large as fits into the rectangle, in its own aspect.
void draw_picture(const Ui& ui, const ScreenRect& room, const RecentEntry& recent) {
  const float by = std::min(room.width() / static_cast<float>(recent.width),
                            room.height() / static_cast<float>(recent.height));
  const float width = by * static_cast<float>(recent.width);
  const float height = by * static_cast<float>(recent.height);
  const ImVec2 at{(room.x0 + room.x1 - width) / 2, (room.y0 + room.y1 - height) / 2};
  ImGui::GetWindowDrawList()->AddImage(
      reinterpret_cast<ImTextureID>(static_cast<intptr_t>(recent.picture)), at,
      {at.x + width, at.y + height});
  ui.labels.add("Empty/Picture of " + recent.file.file.filename().string(),
                {at.x, at.y, at.x + width, at.y + height});
}

/// A capture that was opened lately: its picture, its name and folder, and at the right what it
/// was.
void draw_recent(const Ui& ui, const ScreenRect& line, const RecentEntry& recent,
                 PanelRequests& requests) {
  const RecentFile& file = recent.file;
  const std::string name = file.file.filename().string();
  ImGui::SetCursorScreenPos({line.x0, line.y0});
  if (!file.gone) {
    ImGui::PushID(file.file.c_str());
    if (ImGui::Selectable("##recent", false, 0, {line.width(), line.height() - ui.px(2)})) {
      requests.open = file.file.string();
    }
    ImGui::PopID();
    mark(ui, "Empty/" + name);
  }
  float x = line.x0 + ui.px(4);
  if (recent.picture != 0) {
    draw_picture(ui, {x, line.y0 + ui.px(2), x + ui.px(kPictureWidth), line.y1 - ui.px(4)}, recent);
  }
  x += ui.px(kPictureWidth + 12);
  ImFont* const small = ui.fonts.secondary;
  const std::string facts = file.gone ? "gone" : file.facts;
  const float right = line.x1 - ui.px(4);
  const float y = (line.y0 + line.y1) / 2 - ui.px(10);
  const float taken = put_fitting(ui, small, right, y, (right - x) * 0.65f, ui.theme.secondary,
                                  facts, Align::right);
  x += put_fitting(ui, small, x, y, right - taken - ui.px(12) - x,
                   file.gone ? ui.theme.secondary : ui.theme.query, one_line(name)) +
       ui.px(12);
  put_fitting(ui, small, x, y, right - taken - ui.px(12) - x, ui.theme.secondary,
              one_line(file.file.parent_path().string()));
}

}  // namespace

void draw_empty_state(const Ui& ui, const ScreenRect& rect, const EmptyState& state,
                      PanelRequests& requests) {
  begin_pane(ui, "empty", rect, false);
  const float width = std::min(rect.width() - ui.px(48), ui.px(720));
  const float x = (rect.x0 + rect.x1 - width) / 2;
  size_t shown = std::min(state.recent.size(), kShownRecent);
  const auto whole_height = [&] {
    const float lines = kRecentLine * static_cast<float>(shown);
    return ui.px(kTargetHeight + 40 + 36 + kLine * 3 + (shown > 0 ? kLine + 16 + lines : 0));
  };
  // A low window has room for the latest alone.
  while (shown > 1 && whole_height() > rect.height() - ui.px(48)) --shown;
  const float whole = whole_height();
  float y = rect.y0 + std::max(ui.px(24), (rect.height() - whole) / 2);
  draw_target(ui, {x, y, x + width, y + ui.px(kTargetHeight)}, state, requests);
  y += ui.px(kTargetHeight + 32);
  if (shown > 0) {
    put_text(ui, ui.fonts.body, x, y, ui.theme.text, "Opened lately");
    y += ui.px(kLine);
    for (size_t i = 0; i < shown; ++i) {
      draw_recent(ui, {x, y, x + width, y + ui.px(kRecentLine)}, state.recent[i], requests);
      y += ui.px(kRecentLine);
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
