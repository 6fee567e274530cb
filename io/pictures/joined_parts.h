#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// Stands between what lines of pictures tell; lines that are too long are broken there.
inline constexpr std::string_view kPartSeparator = "  ·  ";

/// The parts that are not empty, with kPartSeparator between them.
std::string joined_parts(const std::vector<std::string>& parts);

}  // namespace attnscope
