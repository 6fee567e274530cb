#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnscope {

/// Where several processes write one output, each but the first has files of its own beside it:
/// what is there of the output (OUT.journal.K) and small pieces for the first to put in
/// (OUT.sums.K). OUT.sums.0 is the first one's, by which the others know that they see the same
/// folder.
std::filesystem::path rank_journal_path(const std::filesystem::path& out, int rank);
std::filesystem::path rank_sums_path(const std::filesystem::path& out, int rank);

/// The ranks from 1 on of which there is a file beside `out`, ascending.
std::vector<int> ranks_beside(const std::filesystem::path& out);
/// Everything that has such a name, also of rank 0, and names that exist for a moment (….tmp).
std::vector<std::filesystem::path> rank_files_beside(const std::filesystem::path& out);

/// Writes a few words beside `out` that no other run has, and returns them, for other processes to
/// look for. Throws Error(file or resource).
std::string show_folder(const std::filesystem::path& out);
/// Returns when this process sees these words beside `out`. Throws Error(file) where it does not
/// within a minute: other hosts may see a new file only after a while.
void await_folder(const std::filesystem::path& out, const std::string& words);

}  // namespace attnscope
