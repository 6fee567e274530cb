#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/export/read/stored_call.h"

namespace attnscope {

struct HelperQuestion;

/// The facts of the groups, in their order; from the helper process, as read_manifest(). Throws
/// Error(file) where they cannot be read or do not fit the groups.
std::vector<StoredFacts> read_stored_facts(const std::filesystem::path& path,
                                           const std::vector<StoredGroup>& groups);

/// The facts of the calls of these groups (their names below /calls), by their attributes alone,
/// without sequences; nothing of a group that stands in another file or has no such attributes.
/// From the helper process. Throws Error(file) where the file cannot be read.
std::vector<std::optional<StoredFacts>> read_call_facts(const std::filesystem::path& path,
                                                        const std::vector<std::string>& groups);

/// The question that read_call_facts() asks.
extern const HelperQuestion kCallFactsQuestion;
/// The question that read_stored_facts() asks the helper process (io/helper).
extern const HelperQuestion kFactsQuestion;

}  // namespace attnscope
