#include "viewer/panels/dialogs/file_browser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "viewer/commands/list_keys.h"

namespace attnscope {

namespace fs = std::filesystem;

void FileBrowser::open_to_save(fs::path folder, const std::string& name) {
  open(std::move(folder));
  saved_name_ = name;
  begins_path_ = true;
  set_path((folder_ / saved_name_).string());
}

void FileBrowser::open(fs::path folder) {
  saved_name_.clear();
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  open_ = true;
  begins_path_ = edits_path_ = takes_path_ = false;
  enter(folder);
}

void FileBrowser::enter(fs::path folder) {
  folder_ = std::move(folder);
  marked_ = 0;
  typed_.clear();
  if (!saved_name_.empty()) {
    set_path((folder_ / saved_name_).string());
    begins_path_ = true;
  }
  read();
}

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool begins_with(const std::string& name, const std::string& lower_case) {
  return name.size() >= lower_case.size() &&
         std::equal(lower_case.begin(), lower_case.end(), name.begin(),
                    [](char wanted, char c) { return wanted == lower(c); });
}

/// The letter or sign that a chord types.
std::optional<char> typed_sign(const KeyChord& chord) {
  if (chord.ctrl || chord.alt || chord.key >= Key::first_named) return std::nullopt;
  return lower(static_cast<char>(chord.key));
}

/// A path as a shell reads it: ~ is the home folder, and `folder` where others begin.
fs::path typed_path(const std::string& text, const fs::path& folder) {
  const char* const home = std::getenv("HOME");
  const bool at_home = text == "~" || text.starts_with("~/");
  if (!at_home || home == nullptr) return folder / text;
  return fs::path(home) / text.substr(std::min<size_t>(2, text.size()));
}

int cursor_to_end(ImGuiInputTextCallbackData* data) {
  data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
  return 0;
}

}  // namespace

void FileBrowser::set_path(const std::string& text) {
  path_.fill(0);
  std::copy_n(text.begin(), std::min(text.size(), path_.size() - 1), path_.begin());
}

/// Marks the first entry that begins with all that was typed, or else with this letter.
void FileBrowser::type_ahead(char letter) {
  for (const std::string& wanted : {typed_ + letter, std::string(1, letter)}) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return begins_with(entry.name, wanted);
    });
    if (found == entries_.end()) continue;
    typed_ = wanted;
    marked_ = static_cast<int>(found - entries_.begin()) + (has_above() ? 1 : 0);
    moved_ = true;
    return;
  }
}

void FileBrowser::press(const KeyChord& chord) {
  const int lines = static_cast<int>(entries_.size()) + (has_above() ? 1 : 0);
  if (const std::optional<char> sign = typed_sign(chord)) {
    if (*sign == '/' || *sign == '~') {
      set_path(std::string(1, *sign));
      begins_path_ = true;
    } else {
      type_ahead(*sign);
    }
    return;
  }
  typed_.clear();
  if (chord.key == Key::escape) {
    open_ = false;
  } else if (chord.key == Key::enter && edits_path_) {
    takes_path_ = true;
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

std::string FileBrowser::what_is(const fs::path& path) const {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  if (folder) return fs::exists(path / "capture.json", ignored) ? "capture" : "";
  const std::string extension = path.extension().string();
  const bool session =
      (extension == ".session" || extension == ".json") && is_session_ && is_session_(path);
  if (session) return "session";
  return is_input_name(extension) ? "capture" : "";
}

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
    Entry entry{path, one_line(name), at->is_directory(ignored), what_is(path)};
    if (entry.folder || !entry.what.empty()) entries_.push_back(std::move(entry));
  }
  if (error) problem_ = error.message();
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(!a.folder, a.name) < std::pair(!b.folder, b.name);
  });
}

/// Opens what stands there, or goes into a folder.
void FileBrowser::choose(const fs::path& path, PanelRequests& requests) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  if (folder && what_is(path).empty()) {
    enter(path);
    return;
  }
  if (!saved_name_.empty()) return;
  requests.open = path.string();
  open_ = false;
}

/// Takes the path that was typed. A name of maps on another machine is opened as it is.
void FileBrowser::take_path(PanelRequests& requests) {
  takes_path_ = false;
  const std::string text = path_.data();
  if (text.empty()) return;
  if (!saved_name_.empty()) {
    requests.save_sample = typed_path(text, folder_).lexically_normal().string();
    open_ = false;
    return;
  }
  if (text.find("://") != std::string::npos) {
    requests.open = text;
    open_ = false;
    return;
  }
  const fs::path path = typed_path(text, folder_).lexically_normal();
  std::error_code failed;
  if (fs::exists(path, failed)) {
    choose(path, requests);
  } else {
    problem_ = one_line(path.string()) + ": " + (failed ? failed.message() : "there is nothing");
    begins_path_ = true;  // what was typed can be mended
  }
}

/// The folder, which can be typed over.
void FileBrowser::draw_path(const Ui& ui, float width, PanelRequests& requests) {
  if (takes_path_) take_path(requests);
  if (!edits_path_ && !begins_path_ && saved_name_.empty()) set_path(folder_.string());
  if (begins_path_) ImGui::SetKeyboardFocusHere();
  ImGui::PushStyleColor(ImGuiCol_FrameBg, to_vec4(ui.theme.window));
  ImGui::SetNextItemWidth(width);
  ImGui::InputText("##path", path_.data(), path_.size(),
                   begins_path_ ? ImGuiInputTextFlags_CallbackAlways : ImGuiInputTextFlags_None,
                   begins_path_ ? cursor_to_end : nullptr);
  ImGui::PopStyleColor();
  mark(ui, "Browser/Path");
  edits_path_ = ImGui::IsItemActive();
  if (edits_path_) begins_path_ = false;
}

void FileBrowser::draw_entries(const Ui& ui, float width, PanelRequests& requests) {
  const float line = ui.px(28);
  std::optional<fs::path> chosen;
  bool above = false;
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
    above = true;
  }
  for (const Entry& entry : entries_) {
    const bool opens = !entry.what.empty();
    if (row("Browser/" + entry.name, entry.name, opens ? entry.what : "folder",
            opens ? ui.theme.text : ui.theme.secondary)) {
      chosen = entry.path;
    }
  }
  moved_ = takes_it_ = false;
  if (above) enter(folder_.parent_path());
  if (chosen) choose(*chosen, requests);
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
  const bool saves = !saved_name_.empty();
  put_text(ui, ui.fonts.title, at.x + ui.px(20), at.y + ui.px(16), ui.theme.text,
           saves ? "Save the capture as" : "Open a capture");
  const auto wide = [&](const char* word) { return text_size(ui.fonts.body, word).x + ui.px(16); };
  const float save = saves ? wide("Save") + ui.px(8) : 0.0f;
  ImGui::SetCursorScreenPos({at.x + width - wide("Cancel") - save - ui.px(20), at.y + ui.px(14)});
  if (saves) {
    if (tool_button(ui, "Browser/Save", "Save", true, "Enter")) takes_path_ = true;
    ImGui::SameLine(0, ui.px(8));
  }
  if (tool_button(ui, "Browser/Cancel", "Cancel", false, "Esc")) open_ = false;
  ImGui::SetCursorScreenPos({at.x + ui.px(20), at.y + ui.px(46)});
  draw_path(ui, width - ui.px(40), requests);
  float below = at.y + ui.px(80);
  if (!problem_.empty()) {
    below += put_wrapped(ui, ui.fonts.secondary, at.x + ui.px(20), below, width - ui.px(40),
                         ui.theme.problem, problem_) +
             ui.px(6);
  }
  ImGui::SetCursorScreenPos({at.x + ui.px(12), below});
  ImGui::BeginChild("entries",
                    {width - ui.px(24), std::max(1.0f, at.y + height - ui.px(12) - below)});
  draw_entries(ui, width - ui.px(36), requests);
  ImGui::EndChild();
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

}  // namespace attnscope
