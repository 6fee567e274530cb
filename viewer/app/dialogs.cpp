#include "viewer/app/dialogs.h"

#include <imgui.h>

#include "viewer/commands/commands.h"
#include "viewer/commands/list_keys.h"
#include "viewer/panels/dialogs/error_dialog.h"
#include "viewer/panels/dialogs/help_overlay.h"

namespace attnscope {

Dialogs::Front Dialogs::front() const {
  return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup) ? Front::list : dialog();
}

/// Of several the one that can be opened over the others; these come back when it is closed.
Dialogs::Front Dialogs::dialog() const {
  if (notices_.failure()) return Front::failure;
  if (help_) return Front::help;
  if (browser_.is_open()) return Front::browser;
  return palette_.is_open() ? Front::palette : Front::panels;
}

/// That shows in what stands in front once a frame was drawn.
bool Dialogs::keeps_keys() const {
  const Front of = dialog();
  if (of != drawn_) return true;
  const bool ends_list = !list_keys_.empty() &&
                         (list_keys_.back().key == Key::escape || takes_item(list_keys_.back()));
  if (of == Front::browser && browser_.keeps_keys()) return true;
  return ends_list || ((of == Front::palette || of == Front::panels) && palette_.keeps_keys());
}

bool Dialogs::is_mouse_held_back() {
  if (ImGui::IsMouseClicked(0)) {
    const bool over = front() != Front::panels;
    press_held_back_ = over || (ImGui::IsMouseDoubleClicked(0) && press_held_back_);
    holds_back_ = press_held_back_ && !over;
  } else if (!ImGui::IsMouseDown(0)) {
    holds_back_ = false;
  }
  return holds_back_ || dialog() != Front::panels;
}

bool Dialogs::press(const KeyChord& chord) {
  switch (front()) {
    case Front::list:
      list_keys_.push_back(chord);
      return true;
    case Front::failure:
      if (chord.key == Key::escape || takes_item(chord)) notices_.close();
      return true;
    case Front::help:
      if (chord.key == Key::escape || command_on(chord) == CommandId::help) help_ = false;
      return true;
    case Front::browser:
      browser_.press(chord);
      return true;
    case Front::palette:
      palette_.press(chord);
      return true;
    case Front::panels:
      break;
  }
  return false;
}

void Dialogs::draw(const Ui& ui, const ScreenRect& window, PanelRequests& requests) {
  drawn_ = dialog();
  switch (drawn_) {
    case Front::failure:
      if (const auto& f = *notices_.failure();
          !draw_error(ui, window, f.title, f.message, f.problem))
        notices_.close();
      break;
    case Front::help:
      help_ = draw_help(ui, window);
      break;
    case Front::browser:
      browser_.draw(ui, window, requests);
      break;
    case Front::palette:
      palette_.draw(ui, window);
      break;
    case Front::list:
    case Front::panels:
      break;
  }
}

void Dialogs::browse(const std::filesystem::path& folder, bool second) {
  is_second_ = second;
  browser_.open(folder);
}

void Dialogs::browse_to_save(const std::string& name) {
  browser_.open_to_save(std::filesystem::current_path(), name);
}

}  // namespace attnscope
