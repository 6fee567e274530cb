#include "viewer/session/recent_files.h"

#include <algorithm>
#include <exception>
#include <string>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/output_file.h"
#include "viewer/session/remote_place.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// A list of 12 paths is shorter by far; of a longer file only this much is read.
constexpr int64_t kMostBytes = 1 << 16;
/// A line of facts begins with it, which no absolute path does.
constexpr char kFacts = '\t';

bool is_file_line(const std::string& line) {
  return !line.empty() && line.find('\0') == std::string::npos &&
         (path(line).is_absolute() || is_remote_name(line));
}

std::vector<RecentFile> read_list(const path& list) {
  const std::string text = beginning_of_file(list, kMostBytes);
  std::vector<RecentFile> files;
  bool taken = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(kFacts)) {
      if (taken) files.back().facts = one_line(line.substr(1));
      taken = false;
      continue;
    }
    if (files.size() == kRecentFiles) break;
    const auto is_it = [&](const RecentFile& each) { return each.file == path(line); };
    taken = is_file_line(line) && std::none_of(files.begin(), files.end(), is_it);
    if (taken) files.push_back({line});
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

std::vector<RecentFile> recent_files(const path& list) noexcept {
  try {
    return read_list(list);
  } catch (const std::exception&) {
    return {};
  }
}

void find_gone(std::vector<RecentFile>& files) noexcept {
  for (RecentFile& each : files) {
    std::error_code failed;
    if (is_remote_name(each.file.string())) continue;
    each.gone =
        std::filesystem::status(each.file, failed).type() == std::filesystem::file_type::not_found;
  }
}

path recent_name(const path& capture) {
  if (is_remote_name(capture.string())) return capture;
  return std::filesystem::absolute(capture).lexically_normal();
}

bool remember_file(const path& list, const path& capture, const std::string& facts) noexcept {
  try {
    std::filesystem::create_directories(list.parent_path());
    const path first = recent_name(capture);
    // A line cannot hold such a name.
    if (first.string().find('\n') != std::string::npos) return false;
    std::vector<RecentFile> files = recent_files(list);
    std::erase_if(files, [&](const RecentFile& each) { return each.file == first; });
    files.insert(files.begin(), {first, one_line(facts)});
    if (files.size() > kRecentFiles) files.resize(kRecentFiles);
    std::string text;
    for (const RecentFile& each : files) {
      text += each.file.string() + "\n";
      if (!each.facts.empty()) text += kFacts + each.facts + "\n";
    }
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
