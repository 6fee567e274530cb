#pragma once

#include <filesystem>
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
/// Removes them. Throws Error(file).
void remove_rank_files(const std::filesystem::path& out);

}  // namespace attnscope
