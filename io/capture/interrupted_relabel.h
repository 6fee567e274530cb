#pragma once

#include <filesystem>

namespace attnscope {

/// Beside the calls of a capture while attnscope relabel writes into it.
inline constexpr const char* kRelabelJournal = ".relabel.journal";

/// Throws Error(file) where a relabelling of the folder was interrupted: some of its files have the
/// old labels, others the new ones.
void refuse_interrupted_relabel(const std::filesystem::path& folder);

}  // namespace attnscope
