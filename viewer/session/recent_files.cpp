#include "viewer/session/recent_files.h"

#include <algorithm>
#include <exception>
#include <string>

#include "io/files/file_text.h"
#include "io/files/output_file.h"
#include "viewer/session/remote_place.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// A list of 12 paths is shorter by far; of a longer file only this much is read.
constexpr int64_t kMostBytes = 1 << 16;

std::vector<path> read_list(const path& list) {
  const std::string text = beginning_of_file(list, kMostBytes);
  std::vector<path> files;
  for (size_t at = 0; at < text.size() && files.size() < kRecentFiles;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const bool usable = !line.empty() && line.find('\0') == std::string::npos &&
                        (path(line).is_absolute() || is_remote_name(line)) &&
                        std::find(files.begin(), files.end(), path(line)) == files.end();
    if (usable) files.emplace_back(line);
  }
  return files;
}

}  // namespace

std::optional<path> recent_files_path(const char* xdg_state_home, const char* home) {
  const path state = xdg_state_home == nullptr ? path() : path(xdg_state_home);
  if (state.is_absolute()) return state / "attnscope" / "recent";
  const path user = home == nullptr ? path() : path(home);
  if (user.is_absolute()) return user / ".local" / "state" / "attnscope" / "recent";
  return std::nullopt;
}

std::vector<path> recent_files(const path& list) noexcept {
  try {
    return read_list(list);
  } catch (const std::exception&) {
    return {};
  }
}

bool remember_file(const path& list, const path& capture) noexcept {
  try {
    std::filesystem::create_directories(list.parent_path());
    const path first = is_remote_name(capture.string())
                           ? capture
                           : std::filesystem::absolute(capture).lexically_normal();
    // A line cannot hold such a name.
    if (first.string().find('\n') != std::string::npos) return false;
    std::vector<path> files = recent_files(list);
    std::erase(files, first);
    files.insert(files.begin(), first);
    if (files.size() > kRecentFiles) files.resize(kRecentFiles);
    std::string text;
    for (const path& file : files) text += file.string() + "\n";
    OutputFile out(list, {.force = true, .sync = false});
    out.create_part();
    out.write_at(std::as_bytes(std::span(text.data(), text.size())), 0);
    out.commit();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace attnscope
