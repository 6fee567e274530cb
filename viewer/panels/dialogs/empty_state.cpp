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

void draw_drop_target(const Ui& ui, const ScreenRect& target, PanelRequests& requests) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({target.x0, target.y0}, {target.x1, target.y1}, ui.theme.pane, ui.px(3));
  draw.AddRect({target.x0, target.y0}, {target.x1, target.y1}, ui.theme.border, ui.px(3), 0,
               ui.px(1));
  const float middle = (target.x0 + target.x1) / 2;
  const float y = (target.y0 + target.y1) / 2;
  put_text(ui, ui.fonts.title, middle, y - ui.px(48), ui.theme.text, "Drop a capture here",
           Align::centre);
  put_text(ui, ui.fonts.secondary, middle, y - ui.px(18), ui.theme.secondary,
           "a folder with capture.json, a safetensors file, or an HDF5 export", Align::centre);
  const std::string words = "Open a capture";
  const float width = text_size(ui.fonts.body, words).x + ui.px(16);
  ImGui::SetCursorScreenPos({middle - width / 2, y + ui.px(16)});
  if (tool_button(ui, "Empty/Open", words, true, "Ctrl+O")) requests.show_browser = true;
}

}  // namespace

void draw_empty_state(const Ui& ui, const ScreenRect& rect,
                      const std::vector<std::filesystem::path>& recent, const std::string& notice,
                      PanelRequests& requests) {
  begin_pane(ui, "empty", rect, false);
  const float width = std::min(rect.width() - ui.px(48), ui.px(720));
  const float x = (rect.x0 + rect.x1 - width) / 2;
  const size_t shown = std::min<size_t>(recent.size(), 6);
  const float whole = ui.px(200 + 40 + 36 + 28 * 3) +
                      (shown > 0 ? ui.px(56) + static_cast<float>(shown) * ui.px(28) : 0);
  float y = rect.y0 + std::max(ui.px(24), (rect.height() - whole) / 2);
  draw_drop_target(ui, {x, y, x + width, y + ui.px(200)}, requests);
  y += ui.px(232);
  if (shown > 0) {
    put_text(ui, ui.fonts.body, x, y, ui.theme.text, "Opened lately");
    y += ui.px(28);
    for (size_t i = 0; i < shown; ++i) {
      ImGui::SetCursorScreenPos({x, y});
      ImGui::PushID(static_cast<int>(i));
      const std::string name = one_line(recent[i].string());
      if (ImGui::Selectable("##recent", false, 0, {width, ui.px(26)})) {
        requests.open = recent[i].string();
      }
      mark(ui, "Empty/" + recent[i].filename().string());
      put_fitting(ui, ui.fonts.secondary, x + ui.px(4), y + ui.px(4), width - ui.px(8),
                  ui.theme.query, name);
      ImGui::PopID();
      y += ui.px(28);
    }
    y += ui.px(16);
  }
  put_text(ui, ui.fonts.body, x, y, ui.theme.text, "Or from a terminal");
  y += ui.px(30);
  for (const Example& example : kExamples) {
    put_text(ui, ui.fonts.mono, x + ui.px(4), y, ui.theme.text, example.command);
    put_text(ui, ui.fonts.secondary, x + width, y, ui.theme.secondary, example.text, Align::right);
    y += ui.px(28);
  }
  put_text(ui, ui.fonts.secondary, rect.x0 + ui.px(12), rect.y1 - ui.px(24), ui.theme.text, notice);
  end_pane();
}

}  // namespace attnscope
