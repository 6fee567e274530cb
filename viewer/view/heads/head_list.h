#pragma once

#include <string_view>
#include <vector>

#include "core/problem/head_set.h"

namespace attnscope {

/// Heads with a comma between each two, as `--pick` takes them: "3.1,12.7"; none of an empty text,
/// and each once, however often it is named. Throws Error(usage) as HeadPattern::parse().
std::vector<HeadPattern> parse_head_list(std::string_view list, std::string_view option);

}  // namespace attnscope
