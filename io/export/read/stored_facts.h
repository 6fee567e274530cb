#pragma once

#include <filesystem>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/export/read/stored_call.h"

namespace attnscope {

struct HelperQuestion;

/// The facts of the groups, in their order; from the helper process, as read_manifest(). Throws
/// Error(file) where they cannot be read or do not fit the groups.
std::vector<StoredFacts> read_stored_facts(const std::filesystem::path& path,
                                           const std::vector<StoredGroup>& groups);

/// The question that read_stored_facts() asks the helper process (io/helper).
extern const HelperQuestion kFactsQuestion;

}  // namespace attnscope
