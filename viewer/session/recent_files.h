#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace attnscope {

inline constexpr size_t kRecentFiles = 12;

/// Where the list is kept: $XDG_STATE_HOME/attnscope/recent, else ~/.local/state/attnscope/recent,
/// from the values of XDG_STATE_HOME and HOME (null where not set). Nothing where neither is an
/// absolute path.
std::optional<std::filesystem::path> recent_files_path(const char* xdg_state_home,
                                                       const char* home);

/// A capture that was opened.
struct RecentFile {
  std::filesystem::path file;
  std::string facts = {};  ///< what it was then, one line; may be empty
  bool gone = false;       ///< there is nothing of this name any more
  friend bool operator==(const RecentFile&, const RecentFile&) = default;
};

/// The captures that were opened last, the latest first: a line each in the list's file, and below
/// it one of its facts, which begins with a tab. Other lines that are no absolute path are passed
/// over; a missing or damaged file is an empty list. None is looked for: `gone` is false. Never
/// throws.
std::vector<RecentFile> recent_files(const std::filesystem::path& list) noexcept;

/// Looks for each of them, but for those on other machines. Never throws.
void find_gone(std::vector<RecentFile>& files) noexcept;

/// The name that the list has for a capture: its absolute path, or as it is told of one on another
/// machine.
std::filesystem::path recent_name(const std::filesystem::path& capture);

/// Puts a capture (by its recent_name()) first in the list, which keeps the last 12. False where
/// the list could not be written. Never throws.
bool remember_file(const std::filesystem::path& list, const std::filesystem::path& capture,
                   const std::string& facts = {}) noexcept;

}  // namespace attnscope
