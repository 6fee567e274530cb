#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace attnscope {

/// What runs that do not end leave beside an output: OUT.part, OUT.part.new, the folder OUT.d.part,
/// OUT.journal, OUT.journal.tmp, and of several writers OUT.journal.K and OUT.sums.K.

/// How an export's journal and the small pieces of several writers begin.
inline constexpr std::string_view kJournalMagic = "ATTNJRN1";
inline constexpr std::string_view kSumsMagic = "ATTNSUM1";

/// "OUT.part" of "OUT" and ".part".
std::filesystem::path with_suffix(const std::filesystem::path& file, const char* suffix);

/// The names of files that a run may remove or replace, whether they are there or not, but for
/// OUT's own: those of several writers where there are some.
std::vector<std::filesystem::path> leftover_names(const std::filesystem::path& out);

/// What an interrupted run left is not given up before somebody has said so, whatever it is: throws
/// Error(file) where there is something. `resumable`: there is a --resume for it.
void refuse_leftovers(const std::filesystem::path& out, bool resumable);

/// Whether a file with the name of a journal, or of what several writers left, begins as one, or is
/// empty: false of what is somebody else's, or cannot be read.
bool is_own_leftover(const std::filesystem::path& file);

/// Throws Error(file) where a file that has the name of a journal, or of what several writers left,
/// does not begin as one: it is somebody else's.
void refuse_foreign_leftovers(const std::filesystem::path& out);

/// Whether something has this name. What cannot be replaced without harm (a folder, a device, a
/// pipe, a link to a file elsewhere) is an Error(file).
bool is_replaceable(const std::filesystem::path& file);

}  // namespace attnscope
