#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/relabel/header_patch.h"

namespace attnscope {

/// All that a relabelling writes.
struct RelabelWork {
  std::vector<HeaderPatch> files;
  std::optional<std::string> catalogue;  ///< the new capture.json
};

/// True where a relabelling of the folder began and did not end.
bool has_relabel_journal(const std::filesystem::path& folder);
/// Puts the work into the folder, durably and at once: from here on finish_relabel() does it,
/// whatever becomes of this process. Throws Error(file), Error(resource), Error(interrupted); then
/// nothing is there.
void write_relabel_journal(const std::filesystem::path& folder, const RelabelWork& work,
                           const std::stop_token& stop);
/// Reads the work that a journal tells to do. Throws Error(file) where it is none.
RelabelWork read_relabel_journal(const std::filesystem::path& folder);
/// Does it: the files, then capture.json; then the journal goes. Throws Error(interrupted) between
/// two files, Error(file), Error(resource); the journal stays then.
void finish_relabel(const std::filesystem::path& folder, const RelabelWork& work,
                    const std::stop_token& stop);

}  // namespace attnscope
