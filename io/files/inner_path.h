#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace attnscope {

/// The file of this name below `folder`, as a file that nobody vouches for may name one; nothing
/// where the name is empty, absolute or climbs out of it.
std::optional<std::filesystem::path> inner_path(const std::filesystem::path& folder,
                                                const std::string& name);

}  // namespace attnscope
