#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace attnscope {

/// Runs that do not end leave these beside an output: OUT.part, OUT.part.new, the folder
/// OUT.d.part, OUT.journal, OUT.journal.tmp, and of several writers OUT.journal.K and OUT.sums.K.

/// How an export's journal and the small pieces of several writers begin.
inline constexpr std::string_view kJournalMagic = "ATTNJRN1";
inline constexpr std::string_view kSumsMagic = "ATTNSUM1";

/// "OUT.part" of "OUT" and ".part".
std::filesystem::path with_suffix(const std::filesystem::path& file, const char* suffix);

/// True where there is an entry of this name: also a link that leads nowhere.
bool entry_exists(const std::filesystem::path& file);

/// The names of files that a run may remove or replace, whether they are there or not, but for
/// OUT's own: those of several writers where there are some.
std::vector<std::filesystem::path> leftover_names(const std::filesystem::path& out);

/// Throws Error(file) where an interrupted run left something, whatever it is: it is not given up
/// before somebody has said so. `resumable`: there is a --resume for it.
void refuse_leftovers(const std::filesystem::path& out, bool resumable);

/// True where a file with the name of a journal, or of what several writers left, begins as one or
/// is empty; false where it is somebody else's or cannot be read.
bool is_own_leftover(const std::filesystem::path& file);

/// Throws Error(file) where a file that has the name of a journal, or of what several writers left,
/// does not begin as one: it is somebody else's.
void refuse_foreign_leftovers(const std::filesystem::path& out);

/// True where a file has this name, false where nothing has. Throws Error(file) for what cannot be
/// replaced without harm (a folder, a device, a pipe, a symbolic link).
bool is_replaceable(const std::filesystem::path& file);

}  // namespace attnscope
