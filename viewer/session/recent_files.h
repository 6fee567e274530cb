#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

namespace attnscope {

inline constexpr size_t kRecentFiles = 12;

/// Where the list is kept: $XDG_STATE_HOME/attnscope/recent, else ~/.local/state/attnscope/recent,
/// from the values of XDG_STATE_HOME and HOME (null where not set). Nothing where neither is an
/// absolute path.
std::optional<std::filesystem::path> recent_files_path(const char* xdg_state_home,
                                                       const char* home);

/// The captures that were opened last, the latest first: a line each in the list's file. Lines that
/// are no absolute path are passed over; a missing or damaged file is an empty list. Never throws.
std::vector<std::filesystem::path> recent_files(const std::filesystem::path& list) noexcept;

/// Puts a capture (made absolute) first in the list, which keeps the last 12. False where the list
/// could not be written. Never throws.
bool remember_file(const std::filesystem::path& list,
                   const std::filesystem::path& capture) noexcept;

}  // namespace attnscope
