#include "viewer/panels/dialogs/file_browser.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"
#include "viewer/commands/list_keys.h"

namespace attnscope {

namespace fs = std::filesystem;

void FileBrowser::open(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  open_ = true;
  enter(folder);
}

void FileBrowser::enter(fs::path folder) {
  folder_ = std::move(folder);
  marked_ = 0;
  read();
}

void FileBrowser::press(const KeyChord& chord) {
  const int lines = static_cast<int>(entries_.size()) + (has_above() ? 1 : 0);
  if (chord.key == Key::escape) {
    open_ = false;
  } else if (chord.key == Key::backspace && has_above()) {
    enter(folder_.parent_path());
  } else if (lines > 0 && takes_item(chord)) {
    takes_it_ = true;
  } else if (const auto to = lines > 0 ? moved_in_list(chord, marked_, lines) : std::nullopt) {
    marked_ = *to;
    moved_ = true;
  }
}

namespace {

/// True of the endings that captures and exports usually have.
bool is_input_name(const std::string& extension) {
  constexpr std::array<std::string_view, 7> kEndings{".safetensors", ".h5",  ".hdf5", ".part",
                                                     ".pt",          ".pth", ".npz"};
  return std::find(kEndings.begin(), kEndings.end(), extension) != kEndings.end();
}

}  // namespace

void FileBrowser::read() {
  entries_.clear();
  problem_.clear();
  std::error_code error;
  fs::directory_iterator at(folder_, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const fs::path path = at->path();
    const std::string name = path.filename().string();
    if (name.empty() || name.front() == '.') continue;
    std::error_code ignored;
    Entry entry{path, one_line(name), at->is_directory(ignored), ""};
    const std::string extension = path.extension().string();
    const bool capture =
        entry.folder ? fs::exists(path / "capture.json", ignored) : is_input_name(extension);
    const bool session = !entry.folder && (extension == ".session" || extension == ".json") &&
                         is_session_ && is_session_(path);
    if (capture) entry.what = "capture";
    if (session) entry.what = "session";
    if (entry.folder || capture || session) entries_.push_back(std::move(entry));
  }
  if (error) problem_ = error.message();
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(!a.folder, a.name) < std::pair(!b.folder, b.name);
  });
}

void FileBrowser::draw_entries(const Ui& ui, float width, PanelRequests& requests) {
  const float line = ui.px(28);
  std::optional<fs::path> chosen;
  int number = 0;
  const auto row = [&](const std::string& label, const std::string& name, const std::string& what,
                       ImU32 colour) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(label.c_str());
    const bool marked = number++ == marked_;
    const bool clicked = ImGui::Selectable("##entry", marked, 0, {width, line - ui.px(6)});
    if (marked && moved_) ImGui::SetScrollHereY();
    ImGui::PopID();
    mark(ui, label);
    put_fitting(ui, ui.fonts.body, at.x + ui.px(8), at.y + ui.px(1), width - ui.px(140), colour,
                name);
    put_text(ui, ui.fonts.secondary, at.x + width - ui.px(16), at.y + ui.px(3), ui.theme.secondary,
             what, Align::right);
    return clicked || (marked && takes_it_);
  };
  if (has_above() && row("Browser/..", "..", "folder above", ui.theme.secondary)) {
    chosen = folder_.parent_path();
  }
  for (const Entry& entry : entries_) {
    const bool opens = !entry.what.empty();
    if (row("Browser/" + entry.name, entry.name, opens ? entry.what : "folder",
            opens ? ui.theme.text : ui.theme.secondary)) {
      if (opens) {
        requests.open = entry.path.string();
        open_ = false;
      } else {
        chosen = entry.path;
      }
    }
  }
  moved_ = takes_it_ = false;
  if (chosen) enter(*chosen);
}

void FileBrowser::draw(const Ui& ui, const ScreenRect& window, PanelRequests& requests) {
  const float width = std::min(window.width() - ui.px(32), ui.px(640));
  const float height = std::min(window.height() - ui.px(32), ui.px(520));
  const ImVec2 at{(window.x0 + window.x1 - width) / 2, (window.y0 + window.y1 - height) / 2};
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize({width, height});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, to_vec4(ui.theme.pane));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ui.px(1));
  ImGui::Begin("Browser", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings);
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus();
  put_text(ui, ui.fonts.title, at.x + ui.px(20), at.y + ui.px(16), ui.theme.text, "Open a capture");
  put_fitting(ui, ui.fonts.secondary, at.x + ui.px(20), at.y + ui.px(44), width - ui.px(40),
              ui.theme.secondary, one_line(folder_.string()));
  const float button = text_size(ui.fonts.body, "Cancel").x + ui.px(16);
  ImGui::SetCursorScreenPos({at.x + width - button - ui.px(20), at.y + ui.px(14)});
  if (tool_button(ui, "Browser/Cancel", "Cancel", false, "Esc")) open_ = false;
  ImGui::SetCursorScreenPos({at.x + ui.px(12), at.y + ui.px(72)});
  ImGui::BeginChild("entries", {width - ui.px(24), height - ui.px(84)});
  if (!problem_.empty()) ImGui::TextUnformatted(problem_.c_str());
  draw_entries(ui, width - ui.px(36), requests);
  ImGui::EndChild();
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

}  // namespace attnscope
